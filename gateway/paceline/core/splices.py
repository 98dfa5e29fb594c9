"""Bytes of a JSON text changed where they stand: everything else stays as it was written.

Numbers, key order, escapes, spacing and unknown fields are the writer's. Nothing here parses a text
and writes it anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, cast

from msgspec import Struct

from paceline.errors import InvalidRequest

_BY_PLACE = attrgetter("start")
_SPACE = re.compile(r"[ \t\r\n]*")
_SCAN: Any = cast(Any, json.JSONDecoder(parse_int=str, parse_float=str, strict=False)).scan_once

MAX_MEMBERS = 4096
"""Of one object that is walked through: bounds what a body of duplicates can cost."""


class Member(Struct, frozen=True):
    """One `key: value` of an object: the key unescaped, and where it and its value stand."""

    key: str
    begin: int  # of the key
    start: int  # of the value
    end: int


class Splice(Struct, frozen=True):
    """Bytes `start` to `end` become `text`."""

    start: int
    end: int
    text: bytes


def members(raw: bytes, start: int) -> Iterator[Member]:
    """The members of the object whose brace stands at `start`, in their order.

    Values are passed over by the JSON scanner of the standard library, which is written in C and
    tells where a value ends; read as latin-1, characters are bytes. Raises InvalidRequest for an
    object that no client would send: nested beyond the scanner's depth, or of very many members.
    """
    text = raw.decode("latin-1")
    position = _past_space(text, start + 1)
    for _ in range(MAX_MEMBERS + 1):
        if text[position] == "}":
            return
        key_end = _value_end(text, position)
        value = _past_space(text, text.index(":", key_end) + 1)
        end = _value_end(text, value)
        yield Member(json.loads(raw[position:key_end]), position, value, end)
        position = _past_space(text, end)
        if text[position] == ",":
            position = _past_space(text, position + 1)
    raise InvalidRequest(f"the body has an object of more than {MAX_MEMBERS} members")


def spliced(raw: bytes, splices: Sequence[Splice]) -> bytes:
    """`raw` with the splices made, which may not overlap; `raw` itself where there are none."""
    if not splices:
        return raw
    pieces: list[bytes] = []
    position = 0
    for splice in splices if len(splices) == 1 else sorted(splices, key=_BY_PLACE):
        pieces += (raw[position : splice.start], splice.text)
        position = splice.end
    pieces.append(raw[position:])
    return b"".join(pieces)


def without_member(raw: bytes, start: int, key: str) -> bytes:
    """`raw` without the members named `key` of the object whose brace stands at `start`.

    Each goes with the comma before it, and the first of an object with the one behind it. Raises
    InvalidRequest, as `members` does.
    """
    found = list(members(raw, start))
    cuts: list[Splice] = []
    before: int | None = None  # the end of the member before, once one has stayed
    for index, member in enumerate(found):
        if member.key != key:
            before = member.end
        elif before is not None:
            cuts.append(Splice(before, member.end, b""))
            before = member.end
        else:
            end = found[index + 1].begin if index + 1 < len(found) else member.end
            cuts.append(Splice(member.begin, end, b""))
    return spliced(raw, cuts)


def value_end(raw: bytes, start: int) -> int:
    """Where the value that begins at `start` ends. Raises InvalidRequest if it is nested deeply."""
    return _value_end(raw.decode("latin-1"), start)


def _value_end(text: str, start: int) -> int:
    try:
        _, end = _SCAN(text, start)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None
    return int(end)


def _past_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
