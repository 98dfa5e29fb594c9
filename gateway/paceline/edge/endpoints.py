"""Which path is which endpoint. What is asked of workers goes to the same path there."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.core.types import Endpoint

ENDPOINTS: Mapping[str, Endpoint] = {
    "/v1/chat/completions": Endpoint.CHAT_COMPLETIONS,
    "/v1/completions": Endpoint.COMPLETIONS,
    "/v1/responses": Endpoint.RESPONSES,
    "/v1/messages": Endpoint.MESSAGES,
    "/v1/messages/count_tokens": Endpoint.COUNT_TOKENS,
    "/v1/embeddings": Endpoint.EMBEDDINGS,
    "/v1/rerank": Endpoint.RERANK,
    "/v1/score": Endpoint.SCORE,
    "/tokenize": Endpoint.TOKENIZE,
    "/detokenize": Endpoint.DETOKENIZE,
    "/v1/audio/transcriptions": Endpoint.TRANSCRIPTIONS,
}
