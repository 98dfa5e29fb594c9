"""`/v1/audio/transcriptions`: its form, and the events and JSON of a transcript.

As in vLLM 0.32 `response_format` may be `json` or `text`, and both are answered with the same JSON;
a stream's chunks are those of a chat without role, its usage is asked for with
`stream_include_usage`. Left out: `verbose_json`, which vLLM refuses too for models that tell no
times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import orjson

from paceline.core.types import Workload
from paceline.sim.writer import Writing
from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.audio import duration_s, heard, num_audio_tokens
from paceline.testing.sim_worker.dialects.chunks import DONE, usage_of
from paceline.testing.sim_worker.fields import Body, require
from paceline.testing.sim_worker.forms import form_flag, form_integer
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import Prompt
from paceline.testing.sim_worker.refusals import Refusal, bad_value
from paceline.testing.sim_worker.requests import (
    GenerateRequest,
    accepted,
    check_model,
    output_limit,
)
from paceline.testing.sim_worker.writers import Ending, Envelope, Piece

_DECODER = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")  # Whisper's
_STREAM_OPTIONS = ("stream_include_usage", "stream_continuous_usage_stats")


def read_transcription(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """Raises Refusal with vLLM's status and body."""
    require(body, "file")
    recording = body["file"]
    if not isinstance(recording, bytes):
        text = "Expected 'file' to be a file-like object, not 'str'."
        raise refusals.error(422, "Unprocessable Entity", text)
    stream = form_flag(body, "stream")
    usage, continuous = (form_flag(body, option) for option in _STREAM_OPTIONS)
    if (usage or continuous) and not stream:
        text = "Stream options can only be defined when `stream=True`."
        raise bad_value(text, _STREAM_OPTIONS[0 if usage else 1])
    check_model(body, options)
    _check_format(body, options)
    seconds = duration_s(recording)
    fields = {
        name: form_integer(body, name) for name in ("max_completion_tokens", "seed") if name in body
    }
    return accepted(
        fields,
        options,
        (Prompt(turns=(), tokens=_DECODER),),
        output_limit(fields, options, "max_completion_tokens", options.max_model_len),
        stream=stream,
        include_usage=usage,
        continuous_usage=usage and continuous,
        given=Writing(workload=Workload.CHAT, text=heard(recording, seconds)),
        told={"seconds": seconds},
    )


def _check_format(body: Body, options: SimWorkerOptions) -> None:
    wanted = body.get("response_format", "json")
    if wanted in ("json", "text"):
        return
    if wanted in ("verbose_json", "diarized_json"):
        raise bad_value(f"Currently do not support {wanted} for {options.model}")
    text = "`text`, `json`, `verbose_json` or `diarized_json`"
    raise bad_value(f"Currently only support response_format: {text}")


class TranscriptionWriter:
    """One transcript."""

    def __init__(self, envelope: Envelope) -> None:
        self._request = envelope.request
        head: dict[str, Any] = {"id": envelope.id, "object": "transcription.chunk"}
        head |= {"created": envelope.created, "model": envelope.model}
        self._open = b"data: " + orjson.dumps(head)[:-1] + b',"choices":['

    def preamble(self) -> bytes:
        return b""

    def opening(self) -> bytes:
        return b""

    def piece(self, piece: Piece) -> bytes:
        if not piece.text and piece.finish is None:
            return b""
        ends = {"finish_reason": piece.finish, "stop_reason": piece.stop_reason}
        choice = {"delta": {"content": piece.text}, **(ends if piece.finish else {})}
        usage = b""
        if self._request.continuous_usage:
            usage = b',"usage":' + orjson.dumps(self._usage(piece.completion_tokens))
        return b"%b%b]%b}\n\n" % (self._open, orjson.dumps(choice), usage)

    def _usage(self, completion_tokens: int) -> dict[str, Any]:
        """The prompt's tokens with those of the audio."""
        audio = num_audio_tokens(self._request.told["seconds"])
        return usage_of(self._request.num_prompt_tokens + audio, completion_tokens)

    def closing(self, ending: Ending) -> bytes:
        if not self._request.include_usage:
            return DONE
        usage = orjson.dumps(self._usage(ending.completion_tokens))
        return b'%b],"usage":%b}\n\n' % (self._open, usage) + DONE

    def failure(self, refusal: Refusal) -> bytes | None:
        return refusal.as_event() + DONE

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        seconds = math.ceil(self._request.told["seconds"])
        text = "".join(piece.text for piece in pieces)
        return {"text": text, "usage": {"type": "duration", "seconds": seconds}}
