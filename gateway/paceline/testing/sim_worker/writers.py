"""What an answer is made of, and what each dialect must be able to write of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from paceline.sim.counters import SpecCounts
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.times import RequestTimes

FINGERPRINT = "vllm-0.32.0-simulated"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known when an answer is whole: its tokens, what was drafted, how long it took."""

    completion_tokens: int
    spec: SpecCounts | None
    times: RequestTimes | None


class AnswerWriter(Protocol):
    """One answer in one dialect. An event is bytes with its empty line."""

    def preamble(self) -> bytes:
        """What a stream says at once, before there is a token."""

    def opening(self) -> bytes:
        """What goes out with the first piece, before it."""

    def piece(self, piece: Piece) -> bytes:
        """The events of a piece, which may be none."""

    def closing(self, ending: Ending) -> bytes:
        """All events after the last piece."""

    def failure(self, refusal: Refusal) -> bytes | None:
        """The last events of a stream that an error ends; None where the connection is cut."""

    def whole(self, pieces: Sequence[Piece], ending: Ending) -> dict[str, Any]:
        """The JSON of an answer that is not streamed; one piece a choice."""
