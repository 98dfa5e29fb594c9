"""Our passes → the bytes that vLLM 0.32 sends: event streams and whole answers.

Field order, nulls and spacing follow recordings of a real one. An event is put together from bytes
that are the same for the whole request and the JSON of what is new, since a worker may have to send
many thousands a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from paceline.sim.counters import SpecCounts
from paceline.sim.words import token_id
from paceline.testing.sim_worker.logprobs import chat_logprobs, completion_logprobs
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.times import NAMES, RequestTimes

FINGERPRINT = "vllm-0.32.0-simulated"
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one event says of one choice. `finish` is None but for the last.

    `offset` is how many characters of the choice came before, `completion_tokens` how many tokens
    it has with this piece.
    """

    index: int
    text: str
    tokens: Sequence[str]
    offset: int
    completion_tokens: int
    finish: str | None = None
    stop_reason: str | None = None

    def followed_by(self, other: Piece) -> Piece:
        """Both as one piece."""
        return replace(
            other,
            text=self.text + other.text,
            tokens=[*self.tokens, *other.tokens],
            offset=self.offset,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What all events of one answer share."""

    request: GenerateRequest
    id: str
    model: str
    created: int
    fingerprint: str = FINGERPRINT

    def opening(self) -> bytes:
        """An event up to its choices."""
        kind = "chat.completion.chunk" if self.request.chat else "text_completion"
        fields = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return b"data: " + orjson.dumps(fields)[:-1] + b',"choices":['


class EventWriter:
    """The events of one stream."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._request = envelope.request
        self._open = envelope.opening()
        self._fingerprint = b',"system_fingerprint":' + orjson.dumps(envelope.fingerprint)

    def opening(self) -> bytes:
        """Chat: one event a choice with the role, before any text. Completions have none."""
        if not self._request.chat:
            return b""
        return b"".join(self._role(index) for index in range(self._request.n))

    def _role(self, index: int) -> bytes:
        prompt = self._request.prompts[0]
        ids = prompt.ids() if self._request.return_token_ids else None
        return b"".join(
            (
                self._open,
                b'{"index":%d,"delta":{"role":"assistant","content":""}' % index,
                b',"logprobs":null,"finish_reason":null}]',
                self._usage_so_far(0),
                b',"prompt_token_ids":%b,"prompt_text":null}\n\n' % orjson.dumps(ids),
            )
        )

    def piece(self, piece: Piece) -> bytes:
        choice = self._chat_choice(piece) if self._request.chat else self._text_choice(piece)
        usage = self._usage_so_far(piece.completion_tokens)
        # The fingerprint rides on the usage event, or on the finish where there will be none.
        last = piece.finish is not None and not self._request.include_usage
        return b"".join((self._open, choice, b"]", usage, self._fingerprint * last, b"}\n\n"))

    def _chat_choice(self, piece: Piece) -> bytes:
        stop = b""
        if piece.finish is not None:
            stop = b',"stop_reason":' + orjson.dumps(piece.stop_reason)
        return b'{"index":%d,"delta":{"content":%b},"logprobs":%b,"finish_reason":%b%b,%b}' % (
            piece.index,
            orjson.dumps(piece.text),
            self._logprobs(piece),
            orjson.dumps(piece.finish),
            stop,
            self._token_ids(piece),
        )

    def _text_choice(self, piece: Piece) -> bytes:
        return (
            b'{"index":%d,"text":%b,"logprobs":%b,"finish_reason":%b,"stop_reason":%b,'
            b'"prompt_token_ids":%b,%b}'
        ) % (
            piece.index,
            orjson.dumps(piece.text),
            self._logprobs(piece),
            orjson.dumps(piece.finish),
            orjson.dumps(piece.stop_reason),
            self._prompt_ids(piece),
            self._token_ids(piece),
        )

    def _logprobs(self, piece: Piece) -> bytes:
        top = self._request.top_logprobs
        if top is None:
            return b"null"
        if self._request.chat:
            return orjson.dumps(chat_logprobs(piece.tokens, top))
        return orjson.dumps(completion_logprobs(piece.tokens, top, piece.offset))

    def _prompt_ids(self, piece: Piece) -> bytes:
        """With a choice's first piece, if ids were asked for."""
        first = piece.completion_tokens == len(piece.tokens)
        if not (first and self._request.return_token_ids):
            return b"null"
        return orjson.dumps(self._request.prompts[piece.index // self._request.n].ids())

    def _token_ids(self, piece: Piece) -> bytes:
        if not self._request.return_token_ids:
            return b'"token_ids":null'
        return b'"token_ids":' + orjson.dumps([token_id(token) for token in piece.tokens])

    def _usage_so_far(self, completion_tokens: int) -> bytes:
        if not self._request.continuous_usage:
            return b""
        usage = _usage(self._request.num_prompt_tokens, completion_tokens)
        return b',"usage":' + orjson.dumps({**usage, "completion_tokens_details": None})

    def usage(
        self, completion_tokens: int, spec: SpecCounts | None, times: RequestTimes | None = None
    ) -> bytes:
        """The last event but `[DONE]`: no choices, the usage, what was drafted, what it took."""
        usage = _usage(self._request.num_prompt_tokens, completion_tokens)
        told: dict[str, Any] = times.as_json() if times else {}
        if spec is not None:
            told["speculative_decoding"] = _spec(spec)
        metrics = b',"metrics":' + orjson.dumps(told) if told else b""
        return b"".join(
            (self._open, b'],"usage":', orjson.dumps(usage), self._fingerprint, metrics, b"}\n\n")
        )


def whole_answer(
    envelope: Envelope,
    pieces: Sequence[Piece],
    spec: SpecCounts | None,
    times: RequestTimes | None = None,
) -> dict[str, Any]:
    """The JSON of an answer that was not streamed; one piece a choice."""
    request = envelope.request
    total = sum(piece.completion_tokens for piece in pieces)
    usage = {**_usage(request.num_prompt_tokens, total), "prompt_tokens_details": None}
    body: dict[str, Any] = {
        "id": envelope.id,
        "object": "chat.completion" if request.chat else "text_completion",
        "created": envelope.created,
        "model": envelope.model,
        "choices": [_whole_choice(request, piece) for piece in pieces],
        "service_tier": None,
        "system_fingerprint": envelope.fingerprint,
        "usage": {**usage, "completion_tokens_details": None},
    }
    if request.chat:
        ids = request.prompts[0].ids() if request.return_token_ids else None
        body |= {"prompt_logprobs": None, "prompt_token_ids": ids, "prompt_text": None}
    metrics: dict[str, Any] | None = None
    if spec or times:
        told = times.as_json() if times else dict.fromkeys(NAMES)
        metrics = {**told, "speculative_decoding": _detailed(spec) if spec else None}
    return body | {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": metrics}


_NO_EXTRAS = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))


def _whole_choice(request: GenerateRequest, piece: Piece) -> dict[str, Any]:
    ids = [token_id(token) for token in piece.tokens] if request.return_token_ids else None
    ends = {"finish_reason": piece.finish, "stop_reason": piece.stop_reason, "token_ids": ids}
    top = request.top_logprobs
    if request.chat:
        message = {"role": "assistant", "content": piece.text, **_NO_EXTRAS}
        logprobs = chat_logprobs(piece.tokens, top) if top is not None else None
        choice = {"index": piece.index, "message": message, "logprobs": logprobs}
        return {**choice, **ends, "routed_experts": None}
    text_logprobs = completion_logprobs(piece.tokens, top, 0) if top is not None else None
    prompt = request.prompts[piece.index // request.n]
    asked = prompt.ids() if request.return_token_ids else None
    more = {"prompt_logprobs": None, "prompt_token_ids": asked, "routed_experts": None}
    return {"index": piece.index, "text": piece.text, "logprobs": text_logprobs, **ends, **more}


def _usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def _spec(spec: SpecCounts) -> dict[str, Any]:
    return {
        "mean_acceptance_length": spec.mean_acceptance_length,
        "draft_acceptance_rate": spec.acceptance_rate,
        "acceptance_histogram": spec.by_accepted,
        "num_spec_steps": spec.drafts,
        "num_accepted_draft_tokens": spec.accepted,
        "num_draft_tokens": spec.draft_tokens,
        "num_spec_tokens": len(spec.by_accepted) - 1,
    }


def _detailed(spec: SpecCounts) -> dict[str, Any]:
    return {**_spec(spec), "per_step_accepted": None, "per_step_drafted": None}
