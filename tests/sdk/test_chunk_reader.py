"""Bytes of an event stream → chunks, and what is no good stream said with its type."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paceline_client import BadStreamError, IncompleteStreamError, StreamErrorEvent
from paceline_client.answers import ChunkReader

DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(text: str, finish: str | None = None, index: Any = 0) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}


def read(*events: bytes, num_choices: int = 1) -> int:
    """How many chunks there are in a whole stream."""
    reader = ChunkReader(num_choices=num_choices)
    count = sum(1 for one in events for _ in reader.feed(one))
    reader.end()
    return count


def test_a_whole_stream_may_end_with_or_without_its_mark() -> None:
    assert read(event(chunk("a")), event(chunk("b", "stop")), DONE) == 2
    assert read(event(chunk("a")), event(chunk("b", "stop"))) == 2


@pytest.mark.parametrize("end", [b"", DONE])
@pytest.mark.parametrize("events", [[], [event(chunk("a"))], [event(chunk("a", ""))]])
def test_without_its_finish_it_is_incomplete(events: list[bytes], end: bytes) -> None:
    with pytest.raises(IncompleteStreamError):
        read(*events, end)


def test_every_choice_asked_for_must_finish() -> None:
    one = event(chunk("a", "stop"))
    with pytest.raises(IncompleteStreamError):
        read(one, DONE, num_choices=2)
    assert read(one, event(chunk("b", "length", 1)), DONE, num_choices=2) == 2


@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": "boom", "code": 500}},
        {"error": "boom"},
        {"error": {}},
        {"object": "error", "message": "boom", "code": 400},
    ],
)
def test_an_error_event_is_an_error_of_its_own(value: dict[str, Any]) -> None:
    with pytest.raises(StreamErrorEvent):
        read(event(chunk("a")), event(value), DONE)


ODD = [b"data: {half\n\n", b"data: " + b"[" * 200_000 + b"\n\n"]
ODD += [event(5), event({"choices": 5}), event({"choices": [None]})]


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_chunk_is_never_skipped(odd: bytes) -> None:
    with pytest.raises(BadStreamError):
        read(event(chunk("a")), odd, event(chunk("b", "stop")), DONE)


def test_an_odd_index_is_the_first() -> None:
    assert read(event(chunk("a", "stop", index=[])), DONE) == 1
