"""`/v1/messages`: pieces → what vLLM 0.32 sends, in the field order of recordings.

vLLM translates the events of a chat completion one by one. So an answer has chat's id, and
`message_start` comes with the first token. An error within the stream is not translated but fails
to be read as a chunk: the client gets an `internal_error` that tells of that, and no
`message_stop`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from paceline.testing.sim_worker.dialects.chat_events import tool_call_id
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.tools import ToolCall
from paceline.testing.sim_worker.writers import Ending, Envelope, Piece


class MessagesWriter:
    """One message: a block of text, or one tool call."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._request = envelope.request
        self._in_block = False
        self._arguments = ""
        self._last: Piece | None = None

    def preamble(self) -> bytes:
        return b""

    def opening(self) -> bytes:
        message: dict[str, Any] = {
            "id": self._envelope.id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": self._envelope.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage(0),
        }
        return _event("message_start", {"message": message})

    def piece(self, piece: Piece) -> bytes:
        self._last = piece
        call = self._request.tool_call
        if call is not None:
            return self._called(piece, call)
        if not piece.text:
            return b""
        begin = b"" if self._in_block else self._begin({"type": "text", "text": ""})
        return begin + _delta({"type": "text_delta", "text": piece.text})

    def _called(self, piece: Piece, call: ToolCall) -> bytes:
        events = b""
        if call.names_within(piece.offset, piece.text):
            events = self._begin(_tool_use(call, {}))
        arguments = call.arguments_within(piece.offset, piece.text)
        self._arguments += arguments
        if not arguments:
            return events
        return events + _delta({"type": "input_json_delta", "partial_json": arguments})

    def _begin(self, block: Mapping[str, Any]) -> bytes:
        self._in_block = True
        return _event("content_block_start", {"content_block": block, "index": 0})

    def closing(self, ending: Ending) -> bytes:
        call = self._request.tool_call
        called = call is not None and self._arguments == call.arguments
        stop = _event("content_block_stop", {"index": 0}) if self._in_block else b""
        delta = _stop(self._last, called=called)
        usage = self._usage(ending.completion_tokens)
        end = _event("message_delta", {"delta": delta, "usage": usage})
        return stop + end + _event("message_stop", {})

    def failure(self, refusal: Refusal) -> bytes | None:
        """What a fault says in Anthropic's own shape goes out as it is."""
        body = refusal.body
        if isinstance(body, dict) and body.get("type") == "error":
            return b"event: error\ndata: %b\n\n" % orjson.dumps(body)
        message = _unreadable(refusal.body)
        return _event("error", {"error": {"type": "internal_error", "message": message}})

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        (piece,) = pieces
        call = self._request.tool_call
        called = call is not None and call.is_whole(piece.text)
        if call is not None and called:
            block = _tool_use(call, json.loads(call.arguments))
        else:
            block = {"type": "text", "text": piece.text}
        stop = _stop(piece, called=called)
        return {
            "id": self._envelope.id,
            "type": "message",
            "role": "assistant",
            "content": [block],
            "model": self._envelope.model,
            **{key: value for key, value in stop.items() if value is not None},
            "usage": self._usage(ending.completion_tokens),
        }

    def _usage(self, output_tokens: int) -> dict[str, int]:
        return {"input_tokens": self._request.num_prompt_tokens, "output_tokens": output_tokens}


def _tool_use(call: ToolCall, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_call_id(), "name": call.name, "input": arguments}


def _stop(piece: Piece | None, *, called: bool) -> dict[str, str | None]:
    """Why it stopped; the length wins over a call, and a call over a stop sequence."""
    if piece is not None and piece.finish == "length":
        return {"stop_reason": "max_tokens", "stop_sequence": None}
    if called:
        return {"stop_reason": "tool_use", "stop_sequence": None}
    if piece is not None and piece.stop_reason is not None:
        return {"stop_reason": "stop_sequence", "stop_sequence": piece.stop_reason}
    return {"stop_reason": "end_turn", "stop_sequence": None}


def _event(kind: str, fields: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def _delta(delta: Mapping[str, Any]) -> bytes:
    return _event("content_block_delta", {"delta": delta, "index": 0})


def _unreadable(body: object) -> str:
    """The schema's complaint about an error where a chunk was expected."""
    given = repr(body)
    shown = given if len(given) <= 50 else f"{given[:25]}...{given[-24:]}"
    problem = f"Field required [type=missing, input_value={shown}, input_type=dict]"
    lines = [f"{field}\n  {problem}" for field in ("model", "choices")]
    return "\n".join(["2 validation errors for ChatCompletionStreamResponse", *lines])
