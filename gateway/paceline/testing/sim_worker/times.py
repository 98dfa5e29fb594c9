"""How long one request took, as vLLM's `--enable-per-request-metrics` tells its client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NAMES = (
    "time_to_first_token_ms",
    "generation_time_ms",
    "queue_time_ms",
    "mean_itl_ms",
    "tokens_per_second",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """Real seconds. `first_s` counts from `started_s`, when its first pass began, so it leaves out
    the queue, as vLLM's does."""

    arrived_s: float
    started_s: float
    first_s: float
    ended_s: float
    num_tokens: int

    def as_json(self) -> dict[str, Any]:
        """vLLM's names, in milliseconds; a mean gap needs two tokens, a rate some time."""
        generating_s = self.ended_s - self.first_s
        gaps = self.num_tokens - 1
        values = (
            1e3 * (self.first_s - self.started_s),
            1e3 * generating_s,
            1e3 * max(0.0, self.started_s - self.arrived_s),
            1e3 * generating_s / gaps if gaps > 0 else None,
            gaps / generating_s if gaps > 0 and generating_s > 0 else None,
        )
        return dict(zip(NAMES, values, strict=True))
