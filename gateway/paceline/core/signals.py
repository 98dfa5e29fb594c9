"""The signals of a request: small named facts that `classify` weighs, and their names in words.

A signal is a yes or no. `mentions:fix` is a concept of `lexicon.py` anywhere in the caller's own
words, `asks:fix` one among the first words of a sentence that opens or closes the request,
`first:fix` and `second:fix` one at its very beginning, `system:fix` one in the system text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain

from paceline.core.lexicon import CONCEPTS, GLYPHS, STEM_CHARS, STEMS, WORDS
from paceline.core.material import Split
from paceline.core.types import RequestView, Turn

SYSTEM_CHARS = 240
"""Characters read of the system text."""
SYSTEM_MARK_CHARS = 1000
"""Of it, searched for the marks of patch formats."""
EARLIER_CHARS = 90
"""Characters read at each end of the user turn before the last."""
OPENING_WORDS = 7

_MARKS = ",:;!?\"'()[]{}<>`*\\|=_"
_WORD = re.compile(r"[^\W_][\w+#.'/-]*")
ASCII_TO_WORDS = bytes(range(128)).lower().translate(
    bytes.maketrans(_MARKS.encode(), b" " * len(_MARKS))
) + bytes(range(128, 256))
"""Lower case and no punctuation in one pass: several times as fast as `str.translate`."""
_CJK = re.compile("[\u3040-\u9fff\uac00-\ud7a3]")
_LATIN_WORD = re.compile(r"[a-z][a-z+#]+")
_SYSTEM_CONCEPTS = frozenset([
    "fix", "grammar", "rename", "change", "rewrite", "translate", "summarize", "judge", "whole",
    "code-noun", "implement", "continue", "explain", "commit", "extract",
])  # fmt: skip
ACTIONS = frozenset([
    "fix", "grammar", "rename", "change", "rewrite", "extract", "translate", "create",
    "implement", "tests", "document", "explain", "summarize", "judge", "answer", "calculate",
    "advise", "continue", "commit", "question", "pick",
])  # fmt: skip
_CHANGES = frozenset(["fix", "grammar", "rename", "change"])
WEAK = frozenset(["question", "could", "chatter", "add"])
"""Concepts whose words stand in any long text: they count only where a sentence opens."""
_SHORT_LANGUAGES = frozenset(["c", "r"])
"""Too short for the lexicon: any letter may be a name."""
LANGUAGES = _SHORT_LANGUAGES.union(word for word, concept in WORDS.items() if concept == "language")
TO = frozenset([
    "to", "in", "into", "using", "with", "use", "auf", "nach", "en", "a", "à", "em", "na", "на",
    "mit", "con", "avec", "w",
])  # fmt: skip


def _named(prefix: str) -> dict[str | None, str]:
    return {concept: f"{prefix}:{concept}" for concept in [*CONCEPTS, None]}


_FIRST, _SECOND, _SYSTEM = map(_named, ["first", "second", "system"])
_MENTIONED_BY = {word: f"mentions:{c}" for word, c in WORDS.items() if c not in WEAK}
_MENTIONING = frozenset(_MENTIONED_BY)
_ASKED: dict[str | None, tuple[str, ...]] = {
    c: (f"asks:{c}",) if c in WEAK else (f"asks:{c}", f"mentions:{c}") for c in CONCEPTS
}
_LANGUAGE = "mentions:language"
_FILL, _READ_ONLY = "fill-in-the-middle", "read-only"


def words_of(text: str) -> list[str]:
    """Lower-case words; names such as `node.js` and `src/main.py` stay whole."""
    if not text.isascii():
        return [word.rstrip(".") for word in _WORD.findall(text.lower())]
    text = text.encode().translate(ASCII_TO_WORDS).decode()
    return text.replace(". ", " ").replace(".\n", " ").rstrip(".").split()


# ---- what the caller says ------------------------------------------------------------------------


def word_signals(parts: Split) -> set[str]:
    """The concepts in the caller's own words.

    What follows the material counts only if it asks for something, or if nothing before it does:
    the end of a pasted letter is no instruction.
    """
    found: set[str] = set()
    acts = False
    for part in parts[:2]:
        if not (part and (words := words_of(part))):
            continue
        if "." in words[0] or "/" in words[0]:  # the path of a file that follows
            words = words[1:] or words
        opening = [*map(_concepts, words[:OPENING_WORDS])]
        asked = {*chain.from_iterable(opening)}
        if acts and asked.isdisjoint(ACTIONS):
            continue
        acts = not asked.isdisjoint(ACTIONS)
        if not part.isascii():
            asked.update(_glyph_concepts(part))
            found.update(_script_signals(part))
        asked.discard(None)
        found.update(map(_MENTIONED_BY.__getitem__, _MENTIONING.intersection(words)))
        found.update(*map(_ASKED.__getitem__, asked))
        found.add(_FIRST[opening[0][0]])
        if len(opening) > 1:
            found.add(_SECOND[opening[1][0]])
        named = _LANGUAGE in found or not _SHORT_LANGUAGES.isdisjoint(words)
        if named and _names_language(words):
            found.add("to-language")
    return found or {"no-ask"}


@lru_cache(maxsize=4096)
def _concepts(word: str) -> tuple[str | None, str | None]:
    """What a word means where a sentence opens, and what its stem does."""
    of_stem = STEMS.get(word[:STEM_CHARS])
    return WORDS.get(word) or of_stem, of_stem


def _names_language(words: list[str]) -> bool:
    """`in Go`, `to c`: a language's name after a preposition; `go` alone is a verb."""
    for name in LANGUAGES.intersection(words):
        place = words.index(name)
        if place and words[place - 1] in TO:
            return True
    return False


def _glyph_concepts(text: str) -> Iterator[str]:
    if _CJK.search(text):
        for glyphs, concept in GLYPHS.items():
            if glyphs in text:
                yield concept
        for word in _LATIN_WORD.findall(text.lower()):
            if word in WORDS:
                yield WORDS[word]


def _script_signals(text: str) -> Iterator[str]:
    if text[0] > "\u0370" or text[-2:] > "\u0370":
        yield "not-latin"
    if _CJK.search(text[:60]):
        yield "no-spaces"


# ---- what else the text has ----------------------------------------------------------------------

ASK_SIZES = (20, 40, 80, 160, 320, 640)
_ASK_LENGTHS = tuple(f"ask-length:{band}" for band in range(len(ASK_SIZES) + 1))
OPEN_ENDS = ('"""', "*/", "'''", "{", ":", "(", ",", ")")
NEW_FILE = ("new file", "own file", "separate file")
END_CHARS = 400
"""Characters at each end of the last user turn that are searched for marks."""
FILL_MARKS = ("fim", "<CURSOR>", "<PRE>", "<SUF>")
READING_CHARS = 120
READING_MARKS = ("ead only", "ead-only", "do not edit", "eference")
"""In the head of a text: that it brings files to read and not to change."""


def text_signals(text: str, parts: Split, is_first: bool) -> list[str]:
    """What the last user turn has besides words; `is_first` where no turn stands before it."""
    before, after, material, _ = parts
    num_chars = len(before) + len(after)
    found = [_ASK_LENGTHS[bisect_left(ASK_SIZES, num_chars)]]
    ending = before[-2:] + after[-2:] + text[-1:]
    if "?" in ending or "？" in ending:
        found.append("ends-in-question")
    if "`" in before or "`" in after or "()" in before:
        found.append("code-in-ask")
    ends = text if len(text) <= 2 * END_CHARS else text[:END_CHARS] + text[-END_CHARS:]
    if ("<" in ends and _has_any(FILL_MARKS, ends)) or ("[" in ends and "[SUFFIX]" in ends):
        found.append(_FILL)
    if ("@" in ends and "@@ " in ends) or ("-" in ends and "--- a/" in ends):
        found.append("diff")
    if not num_chars and _is_unfinished(material):
        found.append("unfinished-code")
    if "file" in before or "file" in after:
        ask = f"{before}\n{after}".lower()
        if _has_any(NEW_FILE, ask):
            found.append("new-file")
    if is_first and _is_for_reading(text):
        found.append(_READ_ONLY)
    return found


def _has_any(marks: tuple[str, ...], text: str) -> bool:
    for mark in marks:  # noqa: SIM110 (a generator costs more than the search)
        if mark in text:
            return True
    return False


def _is_unfinished(code: str) -> bool:
    tail = code[-600:].rstrip()
    return tail.count("{") > tail.count("}") or tail.endswith(OPEN_ENDS)


def _is_for_reading(text: str) -> bool:
    return _has_any(READING_MARKS, text[:READING_CHARS])


# ---- what else the request has -------------------------------------------------------------------


SHORT_ANSWER_TOKENS = 64


def request_signals(view: RequestView, last: int) -> list[str]:
    """What stands beside the last user turn, whose index is `last`; mostly there is nothing."""
    found: list[str] = []
    if view.suffix:
        found.append(_FILL)
    if view.prediction:
        found.append("prediction")
    if view.num_tools:
        found.append("tools")
    turns = view.turns
    if last + 1 < len(turns) and turns[-1].role == "tool":
        found.append("tool-result")
    if view.response_format:
        found.append("structured-output")
    if (max_tokens := view.max_tokens) and max_tokens <= SHORT_ANSWER_TOKENS:
        found.append("short-answer")
    if system := view.system:
        found += system_signals(system[:SYSTEM_MARK_CHARS])
    if last > 0:
        found += _earlier_signals(turns, last)
    return found


@lru_cache(maxsize=256)
def system_signals(head: str) -> tuple[str, ...]:
    """Of the first `SYSTEM_MARK_CHARS` of a system text. Kept, since an application has few."""
    concepts = _SYSTEM_CONCEPTS.intersection(map(WORDS.get, words_of(head[:SYSTEM_CHARS])))
    found = [_SYSTEM[concept] for concept in concepts]
    if ("<" in head and "<<<<<<<" in head) or "@@" in head or ("*" in head and "*** " in head):
        found.append("patch-format")
    return tuple(found)


def _earlier_signals(turns: tuple[Turn, ...], last: int) -> Iterator[str]:
    yield "follow-up"
    for place in range(last - 1, max(-1, last - 5), -1):
        turn = turns[place]
        if turn.role != "user":
            continue
        text = turn.text
        if _is_for_reading(text):
            yield _READ_ONLY
        words = words_of(f"{text[:EARLIER_CHARS]} {text[-EARLIER_CHARS:]}")
        found = {*map(WORDS.get, words)}
        if not found.isdisjoint(_CHANGES):
            yield "earlier:change"
        if "create" in found or "implement" in found:
            yield "earlier:create"
        if "question" in found or "explain" in found:
            yield "earlier:question"
        return


# ---- in words ------------------------------------------------------------------------------------

_PLAIN = {
    "no-ask": "no instruction",
    "to-language": "names the language to write in",
    "not-latin": "not in Latin script",
    "no-spaces": "not in Latin script",
    "ends-in-question": "ends in a question",
    "prediction": "brings a predicted output",
    "fill-in-the-middle": "a gap to fill in",
    "tools": "offers tools",
    "tool-result": "answers a tool's result",
    "structured-output": "wants structured output",
    "code-in-ask": "code in the instruction",
    "diff": "a diff",
    "unfinished-code": "code that breaks off",
    "new-file": "wants a new file",
    "read-only": "says what is for reading only",
    "short-answer": "wants a short answer",
    "patch-format": "wants a patch",
    "follow-up": "follows up",
    "earlier:change": "an edit before it",
    "earlier:create": "something written before it",
    "earlier:question": "a question before it",
}


@cache
def in_words(signal: str) -> str:
    """A signal as an operator reads it. Several may read the same."""
    kind, _, concept = signal.partition(":")
    if signal in _PLAIN:
        return _PLAIN[signal]
    if kind == "ask-length":
        return "a short instruction" if int(concept) < 3 else "a long instruction"
    if kind == "system":
        return f"system text {CONCEPTS[concept]}"
    return CONCEPTS.get(concept, "other words")
