"""The output items of a response, each with the events that tell of it.

An answer is one item: a message, or one function call.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from paceline.testing.sim_worker.dialects.chat_events import tool_call_id
from paceline.testing.sim_worker.tools import ToolCall

Events = list[tuple[str, dict[str, Any]]]  # of each its type and its own fields
_AT_FIRST = {"output_index": 0}


class Message:
    """The one output item of a text answer, and its events."""

    def __init__(self) -> None:
        self._id = f"msg_{secrets.token_hex(8)}"
        self._text: list[str] = []
        self._logprobs: list[dict[str, Any]] = []

    def begun(self) -> Events:
        part = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
        return [
            ("response.output_item.added", {"item": self._as_item("in_progress", [])} | _AT_FIRST),
            ("response.content_part.added", {"part": part} | self._place),
        ]

    def grown(self, text: str, logprobs: list[dict[str, Any]] | None) -> Events:
        self._text.append(text)
        self._logprobs += logprobs or []
        told = [_without_bytes(entry) for entry in logprobs or []]
        return [("response.output_text.delta", {"delta": text, "logprobs": told} | self._place)]

    def done(self) -> Events:
        text = {"text": "".join(self._text), "logprobs": []}
        return [
            ("response.output_text.done", text | self._place),
            ("response.content_part.done", {"part": self._part} | self._place),
            ("response.output_item.done", {"item": self.whole()} | _AT_FIRST),
        ]

    def whole(self) -> dict[str, Any]:
        return self._as_item("completed", [self._part] if any(self._text) else [])

    @property
    def _place(self) -> dict[str, Any]:
        return {"content_index": 0, "item_id": self._id} | _AT_FIRST

    @property
    def _part(self) -> dict[str, Any]:
        text = {"annotations": [], "text": "".join(self._text), "type": "output_text"}
        return {**text, "logprobs": self._logprobs or None}

    def _as_item(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        own = {"id": self._id, "content": content, "role": "assistant"}
        return {**own, "status": status, "type": "message", "phase": None}


class FunctionCall:
    """The one output item of an answer that calls a function, and its events."""

    def __init__(self, call: ToolCall) -> None:
        self._id = f"fc_{secrets.token_hex(8)}"
        self._call_id = tool_call_id()
        self._name = call.name
        self._arguments: list[str] = []

    def begun(self) -> Events:
        return [("response.output_item.added", {"item": self._as_item("in_progress")} | _AT_FIRST)]

    def grown(self, arguments: str) -> Events:
        self._arguments.append(arguments)
        delta = {"delta": arguments, "item_id": self._id} | _AT_FIRST
        return [("response.function_call_arguments.delta", delta)]

    def done(self) -> Events:
        told = {"arguments": "".join(self._arguments), "item_id": self._id, "name": self._name}
        return [
            ("response.function_call_arguments.done", told | _AT_FIRST),
            ("response.output_item.done", {"item": self.whole()} | _AT_FIRST),
        ]

    def whole(self) -> dict[str, Any]:
        return self._as_item("completed")

    def _as_item(self, status: str) -> dict[str, Any]:
        return {
            "arguments": "".join(self._arguments),
            "call_id": self._call_id,
            "name": self._name,
            "type": "function_call",
            "id": self._id,
            "async": None,
            "caller": None,
            "namespace": None,
            "status": status,
        }


def in_order(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A token's log-probability in the field order of this dialect."""
    told = {"top_logprobs": [in_order(other) for other in entry.get("top_logprobs", ())]}
    own = {"token": entry["token"], "bytes": entry["bytes"], "logprob": entry["logprob"]}
    return own | (told if "top_logprobs" in entry else {})


def _without_bytes(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Streamed log-probabilities leave out the tokens' bytes."""
    told = [_without_bytes(other) for other in entry.get("top_logprobs", ())]
    listed = {"top_logprobs": told} if "top_logprobs" in entry else {}
    return {"token": entry["token"], "logprob": entry["logprob"], **listed}
