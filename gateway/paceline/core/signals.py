"""The lexical signals of a request: small named facts that `classify` weighs.

Each is a yes or no, named so that it can stand in an explanation. Words are looked up in sets and
not searched for one by one, so the cost is linear in the words read and independent of the lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from paceline.core.types import Endpoint, RequestView

SYSTEM_CHARS = 2048
"""Characters read of the system text and of each of the last few turns."""

_CODE_LINE = re.compile(
    r"^[ \t]*(?:def |class |import |from \w+ import|#include|function |const |let |var |public |"
    r"private |static |return\b|if ?\(|for ?\(|while ?\(|[}\])]|@\w|//|/\*|\w+\(.*\)[;:{]?$|"
    r"[\w.\[\]]+ ?[-+*/]?= ?\S|<\/?\w[^>\n]*>|SELECT |\w+: \{)",
    re.MULTILINE,
)


def has_code_line(text: str) -> bool:
    return _CODE_LINE.search(text) is not None


def looks_like_code(text: str) -> bool:
    """At least two lines that read as source code in a common language."""
    return len(_CODE_LINE.findall(text)) >= 2


def _lexicon(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[a-z][a-z+#-]*")
_CHANGE = _lexicon(
    "fix correct proofread rewrite reword rename replace refactor reformat format update modify "
    "change remove delete insert convert clean simplify edit improve apply adjust swap move append "
    "add make turn polish shorten fill mask restore debug repair complete paraphrase anonymize "
    "capitalize uppercase lowercase translate sort extract copy repeat fixing correcting"
)
_SURE_CHANGE = _lexicon(
    "fix correct proofread rename replace refactor reformat edit modify update remove typo typos "
    "grammar spelling grammatical punctuation mistakes misspelled errors"
)
_WHOLE = re.compile(
    r"(?:return|give|output|print|show|respond with|reply with|provide|send)\b[^.\n]{0,40}\b"
    r"(?:full|whole|entire|complete|updated|modified|corrected|fixed|rewritten|revised|edited|only)"
    r"|in full\b|keep (?:the rest|everything|all)|unchanged|without chang|nothing else"
)
_CREATE = _lexicon(
    "write implement create build generate develop code program make design produce define "
    "solve port translate"
)
_CODE_NOUN = _lexicon(
    "function functions class script program method code algorithm test tests unittest unit sql "
    "query regex api endpoint component module library snippet app cli html css css3 bash shell "
    "command dockerfile makefile loop array struct interface decorator parser compiler"
)
_LANGUAGE = _lexicon(
    "python javascript typescript java c++ c# rust golang ruby php kotlin swift sql html bash "
    "haskell scala perl lua matlab verilog vhdl react django flask numpy pandas pytorch css "
    "powershell node"
)
_GO = re.compile(r"\b(?:in|to|into|using|with) Go\b")  # in lower case it is a verb
_PROSE = _lexicon(
    "essay story poem letter email article blog haiku song joke speech paragraph tweet post recipe "
    "plan itinerary summary advice ideas report review title slogan message "
    "lyrics dialogue screenplay resume description headline"
)
_EXPLAIN = _lexicon(
    "explain describe summarize summarise review compare discuss why analyze analyse classify "
    "answer tell interpret evaluate identify suggest recommend brainstorm explanation commit "
    "difference mean means understand think calculate"
)
_QUESTION = _lexicon(
    "what why how who when where which whose is are can could does do did should would will"
)
_EXTRACT = _lexicon("extract copy quote verbatim repeat reproduce exact exactly unchanged")
_PATCH = re.compile(r"<{5,7} ?SEARCH|<{7}|\*\*\* Begin Patch|^@@ |^diff --git|^[-+]{3} [ab]/", re.M)
_FILL = re.compile(r"<\|?fim_|<fim-|<PRE>|<SUF>|\[SUFFIX\]")
_STUB = re.compile(r"(?:def |function |class |fn |func |public |#include|import )", re.M)


_ASKING = frozenset(["asks-question", "asks-to-explain", "ends-in-question"])
_CHANGING = frozenset(["asks-for-change", "speaks-of-change", "asks-for-the-whole"])


def signals(view: RequestView, ask: str, pasted: str, pasted_chars: int) -> Iterator[str]:
    """The names of the signals seen, each of which `classify` has a weight for."""
    lowered = ask.lower()
    words = _WORD.findall(lowered)
    said = set(_word_signals(set(words), set(words[:6]), words[:1]))
    if _GO.search(ask):
        said.add("names-language")
    if _WHOLE.search(lowered):
        said.add("asks-for-the-whole")
    if lowered.rstrip().endswith("?"):
        said.add("ends-in-question")
    if pasted and said & _ASKING and not said & _CHANGING:
        said.add("asks-about-paste")
    yield from said
    yield from _shape_signals(view, ask, pasted, pasted_chars)


def _word_signals(words: set[str], opening: set[str], first: list[str]) -> Iterator[str]:
    named = {
        "asks-for-change": opening & _CHANGE,
        "speaks-of-change": words & _SURE_CHANGE,
        "asks-to-create": opening & _CREATE,
        "names-code": words & _CODE_NOUN,
        "names-language": words & _LANGUAGE,
        "names-prose": words & _PROSE,
        "asks-to-explain": words & _EXPLAIN,
        "asks-to-extract": words & _EXTRACT,
        "asks-question": _QUESTION.intersection(first),
    }
    return (name for name, found in named.items() if found)


def _shape_signals(view: RequestView, ask: str, pasted: str, pasted_chars: int) -> Iterator[str]:
    earlier = view.turns[:-1]
    shapes = {
        "prediction": view.prediction,
        "fill-in-the-middle": view.suffix or _FILL.search(ask),
        "pasted-text": pasted,
        "pasted-long": pasted_chars > 1000,
        "pasted-code": pasted and ("```" in pasted or looks_like_code(pasted)),
        "code-in-ask": "`" in ask or "();" in ask or _STUB.search(ask),
        "patch-format": _PATCH.search(view.system[:SYSTEM_CHARS]) or _PATCH.search(pasted),
        "tools": view.num_tools,
        "tool-result": view.turns and view.turns[-1].role == "tool",
        "structured-output": view.response_format,
        "earlier-code": any("```" in turn.text[:SYSTEM_CHARS] for turn in earlier[-4:]),
        "follow-up": bool(earlier),
        "short-ask": len(ask) <= 60,
        "long-ask": len(ask) > 400,
        "continues-code": view.endpoint is Endpoint.COMPLETIONS and has_code_line(ask),
        "not-latin": sum(char > "\u0370" for char in ask[:200]) > len(ask[:200]) / 4,
    }
    return (name for name, seen in shapes.items() if seen)
