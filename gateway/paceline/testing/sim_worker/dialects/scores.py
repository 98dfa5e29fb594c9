"""`/score` and `/rerank`: how near texts are, as vLLM says it on an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.core.types import Turn
from paceline.sim.words import tokenize
from paceline.testing.sim_worker.dialects.chunks import whole_usage
from paceline.testing.sim_worker.dialects.pooled import PooledWriter, check_pooled_model, pooled
from paceline.testing.sim_worker.fields import Body, integer, require
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import Prompt
from paceline.testing.sim_worker.refusals import bad_shape, bad_value
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.vectors import embedding, similarity
from paceline.testing.sim_worker.writers import Ending, Piece

# The names that the two sides of a score may have.
_PAIRS = (
    ("queries", "documents"),
    ("queries", "items"),
    ("data_1", "data_2"),
    ("text_1", "text_2"),
)


def read_score(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """One text with many, or as many with as many. Raises Refusal."""
    one, other = next((p for p in _PAIRS if p[0] in body and p[1] in body), _PAIRS[0])
    left, right = _texts(body, one), _texts(body, other)
    check_pooled_model(body, options)
    if len(left) not in (1, len(right)):
        raise bad_value("Input lengths must be either 1:1, 1:N or N:N")
    return _scored(left, right, options)


def read_rerank(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """A query and documents. Raises Refusal."""
    require(body, "query")
    query, documents = _texts(body, "query"), _texts(body, "documents")
    top_n = integer(body, "top_n") or 0
    check_pooled_model(body, options)
    if not documents:
        raise bad_value("At least one text_pair element must be given")
    return _scored(query, documents, options, documents=documents, top_n=top_n)


def _scored(
    left: Sequence[str], right: Sequence[str], options: SimWorkerOptions, **told: Any
) -> GenerateRequest:
    if not left or not right:
        raise bad_value("At least one text_pair element must be given")
    prompts = [_prompt(text) for text in (*left, *right)]
    return pooled(prompts, options, num_left=len(left), **told)


def _texts(body: Body, field: str) -> list[str]:
    require(body, field)
    given = body[field]
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        text = "Input should be a valid string"
        raise bad_shape("string_type", f"body.{field}", text, given)
    return texts


def _prompt(text: str) -> Prompt:
    text = text.encode("utf-8", "replace").decode()
    return Prompt(turns=(Turn(role="user", text=text),), tokens=tuple(tokenize(text)) or ("",))


class _PairWriter(PooledWriter):
    def scores(self) -> list[float]:
        """Of each text on the right with its own on the left, or with the only one."""
        vectors = [embedding(prompt.tokens) for prompt in self.request.prompts]
        count = self.request.told["num_left"]
        left, right = vectors[:count], vectors[count:]
        return [similarity(left[i % count], vector) for i, vector in enumerate(right)]


class ScoreWriter(_PairWriter):
    """The scores of one request."""

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        return {
            "id": self.envelope.id,
            "object": "list",
            "created": self.envelope.created,
            "model": self.envelope.model,
            "data": [
                {"index": i, "object": "score", "score": score}
                for i, score in enumerate(self.scores())
            ],
            "usage": whole_usage(self.request.num_prompt_tokens, 0),
        }


class RerankWriter(_PairWriter):
    """The documents of one request, the nearest first."""

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        documents, tokens = self.request.told["documents"], self.request.num_prompt_tokens
        ranked = sorted(enumerate(self.scores()), key=lambda pair: -pair[1])
        return {
            "id": self.envelope.id,
            "model": self.envelope.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            "results": [
                {
                    "index": i,
                    "document": {"text": documents[i], "multi_modal": None},
                    "relevance_score": score,
                }
                for i, score in ranked[: self.request.told["top_n"] or None]
            ],
        }
