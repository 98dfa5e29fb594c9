"""`/v1/chat/completions`: pieces → what vLLM 0.32 sends, in the field order of recordings."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import orjson

from paceline.sim.words import token_id
from paceline.testing.sim_worker.dialects.chunks import DONE, Chunks, whole_metrics, whole_usage
from paceline.testing.sim_worker.logprobs import chat_logprobs
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.tools import ToolCall
from paceline.testing.sim_worker.writers import Ending, Envelope, Piece


class ChatWriter:
    """One chat completion."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._request = envelope.request
        self._chunks = Chunks(envelope, "chat.completion.chunk")

    def preamble(self) -> bytes:
        return b""

    def opening(self) -> bytes:
        """One event a choice with the role, before any text."""
        return b"".join(self._role(index) for index in range(self._request.n))

    def _role(self, index: int) -> bytes:
        ids = self._request.prompts[0].ids() if self._request.return_token_ids else None
        return b"".join(
            (
                self._chunks.open,
                b'{"index":%d,"delta":{"role":"assistant","content":""}' % index,
                b',"logprobs":null,"finish_reason":null}]',
                self._chunks.usage_so_far(0),
                b',"prompt_token_ids":%b,"prompt_text":null}\n\n' % orjson.dumps(ids),
            )
        )

    def piece(self, piece: Piece) -> bytes:
        delta = self._delta(piece)
        if not delta and piece.finish is None and not self._request.return_token_ids:
            return b""  # markup of a call: tokens that nobody sees
        last = piece.finish is not None
        choice = self._choice(piece, orjson.dumps(delta))
        return self._chunks.chunk(choice, piece.completion_tokens, last=last)

    def _delta(self, piece: Piece) -> dict[str, Any]:
        call = self._request.tool_call
        if call is None:
            return {"content": piece.text}
        told: list[dict[str, Any]] = []
        if call.names_within(piece.offset, piece.text):
            told.append(
                {
                    "id": tool_call_id(),
                    "type": "function",
                    "index": 0,
                    "function": {"name": call.name},
                }
            )
        if arguments := call.arguments_within(piece.offset, piece.text):
            told.append({"index": 0, "function": {"arguments": arguments}})
        return {"content": None, "tool_calls": told} if told else {}

    def _choice(self, piece: Piece, delta: bytes) -> bytes:
        stop = b""
        if piece.finish is not None:
            stop = b',"stop_reason":' + orjson.dumps(piece.stop_reason)
        return b'{"index":%d,"delta":%b,"logprobs":%b,"finish_reason":%b%b,"token_ids":%b}' % (
            piece.index,
            delta,
            orjson.dumps(self._logprobs(piece)),
            orjson.dumps(_finish(piece, self._request.tool_call)),
            stop,
            orjson.dumps(self._token_ids(piece)),
        )

    def _logprobs(self, piece: Piece) -> dict[str, Any] | None:
        top = self._request.top_logprobs
        return None if top is None else chat_logprobs(piece.tokens, top)

    def _token_ids(self, piece: Piece) -> list[int] | None:
        if not self._request.return_token_ids:
            return None
        return [token_id(token) for token in piece.tokens]

    def closing(self, ending: Ending) -> bytes:
        return self._chunks.closing(ending)

    def failure(self, refusal: Refusal) -> bytes | None:
        return refusal.as_event() + DONE

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        request = self._request
        return {
            "id": self._envelope.id,
            "object": "chat.completion",
            "created": self._envelope.created,
            "model": self._envelope.model,
            "choices": [self._whole_choice(piece) for piece in pieces],
            "service_tier": None,
            "system_fingerprint": self._envelope.fingerprint,
            "usage": whole_usage(request.num_prompt_tokens, ending.completion_tokens),
            "prompt_logprobs": None,
            "prompt_token_ids": request.prompts[0].ids() if request.return_token_ids else None,
            "prompt_text": None,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": whole_metrics(ending),
        }

    def _whole_choice(self, piece: Piece) -> dict[str, Any]:
        call = self._request.tool_call
        called = call if call is not None and call.is_whole(piece.text) else None
        return {
            "index": piece.index,
            "message": _message(piece, called),
            "logprobs": self._logprobs(piece),
            "finish_reason": _finish(piece, called),
            "stop_reason": piece.stop_reason,
            "token_ids": self._token_ids(piece),
            "routed_experts": None,
        }


def _message(piece: Piece, call: ToolCall | None) -> dict[str, Any]:
    """A call that was cut short is no call: its markup is the content."""
    message: dict[str, Any] = {"role": "assistant", "content": "" if call else piece.text}
    message |= dict.fromkeys(("refusal", "annotations", "audio", "function_call"))
    if call is not None:
        function = {"name": call.name, "arguments": call.arguments}
        message["tool_calls"] = [{"id": tool_call_id(), "type": "function", "function": function}]
    return {**message, "reasoning": None}


def _finish(piece: Piece, call: ToolCall | None) -> str | None:
    """A tool that the request named ends with `stop`: it was no choice of the model's."""
    called = call is not None and not call.named and piece.finish == "stop"
    return "tool_calls" if called else piece.finish


def tool_call_id() -> str:
    return f"chatcmpl-tool-{secrets.token_hex(8)}"
