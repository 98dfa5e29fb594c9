"""Survival per position, as believed after a prior and what requests accepted.

At each position the belief is about a conditional: of the passes that got that far, how many
drafts held there too? Such a belief has the form (held + prior held) / (tried + prior tried), the
mean of a Beta distribution, and the survivals are the running product. So they fall by
construction, and positions past the k that was in use stay at what the positions before and the
prior say: they are unobserved, not failed.

Where it fails: the passes of one request are alike, and more so with lookups, which match in runs.
So one request never counts for more than `PASSES_PER_REQUEST` passes. And evidence ages: half of
it is gone after the half-life, and no more than `MAX_PASSES` are remembered, so that a change shows
after some sixty requests even where the half-life is an hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from paceline.core.priors import PRIOR_PASSES
from paceline.core.step_time import part_left

PASSES_PER_REQUEST = 32.0
"""Passes that one request's evidence counts for at most. SpecDecode-Bench's traces need 26 to 93
requests (math, summaries) to know tokens per pass within 3 %, or some 2,500 passes within one:
beyond a few dozen passes a request tells of itself and not of its kind."""
MAX_PASSES = 64 * PASSES_PER_REQUEST

ROUNDING = 1e-6
"""By which counts kept by an earlier version may be off."""


class SurvivalPosterior:
    """One cell's belief. `prior` are survivals; evidence is added request by request."""

    __slots__ = ("_held", "_prior", "_prior_passes", "_tried", "_updated_s")

    def __init__(self, prior: Sequence[float], *, prior_passes: float = PRIOR_PASSES) -> None:
        self._prior = tuple(prior)
        self._prior_passes = prior_passes
        self._tried = [0.0] * len(self._prior)
        self._held = [0.0] * len(self._prior)
        self._updated_s = 0.0

    @property
    def passes(self) -> float:
        """How much evidence there is, in passes, aged as of the last of it."""
        return self._tried[0] if self._tried else 0.0

    def observe(
        self, accepted: Sequence[float], num_passes: float, now_s: float, *,
        half_life_s: float, weight: float = 1.0,
    ) -> None:  # fmt: skip
        """Adds a request: `accepted[i]` of its passes had i draft tokens accepted, and there were
        `num_passes` in all, of which those without a draft count as nothing accepted.

        `weight` in [0, 1] is the probability that the request belongs here at all. Positions that
        `accepted` does not reach were not drafted, and stay unobserved.
        """
        drafted = float(sum(accepted))
        num_passes = max(num_passes, drafted)
        if num_passes <= 0 or weight <= 0:
            return
        self._age(now_s, half_life_s)
        scale = weight * min(1.0, PASSES_PER_REQUEST / num_passes)
        reached = num_passes
        holding = drafted
        for position in range(min(len(accepted) - 1, len(self._prior))):
            holding = max(0.0, holding - accepted[position])  # parts of passes do not add up to 0
            self._tried[position] += scale * reached
            self._held[position] += scale * holding
            reached = holding

    def survivals(self) -> tuple[float, ...]:
        """P(the first i + 1 draft tokens are all accepted), falling within [0, 1]."""
        found = []
        survival = before = 1.0
        for position, prior in enumerate(self._prior):
            conditional = prior / before if before > 0 else 0.0
            strength = self._prior_passes * before
            tried = self._tried[position] + strength
            held = self._held[position] + strength * conditional
            survival *= min(1.0, held / tried) if tried > 0 else 0.0
            found.append(survival)
            before = prior
        return tuple(found)

    def state(self) -> dict[str, object]:
        """As plain JSON values."""
        return {"tried": self._tried, "held": self._held, "updated_s": self._updated_s}

    def restore(self, tried: Sequence[float], held: Sequence[float], updated_s: float) -> None:
        """Takes up evidence of before, as far as it fits the positions there are now.

        Raises ValueError for counts that no passes can have.
        """
        pairs = list(zip(tried, held, strict=True))[: len(self._prior)]
        if not all(-ROUNDING <= h <= t + ROUNDING and t <= 2 * MAX_PASSES for t, h in pairs):
            raise ValueError("evidence must satisfy 0 <= held <= tried")
        self._updated_s = float(updated_s)
        for position, (t, h) in enumerate(pairs):
            self._tried[position] = max(0.0, float(t))
            self._held[position] = min(max(0.0, float(h)), self._tried[position])

    def _age(self, now_s: float, half_life_s: float) -> None:
        keep = part_left(self._updated_s, now_s, half_life_s)
        if self.passes * keep > MAX_PASSES:
            keep = MAX_PASSES / self.passes
        self._updated_s = now_s
        self._tried = [tried * keep for tried in self._tried]
        self._held = [held * keep for held in self._held]


def log_likelihood(accepted: Sequence[int], num_passes: float, survivals: Sequence[float]) -> float:
    """How well survivals explain a request, as a log, at the weight that a request has.

    The multinomial's kernel over "i accepted" for passes without a draft and with; tempered to
    `PASSES_PER_REQUEST` passes, for the same reason as above.
    """
    num_passes = max(num_passes, float(sum(accepted)))
    if num_passes <= 0:
        return 0.0
    counts = list(accepted) or [0]
    counts[0] += int(num_passes) - sum(counts)
    total = 0.0
    before = 1.0
    for position, count in enumerate(counts):
        last = position == len(counts) - 1 or position >= len(survivals)
        here = before if last else before - survivals[position]
        if count > 0:
            total += count * log(max(here, 1e-6))
        if last:
            break
        before = survivals[position]
    return total * min(1.0, PASSES_PER_REQUEST / num_passes)
