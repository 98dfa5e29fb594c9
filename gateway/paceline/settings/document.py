"""YAML text → plain values, with the line of every key and item.

Only the part of YAML in which a file means what it looks like: one document of mappings, lists and
scalars. Refused, each with its line: duplicate keys, tags, anchors and aliases, merge keys, several
documents, keys that are not plain text, files and nesting beyond a bound.

Plain scalars are read as YAML 1.2 and JSON read them: `true`, `false`, `null`, decimal numbers,
anything else is text. Where YAML 1.1 readers would see something else (`yes`, `off`, `010`, `0x1f`,
`1_000`, `12:30`) the value is refused, since no reading of it would be everybody's.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import yaml

from paceline.settings.problems import WRITE_NULL, Path, Problems
from paceline.settings.syntax import Failure, explained, index_of, line_of, misread_comparison

MAX_BYTES = 256 * 1024
"""A large fleet's file is a few KiB; the parser needs seconds for a MiB."""
MAX_DEPTH = 32

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_AMBIGUOUS = re.compile(
    r"(yes|no|on|off)\Z"
    r"|[-+]?(0[0-9_]+|0[xob][0-9a-f_]+|[1-9][0-9]*(_[0-9]+)+|[0-9]+(:[0-5]?[0-9])+)\Z",
    re.IGNORECASE,
)


def read(text: str, problems: Problems) -> Any:
    """The document's value; lines go to `problems.lines`, what is wrong to `problems`.

    Raises ConfigurationError, with all found so far, where reading on makes no sense.
    """
    try:
        return _Reader(text, problems).document()
    except _Unreadable as error:
        problems.add((), error.message, line=error.line)
        raise problems.error() from None


class _Unreadable(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _Reader:
    """Reads the parser's events, which still know what was written, where its nodes do not."""

    def __init__(self, text: str, problems: Problems) -> None:
        self._source = text
        self._problems = problems
        self._last: yaml.ScalarEvent | None = None
        self._spread: yaml.ScalarEvent | None = None  # the last over several lines
        try:
            self._parser = yaml.SafeLoader(text)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise _Unreadable(line, f"character U+{_code(error):04X} is not allowed") from None

    def document(self) -> Any:
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise _Unreadable(1, "the file says nothing; it needs at least models")
        value = self._value(self._next(), ())
        self._next()  # the document's end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise _Unreadable(_line(after), "a second document; there may be only one")
        return value

    def _next(self) -> yaml.Event:
        try:
            event: yaml.Event = self._parser.get_event()  # type: ignore[no-untyped-call]
        except yaml.MarkedYAMLError as error:
            raise _Unreadable(*self._explained(error)) from None
        except (ValueError, OverflowError):  # PyYAML, from "\U99999999" or a huge %YAML version
            line = self._parser.get_mark().line + 1
            raise _Unreadable(line, "an escape or number out of range") from None
        if isinstance(event, yaml.ScalarEvent):
            self._last = event
            self._spread = event if _is_spread(event) else self._spread
        return event

    def _explained(self, error: yaml.MarkedYAMLError) -> tuple[int, str]:
        marks = self._parser.marks
        failure = Failure(
            error=error,
            text=self._source,
            last=self._last,
            spread=self._spread,
            around=marks[-1] if marks else None,
        )
        return explained(failure)

    def _value(self, event: yaml.Event, path: Path) -> Any:
        self._problems.lines.setdefault(path, _line(event))
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, path, "aliases (*name) are not supported; quote it if it is text")
            return None
        self._check_properties(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if len(path) >= MAX_DEPTH:
            raise _Unreadable(_line(event), f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._mapping(path)

    def _check_properties(self, event: yaml.Event, path: Path) -> None:
        if getattr(event, "tag", None) is not None:  # the stubs know neither of the two
            self._refuse(event, path, "tags (!name) are not supported; quote it if it is text")
        if getattr(event, "anchor", None) is not None:
            self._refuse(event, path, "anchors (&name) are not supported")

    def _sequence(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, path)
            at = (*path, key)
            if is_merge := key == "<<" and _is_plain(event):
                self._refuse(event, at, "merge keys are not supported; write the keys out")
            if is_duplicate := key in entries:
                self._refuse(event, at, f"duplicate key; first on line {self._problems.line(at)}")
            self._problems.lines.setdefault(at, _line(event))
            value = self._value(self._next(), at)
            if not is_merge and not is_duplicate:
                entries[key] = value
        return entries

    def _key(self, event: yaml.Event, path: Path) -> str:
        """A key's text as written, whatever type it would have as a value, as in JSON."""
        if not isinstance(event, yaml.ScalarEvent) or not event.value:
            raise _Unreadable(_line(event), "a key must be plain text")
        self._check_properties(event, (*path, event.value))
        return self._text(event, (*path, event.value))

    def _scalar(self, event: yaml.ScalarEvent, path: Path) -> Any:
        if event.style == ">" and not event.value:
            misread = misread_comparison(self._source, index_of(event.start_mark))
            if misread is not None:
                self._refuse(event, path, misread)
        if not _is_plain(event):
            return self._text(event, path)
        if _AMBIGUOUS.match(event.value):
            shown = self._problems.show(path, event.value)
            self._refuse(
                event, path, f"YAML readers disagree about {shown}; {_advice(event, path)}"
            )
            return event.value
        return _plain(self._text(event, path))

    def _text(self, event: yaml.ScalarEvent, path: Path) -> str:
        """The text; PyYAML leaves the halves of an escape such as "\\ud83d\\ude00" apart."""
        text: str = event.value
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._refuse(event, path, "half of a surrogate pair is not a character")
            return ""

    def _refuse(self, event: yaml.Event, path: Path, message: str) -> None:
        self._problems.add(path, message, line=_line(event))


def _plain(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text) and isfinite(float(text)):
        return float(text)
    return text


def _is_plain(event: yaml.Event) -> bool:
    """Whether a scalar stands there without quotes, and so has a type."""
    return isinstance(event, yaml.ScalarEvent) and event.style in (None, "")


def _is_spread(event: yaml.ScalarEvent) -> bool:
    """Whether a scalar goes over several lines without being a block of text."""
    is_block = event.style in ("|", ">")
    return not is_block and line_of(event.start_mark) < line_of(event.end_mark)


def _advice(event: yaml.ScalarEvent, path: Path) -> str:
    if event.value[0].isalpha() and path[-1:] == ("speculation",):
        return WRITE_NULL
    if event.value[0].isalpha():
        return "write true or false, or quote it if it is text"
    return "write a plain decimal number, or quote it if it is text"


def _line(event: yaml.Event) -> int:
    return line_of(event.start_mark)


def _code(error: yaml.reader.ReaderError) -> int:
    character = error.character
    return ord(character) if isinstance(character, str) else int(character)
