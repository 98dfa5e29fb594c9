"""Events that say what they are: by their `event:` line, or by the `type` in their data."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Any

from paceline.core.chunks import Kind, json_or_none
from paceline_client.sse import event_data

# JSON has no bare line ends, so what stands behind one is a line of the block.
_EVENT_LINE = re.compile(rb"(?:^|[\r\n])event: ?([^\r\n]*)")

OTHER: tuple[Kind, dict[str, Any]] = (Kind.OTHER, {})
"""What most blocks are."""


def may_be_named(block: bytes, names: frozenset[bytes]) -> bool:
    """Whether an event could be one of `names`, at a look; `read_named` then knows.

    Where the event's line opens the block and ends in LF, as workers write it, that line alone
    decides, at a third of what searching the block costs.
    """
    if block.startswith(b"event: "):
        line = block[7 : block.find(b"\n", 7)]
        if b"\r" not in line:
            return line in names
    return any(name in block for name in names)


def read_named(block: bytes, names: Container[str]) -> tuple[str, dict[str, Any]]:
    """An event's name and its data, if it is one of `names`; two times nothing if not.

    The `event:` line decides without a look at the data. A bare `{"error": …}` is an `error`.
    """
    line = _EVENT_LINE.search(block)
    name = line[1].decode("utf-8", "replace") if line else ""
    if name and name not in names:
        return "", {}
    event = json_or_none(event_data(block))
    if not isinstance(event, dict):
        return "", {}
    name = name or type_of(event)
    return (name, event) if name in names else ("", {})


def first_named(blocks: Sequence[bytes], *, without: Container[str]) -> bytes | None:
    """The data of the first event that is none of `without`; comments are not events."""
    for block in blocks:
        data = event_data(block, first=True)
        if data is not None and not read_named(block, without)[0]:
            return data
    return None


def named_event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def type_of(event: dict[str, Any]) -> str:
    """The `type` in an event's data; an error without one is an error all the same."""
    kind = event.get("type")
    if isinstance(kind, str):
        return kind
    return "error" if isinstance(event.get("error"), dict | str) else ""
