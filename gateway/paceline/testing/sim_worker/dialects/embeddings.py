"""`/v1/embeddings`: its body and its vectors. Left out: `encoding_format` `bytes`, dimensions."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

from paceline.testing.sim_worker.dialects.chunks import whole_usage
from paceline.testing.sim_worker.dialects.pooled import PooledWriter, check_pooled_model, pooled
from paceline.testing.sim_worker.fields import Body, integer, require
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import Prompt, chat_prompt, text_prompts
from paceline.testing.sim_worker.refusals import bad_shape, bad_value
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.vectors import embedding
from paceline.testing.sim_worker.writers import Ending, Piece

_FORMATS = ("float", "base64")


def read_embeddings(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """Raises Refusal with vLLM's status and body."""
    encoding = body.get("encoding_format") or "float"
    if encoding not in _FORMATS:
        expected = "'float', 'base64', 'bytes' or 'bytes_only'"
        context = {"ctx": {"expected": expected}}
        text = f"Input should be {expected}"
        raise bad_shape("literal_error", "body.encoding_format", text, encoding, **context)
    prompts = _prompts(body)
    check_pooled_model(body, options)
    if (dimensions := integer(body, "dimensions")) is not None:
        text = (
            f"Model '{options.model}' does not support Matryoshka embeddings; dimensions must be "
            f"unset (received dimensions={dimensions})."
        )
        raise bad_value(text)
    return pooled(prompts, options, encoding=encoding)


def _prompts(body: Body) -> tuple[Prompt, ...]:
    if body.get("messages") is not None:
        return (chat_prompt(body["messages"]),)
    require(body, "input")
    given = body["input"]
    if given == []:
        raise bad_value("You must pass at least one prompt")
    if given == "" or (isinstance(given, list) and "" in given):
        raise bad_value("The decoder prompt cannot be empty")
    if not isinstance(given, str | list):
        raise bad_shape("list_type", "body.input", "Input should be a valid list", given)
    return text_prompts(given)


class EmbeddingsWriter(PooledWriter):
    """The vectors of one request."""

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        vectors = [embedding(prompt.tokens) for prompt in self.request.prompts]
        return {
            "id": self.envelope.id,
            "object": "list",
            "created": self.envelope.created,
            "model": self.envelope.model,
            "data": [
                {"index": i, "object": "embedding", "embedding": self._encoded(vector)}
                for i, vector in enumerate(vectors)
            ],
            "usage": whole_usage(self.request.num_prompt_tokens, 0),
        }

    def _encoded(self, vector: list[float]) -> list[float] | str:
        """Numbers, or the little-endian 32-bit floats that the OpenAI client asks for."""
        if self.request.told["encoding"] == "float":
            return vector
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
