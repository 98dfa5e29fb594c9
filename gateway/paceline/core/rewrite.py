"""The named rewrites of a request body, made on the client's own bytes.

A body is never parsed and written anew: numbers, key order, escapes, spacing and unknown fields go
upstream as they came. What changes is spliced in: the model's upstream name, and
`stream_options.include_usage` for clients who did not ask for usage. Keys compare after unescaping,
and a rewrite changes every top-level occurrence. (Of duplicates the last counts, in the worker too;
where that one needs no change, none is made.)

All functions expect a body that a strict JSON reader has accepted as an object. They raise
InvalidRequest for objects beyond the bounds of `members`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from paceline.errors import InvalidRequest

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MODEL = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*(' + _STRING + rb")", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_SCAN: Any = cast(Any, json.JSONDecoder(parse_int=str, parse_float=str, strict=False)).scan_once

MAX_MEMBERS = 4096
"""Of one object that is walked through: bounds what a body of duplicates can cost."""


@dataclass(frozen=True, slots=True)
class Member:
    """One `key: value` of an object: the key unescaped, the value's place in the body."""

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Splice:
    """Bytes `start` to `end` become `text`."""

    start: int
    end: int
    text: bytes


def wants_usage_added(body: Mapping[str, Any]) -> bool:
    """Whether a streamed request needs `include_usage` from us, to be taken out again.

    Not where the client asked for usage itself, nor where it asked for continuous usage alone,
    which the worker ignores and which would then appear in every chunk.
    """
    if body.get("stream") is not True:
        return False
    options = body.get("stream_options")
    if options is None:
        return True
    if not isinstance(options, dict) or options.get("continuous_usage_stats"):
        return False
    return options.get("include_usage") in (None, False)


def rewrite(raw: bytes, body: Mapping[str, Any], *, model: str, add_usage: bool) -> bytes:
    """`raw` with its model named `model` and, if asked, with usage in its stream.

    `body` is `raw` as parsed; one that names no model gets none. Where nothing needs to change,
    `raw` itself comes back.
    """
    splices: list[Splice] = []
    if "model" in body and body["model"] != model:
        splices += _name_model(raw, model)
    if add_usage:
        splices += _add_usage(raw, body)
    return _apply(raw, splices) if splices else raw


def _name_model(raw: bytes, model: str) -> Iterator[Splice]:
    name = json.dumps(model).encode()
    only = _only_model(raw)
    if only is not None:
        yield Splice(*only, name)
        return
    for member in members(raw, raw.index(b"{")):
        if member.key == "model":
            yield Splice(member.start, member.end, name)


def _only_model(raw: bytes) -> tuple[int, int] | None:
    r"""Where the model's value stands, found without a walk through the body, if that is safe.

    The body has a top-level model. If `"model"` occurs once and no escape can spell one of its
    letters (`\u006d` and so on), that occurrence is it. Inside a string, its last quote would
    stand behind a backslash; as the end of a string it would be a second occurrence.
    """
    if raw.count(b'"model"') != 1 or b"\\u006" in raw:
        return None
    found = _MODEL.search(raw)
    return found.span(1) if found else None


def _add_usage(raw: bytes, body: Mapping[str, Any]) -> Iterator[Splice]:
    if "stream_options" not in body:
        end = raw.rindex(b"}")
        yield Splice(end, end, b',"stream_options":{"include_usage":true}')
        return
    for member in members(raw, raw.index(b"{")):
        if member.key == "stream_options":
            yield from _usage_in(raw, member)


def _usage_in(raw: bytes, options: Member) -> Iterator[Splice]:
    """`include_usage: true` in one stream_options, null or object; anything else is left alone."""
    if raw[options.start : options.end] == b"null":
        yield Splice(options.start, options.end, b'{"include_usage":true}')
    if raw[options.start : options.start + 1] != b"{":
        return
    inside = list(members(raw, options.start))
    for member in inside:
        if member.key == "include_usage":
            yield Splice(member.start, member.end, b"true")
    if not any(member.key == "include_usage" for member in inside):
        comma = b"," if inside else b""
        yield Splice(options.end - 1, options.end - 1, comma + b'"include_usage":true')


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
        yield Member(json.loads(raw[position:key_end]), value, end)
        position = _past_space(text, end)
        if text[position] == ",":
            position = _past_space(text, position + 1)
    raise InvalidRequest(f"the body has an object of more than {MAX_MEMBERS} members")


def _value_end(text: str, start: int) -> int:
    try:
        _, end = _SCAN(text, start)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None
    return int(end)


def _past_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _apply(raw: bytes, splices: list[Splice]) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for splice in sorted(splices, key=lambda splice: splice.start):
        pieces += (raw[position : splice.start], splice.text)
        position = splice.end
    return b"".join([*pieces, raw[position:]])
