"""`/v1/responses`: pieces → what vLLM 0.32 sends, in the field order of recordings.

A stream says `response.created` and `response.in_progress` at once, before the prompt is computed,
and ends with `response.completed`, whose status is `incomplete` where the answer was cut: there is
no `response.incomplete`. There is no error event either: vLLM 0.32 fails to write its own error as
an event of this stream, and the connection breaks off (vllm-project/vllm#55284).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from paceline.testing.sim_worker.dialects.responses_items import (
    Events,
    FunctionCall,
    Message,
    in_order,
)
from paceline.testing.sim_worker.logprobs import chat_logprobs
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.tools import ToolCall
from paceline.testing.sim_worker.writers import Ending, Envelope, Piece

_NO_PARAMS = {"kv_transfer_params": None, "ec_transfer_params": None}
_NO_MESSAGES = {"input_messages": None, "output_messages": None}


class ResponsesWriter:
    """One response: a message, or one function call."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._request = envelope.request
        self._events = 0
        self._item: Message | FunctionCall | None = None
        self._finish: str | None = None

    def _event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        """The fields of recordings are in alphabetical order, `type` last but for a name."""
        numbered = {**fields, "sequence_number": self._events, "type": kind}
        self._events += 1
        name = {"name": numbered.pop("name")} if "name" in fields else {}
        ordered = {key: numbered[key] for key in sorted(numbered)}
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({**ordered, **name}))

    def preamble(self) -> bytes:
        response = self._response("in_progress", [], None)
        kinds = ("response.created", "response.in_progress")
        return b"".join(self._event(kind, {"response": response}) for kind in kinds)

    def opening(self) -> bytes:
        return b""

    def piece(self, piece: Piece) -> bytes:
        self._finish = piece.finish or self._finish
        call = self._request.tool_call
        events = self._text(piece) if call is None else self._called(piece, call)
        return b"".join(self._event(kind, fields) for kind, fields in events)

    def _text(self, piece: Piece) -> Events:
        if not piece.text:
            return []
        begins = [] if self._item else self._begin(Message())
        assert isinstance(self._item, Message)
        logprobs = self._logprobs(piece)
        return begins + self._item.grown(piece.text, logprobs)

    def _called(self, piece: Piece, call: ToolCall) -> Events:
        named = call.names_within(piece.offset, piece.text)
        events = self._begin(FunctionCall(call)) if named else []
        arguments = call.arguments_within(piece.offset, piece.text)
        if arguments and isinstance(self._item, FunctionCall):
            events += self._item.grown(arguments)
        return events

    def _begin(self, item: Message | FunctionCall) -> Events:
        self._item = item
        return item.begun()

    def _logprobs(self, piece: Piece) -> list[dict[str, Any]] | None:
        top = self._request.top_logprobs
        if top is None:
            return None
        return [in_order(entry) for entry in chat_logprobs(piece.tokens, top)["content"]]

    def closing(self, ending: Ending) -> bytes:
        done = self._item.done() if self._item else []
        output = [self._item.whole()] if self._item else []
        events = [self._event(kind, fields) for kind, fields in done]
        response = self._response(_status(self._finish), output, ending)
        return b"".join((*events, self._event("response.completed", {"response": response})))

    def failure(self, refusal: Refusal) -> bytes | None:
        """The connection is cut, unless what a fault says is an event of this dialect's own."""
        body = refusal.body
        kind = body.get("type") if isinstance(body, dict) else None
        if not isinstance(kind, str) or not isinstance(body, dict):
            return None
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(body))

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        (piece,) = pieces
        call = self._request.tool_call
        item: Message | FunctionCall
        if call is not None and call.is_whole(piece.text):
            item = FunctionCall(call)
            item.grown(call.arguments)
        else:
            item = Message()
            item.grown(piece.text, self._logprobs(piece))
        return self._response(_status(piece.finish), [item.whole()], ending)

    def _response(
        self, status: str, output: list[dict[str, Any]], ending: Ending | None
    ) -> dict[str, Any]:
        told = self._request.told
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        times = ending.times if ending else None
        metrics = {"metrics": {**times.as_json(), "speculative_decoding": None}} if times else {}
        return {
            "id": self._envelope.id,
            "created_at": self._envelope.created,
            "incomplete_details": cut,
            "instructions": told["instructions"],
            "metadata": told["metadata"],
            "model": self._envelope.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": told["parallel_tool_calls"],
            "temperature": told["temperature"],
            "tool_choice": told["tool_choice"],
            "tools": told["tools"],
            "top_p": told["top_p"],
            "background": False,
            "max_output_tokens": self._request.max_tokens,
            "max_tool_calls": told["max_tool_calls"],
            "previous_response_id": None,
            "prompt": None,
            "reasoning": told["reasoning"],
            "service_tier": told["service_tier"],
            "status": status,
            "text": told["text"],
            "top_logprobs": self._request.top_logprobs,
            "truncation": told["truncation"],
            "usage": self._usage(ending) if ending else None,
            "user": told["user"],
            **metrics,
            "presence_penalty": told["presence_penalty"],
            "frequency_penalty": told["frequency_penalty"],
            **_NO_PARAMS,
            **_NO_MESSAGES,
        }

    def _usage(self, ending: Ending) -> dict[str, Any]:
        prompt, completion = self._request.num_prompt_tokens, ending.completion_tokens
        cached = {"cached_tokens": 0, "cache_write_tokens": 0}
        reasoning = {"reasoning_tokens": 0, "tool_output_tokens": 0}
        return {
            "input_tokens": prompt,
            "input_tokens_details": {
                **cached,
                "input_tokens_per_turn": [],
                "cached_tokens_per_turn": [],
            },
            "output_tokens": completion,
            "output_tokens_details": {
                **reasoning,
                "output_tokens_per_turn": [],
                "tool_output_tokens_per_turn": [],
            },
            "total_tokens": prompt + completion,
        }


def _status(finish: str | None) -> str:
    return "incomplete" if finish == "length" else "completed"
