"""The endpoints that the engine works for: how each reads its bodies and writes its answers.

DIALECTS["/v1/chat/completions"].read(body, options)   → a `GenerateRequest`, or Refusal
DIALECTS["/v1/chat/completions"].writer(envelope)      → an `AnswerWriter`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paceline.testing.sim_worker.dialects.chat_body import read_chat
from paceline.testing.sim_worker.dialects.chat_events import ChatWriter
from paceline.testing.sim_worker.dialects.completions_body import read_completions
from paceline.testing.sim_worker.dialects.completions_events import CompletionsWriter
from paceline.testing.sim_worker.dialects.embeddings import EmbeddingsWriter, read_embeddings
from paceline.testing.sim_worker.dialects.messages_body import read_messages, refused
from paceline.testing.sim_worker.dialects.messages_events import MessagesWriter
from paceline.testing.sim_worker.dialects.responses_body import read_responses
from paceline.testing.sim_worker.dialects.responses_events import ResponsesWriter
from paceline.testing.sim_worker.dialects.scores import (
    RerankWriter,
    ScoreWriter,
    read_rerank,
    read_score,
)
from paceline.testing.sim_worker.dialects.transcriptions import (
    TranscriptionWriter,
    read_transcription,
)
from paceline.testing.sim_worker.fields import Body
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.writers import AnswerWriter, Envelope


def _as_it_is(refusal: Refusal) -> Refusal:
    return refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One endpoint. `id_prefix` begins its answers' ids, which go on with the client's own
    `X-Request-Id` unless `own_ids`. `form` bodies are multipart instead of JSON. `refused` gives
    refusals the endpoint's own shape."""

    read: Callable[[Body, SimWorkerOptions], GenerateRequest]
    writer: Callable[[Envelope], AnswerWriter]
    id_prefix: str
    own_ids: bool = False
    form: bool = False
    refused: Callable[[Refusal], Refusal] = _as_it_is


_RERANK = Dialect(read=read_rerank, writer=RerankWriter, id_prefix="score-")
_SCORE = Dialect(read=read_score, writer=ScoreWriter, id_prefix="score-")

DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": Dialect(read=read_chat, writer=ChatWriter, id_prefix="chatcmpl-"),
    "/v1/completions": Dialect(read=read_completions, writer=CompletionsWriter, id_prefix="cmpl-"),
    "/v1/responses": Dialect(
        read=read_responses, writer=ResponsesWriter, id_prefix="resp_", own_ids=True
    ),
    "/v1/messages": Dialect(
        read=read_messages, writer=MessagesWriter, id_prefix="chatcmpl-", refused=refused
    ),
    "/v1/audio/transcriptions": Dialect(
        read=read_transcription, writer=TranscriptionWriter, id_prefix="transcribe-", form=True
    ),
    "/v1/embeddings": Dialect(read=read_embeddings, writer=EmbeddingsWriter, id_prefix="embd-"),
    "/v1/score": _SCORE,
    "/score": _SCORE,
    "/v1/rerank": _RERANK,
    "/v2/rerank": _RERANK,
    "/rerank": _RERANK,
}
