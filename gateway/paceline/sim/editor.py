"""Changing a pasted text as an instruction in plain words asks, and keeping everything else.

Understood are: rename or replace A with B, change a setting to a number, upper and lower case,
spelling, type hints and docstrings for Python, removing comments or prints, sorting lines. Whatever
else is asked comes out as a light clean-up, since the point of an edit here is that it copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from paceline.sim.spelling import corrected, like

MAX_PAIRS = 16
MAX_WISH_CHARS = 2000  # of an instruction that are read; the patterns below are quadratic at worst

_NAME = r"""(?:`([^`\n]+)`|"([^"\n]+)"|'([^'\n]+)'|“([^”\n]+)”|([\w.$-]*\w))"""
_FILLER = (
    r"(?:(?:all|every|each|the|from|of|occurrences?|instances?|uses?|words?|names?|function|method"
    r"|class|variable|parameter|argument|column|field|term|string|value)\s+)*"
)
_TO = r"(?:to|with|by|into|as|for)"
_PAIRS = (
    re.compile(
        rf"\b(rename|change|set|update|replace|swap|substitute|and)\s+{_FILLER}{_NAME}\s+{_TO}\s+"
        rf"{_FILLER}{_NAME}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"()(?<!\w){_NAME}\s+(?:is\s+|be\s+)?(?:renamed|changed|replaced)\s+{_TO}\s+{_NAME}",
        re.IGNORECASE,
    ),
)
_DEF = re.compile(
    r"^([ \t]*)(async def|def) (\w+)\(([^()\n]*)\)( *-> *[^:\n]+)?:[ \t]*$", re.MULTILINE
)
_DOCSTRING = re.compile(r"\s*[rR]?(?:\"\"\"|''')")
_SQL_WORDS = re.compile(
    r"\b(?:select|from|where|group by|order by|having|join|left|right|inner|outer|on|and|or|not|as"
    r"|insert into|values|update|set|delete|create table|limit|distinct|count|sum|avg|null)\b",
    re.IGNORECASE,
)
_GUESSED_TYPES = {
    "str": "name text title path url key word words_text message line label email filename",
    "int": "n i j k count index size length limit number port age year width height seed",
    "float": "x y z price amount rate ratio total score seconds factor temperature",
    "bool": "flag verbose debug strict enabled force",
    "list": "items values numbers rows lines words names nums lst arr data",
    "dict": "options config mapping headers counts params",
}
_TYPE_OF = {name: kind for kind, names in _GUESSED_TYPES.items() for name in names.split()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The changed text, and in a few words each what was done to it."""

    text: str
    changes: tuple[str, ...]


Change = tuple[str, str] | None  # the text after it and what it was


def edit(text: str, instruction: str) -> Edited:
    """`text` changed as far as `instruction` is understood; a light clean-up where it is not."""
    changes = []
    for operation in OPERATIONS:
        if done := operation(text, instruction[:MAX_WISH_CHARS]):
            text, what = done
            changes.append(what)
    if not changes and (tidied := _tidy(text)) != text:
        return Edited(text=tidied, changes=("small slips mended",))
    return Edited(text=text, changes=tuple(changes))


# --- names ----------------------------------------------------------------------------------------


def _replace_names(text: str, instruction: str) -> Change:
    done = []
    for pair in _pairs(instruction)[:MAX_PAIRS]:
        if (changed := _replace(text, pair)) != text:
            text = changed
            done.append(f"`{pair.old}` {'set' if pair.sets else 'changed'} to `{pair.new}`")
    return (text, ", ".join(done)) if done else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """`sets` is for words such as "change": where `old` is a setting, its value is meant."""

    old: str
    new: str
    sets: bool


def _pairs(instruction: str) -> list[_Pair]:
    """What is to become what. "and A to B" does what the verb before it does."""
    found: list[_Pair] = []
    for pattern in _PAIRS:
        for match in pattern.finditer(instruction):
            verb, *names = (group for group in match.groups() if group is not None)
            if verb.lower() != "and":
                sets = verb.lower() in ("change", "set", "update")
            elif found:
                sets = found[-1].sets
            else:
                continue
            found.append(_Pair(old=names[0], new=names[1], sets=sets))
    return found


def _replace(text: str, pair: _Pair) -> str:
    """A setting gets its new value; any other name is replaced wherever it is a whole word."""
    if pair.sets:
        name = re.escape(pair.old)
        setting = re.compile(
            rf"^([ \t]*[\"']?{name}[\"']?[ \t]*[=:][ \t]*)([\"']?)[\w.+-]+\2", re.MULTILINE | re.I
        )
        changed = setting.sub(lambda match: match[1] + match[2] + pair.new + match[2], text)
        if changed != text:
            return changed
    start, end = (r"\b" if edge.isalnum() else "" for edge in (pair.old[0], pair.old[-1]))
    if not (pair.old.isalpha() and pair.old.islower()):
        return re.sub(f"{start}{re.escape(pair.old)}{end}", lambda _: pair.new, text)
    plain = re.compile(f"{start}{re.escape(pair.old)}{end}", re.IGNORECASE)
    return plain.sub(lambda match: like(match.group(), pair.new), text)


# --- case and spelling ----------------------------------------------------------------------------


def _change_case(text: str, instruction: str) -> Change:
    wish = re.search(r"\b(upper|lower)[ -]?case|\b(capital) letters", instruction, re.IGNORECASE)
    if wish is None:
        return None
    upper = (wish[1] or "upper").lower() == "upper"
    change: Callable[[str], str] = str.upper if upper else str.lower
    name = "upper" if upper else "lower"
    if "keyword" in instruction.lower():
        changed = _SQL_WORDS.sub(lambda match: change(match.group()), text)
        return changed, f"keywords in {name} case"
    if "heading" in instruction.lower():
        changed = re.sub(r"^#+ .*$", lambda match: change(match.group()), text, flags=re.MULTILINE)
        return changed, f"headings in {name} case"
    return change(text), f"{name} case throughout"


def _correct_spelling(text: str, instruction: str) -> Change:
    wish = r"\b(?:spell\w*|typos?|misspell\w*|proofread|grammar|correct|mistakes?|errors?|fix)\b"
    if not re.search(wish, instruction, re.IGNORECASE):
        return None
    changed, count = corrected(text)
    return (changed, f"{count} misspelling{'s' * (count != 1)} corrected") if count else None


# --- Python ---------------------------------------------------------------------------------------


def _add_type_hints(text: str, instruction: str) -> Change:
    if not re.search(r"\btype (?:hint|annotation)|\bannotat", instruction, re.IGNORECASE):
        return None
    changed = _DEF.sub(lambda match: _hinted(match, text), text)
    return (changed, "type hints added") if changed != text else None


def _hinted(match: re.Match[str], text: str) -> str:
    indent, keyword, name, parameters, arrow = match.groups()
    hinted = ", ".join(_hint(part.strip()) for part in parameters.split(",") if part.strip())
    body = re.compile(rf"(?:\n(?:{indent}[ \t]+[^\n]*|[ \t]*))*").match(text, match.end())
    returns = "object" if body and re.search(r"\breturn [^\n]", body.group()) else "None"
    return f"{indent}{keyword} {name}({hinted}){arrow or f' -> {returns}'}:"


def _hint(parameter: str) -> str:
    if ":" in parameter or parameter in ("self", "cls", "/", "*") or parameter.startswith("*"):
        return parameter
    name, equals, default = (part.strip() for part in parameter.partition("="))
    kind = _type_of_default(default) or _TYPE_OF.get(name) or "object"
    return f"{name}: {kind} = {default}" if equals else f"{name}: {kind}"


def _type_of_default(default: str) -> str:
    patterns = {r"-?\d+": "int", r"-?\d*\.\d+": "float", r"True|False": "bool", r"['\"].*": "str"}
    return next((kind for pattern, kind in patterns.items() if re.fullmatch(pattern, default)), "")


def _add_docstrings(text: str, instruction: str) -> Change:
    if not re.search(r"\bdoc[ -]?strings?\b", instruction, re.IGNORECASE):
        return None
    changed = _DEF.sub(lambda match: _documented(match, text), text)
    return (changed, "docstrings added") if changed != text else None


def _documented(match: re.Match[str], text: str) -> str:
    if match[3].startswith("__") or _DOCSTRING.match(text, match.end()):
        return match.group()
    words = match[3].strip("_").replace("_", " ")
    sentence = words[:1].upper() + words[1:]
    return f'{match.group()}\n{match[1]}    """{sentence}."""'


# --- lines ----------------------------------------------------------------------------------------


def _remove_lines(text: str, instruction: str) -> Change:
    wish = re.search(
        r"\b(?:remove|delete|strip|drop)\b[^.\n]{0,40}?\b(comment|print|debug)", instruction, re.I
    )
    if wish is None:
        return None
    comments = wish[1].lower() == "comment"
    unwanted = re.compile(r"\s*(?:#|//)(?!!)" if comments else r"\s*(?:print|console\.log)\(")
    lines = text.split("\n")
    kept = [line for line in lines if not unwanted.match(line)]
    if len(kept) == len(lines):
        return None
    return "\n".join(kept), "comments removed" if comments else "prints removed"


def _sort_lines(text: str, instruction: str) -> Change:
    if not re.search(r"\bsort\b|\balphabetical", instruction, re.IGNORECASE):
        return None
    return "\n".join(sorted(text.split("\n"), key=str.casefold)), "lines sorted"


def _tidy(text: str) -> str:
    """Known misspellings mended, and no spaces at the ends of lines."""
    return "\n".join(line.rstrip(" \t") for line in corrected(text)[0].split("\n"))


OPERATIONS: tuple[Callable[[str, str], Change], ...] = (
    _replace_names,
    _change_case,
    _correct_spelling,
    _add_type_hints,
    _add_docstrings,
    _remove_lines,
    _sort_lines,
)
