"""PyYAML's syntax errors → a line and words: where the trouble began, and what would mend it.

PyYAML says where it could not go on. A quote, brace or colon that is missing stands further up, so
the line told is where what is incomplete begins; the line where that was noticed is in the words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

Place = tuple[int, str]  # a line, and what is wrong there

_COMPARISON = re.compile(r">[ ]*=?[ ]*[0-9.]+")
_EXPECTED = re.compile(r"expected .*, but (?:got|found) '(?P<found>.*)'", re.DOTALL)
_OF_INDENTATION = frozenset({"?", "-", "<block mapping start>", "<block sequence start>"})
_NO_COLON = 'a key needs a colon and a space after it, as in "key: value"'
_UNFIT = "this does not fit the lines above it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Where the parser stopped: `last` is the scalar read last, `spread` the last that goes over
    several lines (in quotes or in none), `around` where the innermost open collection begins."""

    error: yaml.MarkedYAMLError
    text: str
    last: yaml.ScalarEvent | None
    spread: yaml.ScalarEvent | None
    around: Any

    @property
    def noticed(self) -> int:
        return line_of(self.error.problem_mark or self.error.context_mark)

    @property
    def began(self) -> int:
        """The line at which what PyYAML was reading, its context, begins."""
        return line_of(self.error.context_mark or self.error.problem_mark)

    @property
    def found(self) -> str:
        """The token at which the parser stopped, as PyYAML names it; empty for other errors."""
        match = _EXPECTED.match(self.error.problem or "")
        return match["found"] if match else ""

    @property
    def opener(self) -> str:
        """The brace or bracket that the innermost open collection begins with, if it has one."""
        first = self.character(self.around)
        return first if first in ("{", "[") else ""

    def character(self, mark: Any) -> str:
        return self.text[mark.index : mark.index + 1] if mark else ""


def explained(failure: Failure) -> Place:
    """The line to look at, and what is wrong there."""
    line, message = _open_quote(failure) or _by_context(failure) or _by_problem(failure)
    return line, f"not valid YAML: {message}"


def misread_comparison(text: str, index: int) -> str | None:
    """What to write, if a comparison without quotes stands at `index`, where YAML takes `>` for the
    beginning of a block of text."""
    found = _COMPARISON.match(text, index)
    if found is None:
        return None
    return f'text cannot begin with > here; put it in quotes: "{found[0].replace(" ", "")}"'


def line_of(mark: Any) -> int:
    """The line of one of PyYAML's marks, which count from 0; 1 without a mark."""
    return int(mark.line) + 1 if mark else 1


def index_of(mark: Any) -> int:
    return int(mark.index) if mark else 0


def _open_quote(failure: Failure) -> Place | None:
    """A quote that nothing has closed, or only the quote with which another text begins."""
    error, spread = failure.error, failure.spread
    in_quotes = error.context == "while scanning a quoted scalar"
    if spread is not None and spread.style in ("'", '"'):
        last = line_of(spread.end_mark)
        if last == failure.noticed or (in_quotes and last == failure.began):
            what = f"the quote that begins here ends only on line {last}"
            return line_of(spread.start_mark), f"{what}, and what follows there does not fit"
    if in_quotes and error.problem == "found unexpected end of stream":
        return failure.began, "the quote that begins here is never closed"
    return None


def _by_context(failure: Failure) -> Place | None:
    """What PyYAML was reading when it stopped says what is missing."""
    match (failure.error.context or "").removeprefix("while "):
        case "scanning a simple key":
            return failure.began, _NO_COLON
        case "parsing a flow mapping" | "parsing a flow sequence" | "parsing a flow node":
            return _open_bracket(failure)
        case "parsing a block mapping":
            return _key_alone(failure) or (failure.noticed, _misplaced(failure, "mapping"))
        case "parsing a block collection":
            return _key_alone(failure) or (failure.noticed, _misplaced(failure, "list"))
        case "scanning a block scalar":
            return failure.began, _block_of_text(failure)
        case "scanning for the next token":
            return failure.noticed, _cannot_begin(failure, failure.error.problem_mark)
        case "scanning a tag" | "parsing a tag" | "scanning an anchor" | "scanning an alias":
            return failure.began, _cannot_begin(failure, failure.error.context_mark)
    return None


def _by_problem(failure: Failure) -> Place:
    error = failure.error
    what = error.problem or error.context or "cannot be understood"
    if what == "mapping values are not allowed here":
        return _unexpected_colon(failure)
    if what.startswith("expected '<document start>'"):
        return failure.noticed, f"{_UNFIT}; is the first of them indented?"
    around = f" ({error.context})" if error.context and error.problem else ""
    return failure.noticed, f"{what}{around}"


def _open_bracket(failure: Failure) -> Place | None:
    opener, line = failure.opener, line_of(failure.around)
    if not opener:
        return None
    if failure.found == "<stream end>":
        return line, f"the {opener} that begins here is never closed"
    if line != failure.noticed:
        noticed = f"noticed on line {failure.noticed}"
        return (
            line,
            f"the {opener} that begins here is not closed, or a comma is missing; {noticed}",
        )
    has_brackets = failure.found in ("{", "[", "}", "]")
    quotes = "; text with brackets in it needs quotes" if has_brackets else ""
    return line, f"a comma is missing, or what closes the {opener}{quotes}"


def _key_alone(failure: Failure) -> Place | None:
    """Text that stands where the keys below it stand, and so was to be one."""
    last, mark = failure.last, failure.error.problem_mark
    if last is None or last.style or not (last.start_mark and mark):
        return None
    is_aligned = last.start_mark.column == mark.column and _begins_its_line(failure, last)
    return (line_of(last.start_mark), _NO_COLON) if last.value and is_aligned else None


def _begins_its_line(failure: Failure, scalar: yaml.ScalarEvent) -> bool:
    before = failure.text[: index_of(scalar.start_mark)].rpartition("\n")[2]
    return not before.strip(" -")


def _misplaced(failure: Failure, block: str) -> str:
    if failure.found in _OF_INDENTATION:
        began = f"the {block} around it begins on line {failure.began}"
        return f"{_UNFIT}; look at its indentation ({began})"
    if failure.found == "<scalar>":
        return "text after the end of a value; is there a quote within quotes?"
    return f"nothing before it asks for a {failure.found}"


def _block_of_text(failure: Failure) -> str:
    mark = failure.error.context_mark
    return misread_comparison(failure.text, index_of(mark)) or (
        f"{failure.character(mark)} begins a block of text, which starts on the next line; "
        "put the value in quotes if it is none"
    )


def _cannot_begin(failure: Failure, mark: Any) -> str:
    character, line = failure.character(mark), line_of(failure.around)
    if character == "\t":
        return "a tab; only spaces can indent"
    comparison = misread_comparison(failure.text, index_of(mark))
    what = comparison or f"text cannot begin with {character}; put it in quotes"
    if failure.opener and line < failure.noticed:
        what += f" (or the {failure.opener} of line {line} is not closed)"
    return what


def _unexpected_colon(failure: Failure) -> Place:
    """A key within what was read as text: because the line before lacks its colon, or this one is
    indented as if it went on with the value there, or the text should be in quotes."""
    spread = failure.spread
    if spread is None or line_of(spread.end_mark) != failure.noticed:
        return failure.noticed, 'a value with ": " in it must be in quotes'
    line = line_of(spread.start_mark)
    if _begins_its_line(failure, spread):
        return line, _NO_COLON
    return failure.noticed, f"indented as if it went on with the value of line {line}"
