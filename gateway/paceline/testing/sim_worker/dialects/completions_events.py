"""`/v1/completions`: pieces → what vLLM 0.32 sends, in the field order of recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from paceline.sim.words import token_id
from paceline.testing.sim_worker.dialects.chunks import DONE, Chunks, whole_metrics, whole_usage
from paceline.testing.sim_worker.logprobs import completion_logprobs
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.writers import Ending, Envelope, Piece


class CompletionsWriter:
    """One completion of one prompt or several."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._request = envelope.request
        self._chunks = Chunks(envelope, "text_completion")

    def preamble(self) -> bytes:
        return b""

    def opening(self) -> bytes:
        return b""

    def piece(self, piece: Piece) -> bytes:
        first = piece.completion_tokens == len(piece.tokens)
        choice = (
            b'{"index":%d,"text":%b,"logprobs":%b,"finish_reason":%b,"stop_reason":%b,'
            b'"prompt_token_ids":%b,"token_ids":%b}'
        ) % (
            piece.index,
            orjson.dumps(piece.text),
            orjson.dumps(self._logprobs(piece)),
            orjson.dumps(piece.finish),
            orjson.dumps(piece.stop_reason),
            orjson.dumps(self._prompt_ids(piece) if first else None),
            orjson.dumps(self._token_ids(piece)),
        )
        last = piece.finish is not None
        return self._chunks.chunk(choice, piece.completion_tokens, last=last)

    def _logprobs(self, piece: Piece) -> dict[str, Any] | None:
        top = self._request.top_logprobs
        return None if top is None else completion_logprobs(piece.tokens, top, piece.offset)

    def _prompt_ids(self, piece: Piece) -> list[int] | None:
        if not self._request.return_token_ids:
            return None
        return self._request.prompts[piece.index // self._request.n].ids()

    def _token_ids(self, piece: Piece) -> list[int] | None:
        if not self._request.return_token_ids:
            return None
        return [token_id(token) for token in piece.tokens]

    def closing(self, ending: Ending) -> bytes:
        return self._chunks.closing(ending)

    def failure(self, refusal: Refusal) -> bytes | None:
        return refusal.as_event() + DONE

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        return {
            "id": self._envelope.id,
            "object": "text_completion",
            "created": self._envelope.created,
            "model": self._envelope.model,
            "choices": [self._whole_choice(piece) for piece in pieces],
            "service_tier": None,
            "system_fingerprint": self._envelope.fingerprint,
            "usage": whole_usage(self._request.num_prompt_tokens, ending.completion_tokens),
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": whole_metrics(ending),
        }

    def _whole_choice(self, piece: Piece) -> dict[str, Any]:
        return {
            "index": piece.index,
            "text": piece.text,
            "logprobs": self._logprobs(piece),
            "finish_reason": piece.finish,
            "stop_reason": piece.stop_reason,
            "token_ids": self._token_ids(piece),
            "prompt_logprobs": None,
            "prompt_token_ids": self._prompt_ids(piece),
            "routed_experts": None,
        }
