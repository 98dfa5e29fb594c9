"""The dialect of OpenAI's Responses API: events with names and numbers.

Source: OpenAI's API reference, "Streaming events"; vLLM 0.32, `openai/responses/serving.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from paceline.core.chunks import Kind, json_or_none
from paceline.core.error_shapes import openai_error, status_of
from paceline.core.fields import integer, mapping
from paceline.core.named_events import (
    OTHER,
    first_named,
    may_be_named,
    named_event,
    read_named,
    type_of,
)
from paceline.errors import PacelineError
from paceline_client.sse import event_data

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
_END_LINES = frozenset(name.encode() for name in _ENDS)
_OPENINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
"""Sent by vLLM before the engine has answered at all: not yet a sign of work."""


class ResponsesDialect:
    def __init__(self) -> None:
        self._ended = False
        self._last = b""  # the last blocks but comments: an error of ours needs their number

    @property
    def complete(self) -> bool:
        return self._ended

    def passes(self, data: bytes) -> bool:
        if not data.endswith(b"\n\n") or any(name in data for name in _END_LINES):
            return False
        self._last = data
        return True

    def read(self, block: bytes) -> tuple[Kind, dict[str, Any]]:
        if not block.startswith(b":"):
            self._last = block
        if not may_be_named(block, _END_LINES):
            return OTHER
        name, event = read_named(block, _ENDS)
        if not name:
            return OTHER
        self._ended = True
        return Kind.DONE, event

    def first_event(self, blocks: Sequence[bytes]) -> bytes | None:
        return first_named(blocks, without=_OPENINGS)

    def rejection(self, data: bytes | None) -> tuple[int, bytes] | None:
        """Of an `error`; a response that failed is an answer, with its id and its own status."""
        event = json_or_none(data)
        if not isinstance(event, dict) or type_of(event) != "error":
            return None
        error = event.get("error") or event
        if not isinstance(error, Mapping):
            error = {"message": error}
        said = {name: error.get(name) for name in ("message", "type", "param", "code")}
        return status_of(error), orjson.dumps({"error": said})

    def error_event(self, error: PacelineError) -> bytes:
        """OpenAI's `error` event, which its clients would hand over as one event among others; they
        raise where the data has an `error` (openai-python `_streaming.py`, openai-node
        `core/streaming.ts`), so it stands there too."""
        data = {
            "type": "error",
            "sequence_number": self._next_number(),
            "code": error.code,
            "message": error.message,
            "param": error.param,
            "error": openai_error(error),
        }
        return named_event("error", orjson.dumps(data))

    def _next_number(self) -> int:
        block = self._last.rstrip().rpartition(b"\n\n")[2]
        last = integer(mapping(json_or_none(event_data(block))).get("sequence_number"))
        return 0 if last is None else last + 1
