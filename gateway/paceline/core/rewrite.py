"""The named rewrites of a request body, made on the client's own bytes.

A body is never parsed and written anew: numbers, key order, escapes, spacing and unknown fields go
upstream as they came. What changes is spliced in: the model's upstream name,
`stream_options.include_usage` for clients who did not ask for usage (with hints
`continuous_usage_stats` too), and `vllm_xargs.paceline_k` for workers that let a request say how
many tokens to draft. Keys compare after unescaping, and a rewrite changes every top-level
occurrence. (Of duplicates the last counts, in the worker too; where that one needs no change, none
is made.)

All functions expect a body that a strict JSON reader has accepted as an object. They raise
InvalidRequest for objects beyond the bounds of `members`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from paceline.core.compiled import renamed
from paceline.core.splices import Member, Splice, members, spliced
from paceline.core.types import Endpoint

_INCLUDE, _CONTINUOUS = "include_usage", "continuous_usage_stats"
_K = "paceline_k"
_CHUNKED = frozenset([Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS])
"""That have `stream_options` and `vllm_xargs`."""


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


def wants_continuous_usage_added(body: Mapping[str, Any]) -> bool:
    """Whether a streamed request with hints needs `continuous_usage_stats` from us.

    Hints tell how many tokens an event brings, which only the usage in each chunk says. The client
    then gets what it asked for: without its own `continuous_usage_stats` no usage in its chunks,
    without `include_usage` none at all, which is what the worker makes of the former alone. So with
    hints usage is wanted from us wherever the client's options are such that we understand them.
    """
    options = body.get("stream_options")
    options = {} if options is None else options
    if body.get("stream") is not True or not isinstance(options, dict):
        return False
    given = [options.get(_INCLUDE), options.get(_CONTINUOUS)]
    return all(value is None or isinstance(value, bool) for value in given) and not all(given)


class UsageAdded(Struct, frozen=True, kw_only=True):
    """What a client did not ask for: added to its request, and taken out of its stream again."""

    chunk: bool = False  # `include_usage`: the chunk that has usage and no choices
    members: bool = False  # `continuous_usage_stats`: the `usage` of every other chunk


_NONE_ADDED, _CHUNK_ADDED = UsageAdded(), UsageAdded(chunk=True)


def usage_to_add(endpoint: Endpoint, body: Mapping[str, Any], *, hints: bool) -> UsageAdded:
    """What to add to a request, with or without hints in its stream.

    Only chat and completions have such options; responses and messages say their usage anyway, and
    of the others nothing is learned.
    """
    if endpoint not in _CHUNKED:
        return _NONE_ADDED
    if hints and wants_continuous_usage_added(body):
        asked = (body.get("stream_options") or {}).get(_INCLUDE)
        return UsageAdded(chunk=not asked, members=True)
    return _CHUNK_ADDED if wants_usage_added(body) else _NONE_ADDED


def rewrite(
    raw: bytes,
    body: Mapping[str, Any],
    *,
    model: str,
    add_usage: bool = False,
    add_continuous_usage: bool = False,
    k: int | None = None,
) -> bytes:
    """`raw` with its model named `model` and, if asked, with usage in its stream and `k` tokens
    to draft.

    `body` is `raw` as parsed; one that names no model gets none. Where nothing needs to change,
    `raw` itself comes back.
    """
    if "model" in body and body["model"] != model:
        raw = _named(raw, _quoted(model))
    if not (add_usage or add_continuous_usage or k is not None):
        return raw
    splices: list[Splice] = []
    added = {_INCLUDE: add_usage, _CONTINUOUS: add_continuous_usage}
    if wanted := {name: b"true" for name, is_wanted in added.items() if is_wanted}:
        splices += _set_in(raw, body, "stream_options", wanted)
    if k is not None:
        splices += _set_in(raw, body, "vllm_xargs", {_K: b"%d" % k})
    return spliced(raw, splices)


def wants_k(endpoint: Endpoint, body: Mapping[str, Any]) -> bool:
    """Whether a worker that lets requests say how many tokens to draft may be told by us.

    Not where the client has said so itself, nor in families that have no `vllm_xargs`, nor where
    what stands there is nothing that we understand.
    """
    given = body.get("vllm_xargs")
    if endpoint not in _CHUNKED:
        return False
    return given is None or (isinstance(given, dict) and _K not in given)


def _named(raw: bytes, name: bytes) -> bytes:
    found = renamed(raw, name)
    if found is not None:
        return found
    walked = members(raw, raw.index(b"{"))
    return spliced(raw, [Splice(at.start, at.end, name) for at in walked if at.key == "model"])


@lru_cache(maxsize=1024)
def _quoted(model: str) -> bytes:
    return json.dumps(model).encode()


def _set_in(
    raw: bytes, body: Mapping[str, Any], name: str, values: Mapping[str, bytes]
) -> Iterator[Splice]:
    """`values` set in the top-level object `name`, which is made where there is none."""
    if name not in body:
        end = raw.rindex(b"}")
        yield Splice(end, end, b',"%s":{%s}' % (name.encode(), _listed(values)))
        return
    for member in members(raw, raw.index(b"{")):
        if member.key == name:
            yield from _set_inside(raw, member, values)


def _set_inside(raw: bytes, options: Member, values: Mapping[str, bytes]) -> Iterator[Splice]:
    """The same in one value of that name, null or object; anything else is left alone."""
    if raw[options.start : options.end] == b"null":
        yield Splice(options.start, options.end, b"{%s}" % _listed(values))
    if raw[options.start : options.start + 1] != b"{":
        return
    inside = list(members(raw, options.start))
    for member in inside:
        if member.key in values:
            yield Splice(member.start, member.end, values[member.key])
    there = {member.key for member in inside}
    missing = {name: value for name, value in values.items() if name not in there}
    if missing:
        comma = b"," if inside else b""
        yield Splice(options.end - 1, options.end - 1, comma + _listed(missing))


def _listed(values: Mapping[str, bytes]) -> bytes:
    return b",".join([b'"%s":%s' % (name.encode(), value) for name, value in values.items()])
