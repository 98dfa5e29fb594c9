"""The dialect of Anthropic's Messages API.

Source: Anthropic's API reference, "Streaming messages"; vLLM 0.32, `anthropic/serving.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from paceline.core.chunks import Kind, json_or_none
from paceline.core.error_shapes import anthropic_type, status_of
from paceline.core.fields import mapping
from paceline.core.named_events import (
    OTHER,
    first_named,
    may_be_named,
    named_event,
    read_named,
    type_of,
)
from paceline.errors import PacelineError

_ENDS = frozenset({"message_delta", "message_stop", "error"})
_END_LINES = frozenset(name.encode() for name in _ENDS)
_PINGS = frozenset({"ping"})


class MessagesDialect:
    def __init__(self) -> None:
        self._complete = False

    @property
    def complete(self) -> bool:
        """Once it has said why it stopped, like a chunk's finish reason without `[DONE]`."""
        return self._complete

    def passes(self, data: bytes) -> bool:
        return data.endswith(b"\n\n") and not any(name in data for name in _END_LINES)

    def read(self, block: bytes) -> tuple[Kind, dict[str, Any]]:
        if not may_be_named(block, _END_LINES):
            return OTHER
        name, event = read_named(block, _ENDS)
        if not name:
            return OTHER
        if name == "message_delta":
            stopped = bool(mapping(event.get("delta")).get("stop_reason"))
            self._complete = self._complete or stopped
            return (Kind.USAGE, event) if event.get("usage") else OTHER
        self._complete = True
        return Kind.DONE, event

    def first_event(self, blocks: Sequence[bytes]) -> bytes | None:
        return first_named(blocks, without=_PINGS)

    def rejection(self, data: bytes | None) -> tuple[int, bytes] | None:
        event = json_or_none(data)
        if data is None or not isinstance(event, dict) or type_of(event) != "error":
            return None
        return status_of(mapping(event.get("error"))), data

    def error_event(self, error: PacelineError) -> bytes:
        """Anthropic's `error` event; its clients raise for the name alone (anthropic-sdk-python
        `_streaming.py`, anthropic-sdk-typescript `core/streaming.ts`)."""
        named = {"type": anthropic_type(error.status), "message": error.message}
        return named_event("error", orjson.dumps({"type": "error", "error": named}))
