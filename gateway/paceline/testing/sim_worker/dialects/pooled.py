"""What the endpoints of pooling models share: requests whose prompts are computed and no more.

A real vLLM serves either these or the generating ones; the simulated worker has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.core.types import Workload
from paceline.sim.writer import Writing
from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.fields import Body
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import Prompt
from paceline.testing.sim_worker.refusals import Refusal, bad_value
from paceline.testing.sim_worker.requests import GenerateRequest, check_lengths
from paceline.testing.sim_worker.writers import Envelope, Piece

MAX_PROMPTS = 2048  # of one request, which is OpenAI's bound for embeddings

_NOTHING = Writing(workload=Workload.CHAT, text="")  # but the token that stands for the vector


def check_pooled_model(body: Body, options: SimWorkerOptions) -> None:
    """These endpoints name neither the parameter nor the models that there are."""
    asked = body.get("model")
    if asked not in (None, "", options.model):
        text = f"The model `{asked}` does not exist."
        raise refusals.error(404, "NotFoundError", text)


def pooled(prompts: Sequence[Prompt], options: SimWorkerOptions, **told: Any) -> GenerateRequest:
    """A request for the vectors of these prompts. Raises Refusal for too many or too long ones."""
    if len(prompts) > MAX_PROMPTS:
        raise bad_value(f"At most {MAX_PROMPTS} prompts may be given, got {len(prompts)}.")
    check_lengths(prompts, options)
    return GenerateRequest(
        prompts=tuple(prompts), max_tokens=1, given=_NOTHING, pooled=True, told=told
    )


class PooledWriter:
    """The part of a writer that such requests have no use for: they are not streamed."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        self.request = envelope.request

    def preamble(self) -> bytes:
        return b""

    def opening(self) -> bytes:
        return b""

    def piece(self, piece: Piece) -> bytes:
        return b""

    def closing(self, ending: object) -> bytes:
        return b""

    def failure(self, refusal: Refusal) -> bytes | None:
        return None
