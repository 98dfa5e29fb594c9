"""From tokens per pass as replayed, in word tokens, to what a pool of workers makes of it.

A model's tokens are pieces of words, so where words are copied an engine accepts more tokens than a
replay does, up to the same k; and some pieces are foretold where no word is. How much depends on
tokenizer and language, so it is learned from answers of which both figures are known, one
correction a pool.

More acceptance in the replay never means less in the engine, so the map is monotone: a slope first,
then each of `BINS` levels as far as there are passes to show it, made non-decreasing (isotonic
regression, by pooling adjacent violators: Ayer et al., Annals of Mathematical Statistics 26, 1955).
Without data it is the identity. Older pairs count half as much after `HALF_LIFE_PASSES`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import isfinite, sqrt
from typing import Any

from paceline.core.acceptance import SpeculationReport

BINS = 24
HALF_LIFE_PASSES = 50_000
"""Some hundreds of answers: a tokenizer does not change, but languages and tasks do."""
MAX_PASSES = 500
"""One answer weighs no more than this: passes of the same answer are alike."""
SLOPE_PRIOR_TOKENS = 200.0
"""Accepted tokens that the slope of 1 is worth at first."""
BIN_PRIOR_PASSES = 100.0
"""Passes that the slope is worth in each bin."""


def observed_tokens_per_pass(num_output_tokens: int, report: SpeculationReport) -> float | None:
    """Over all passes of decode, drafted or not, from a worker's own counts; None without a pass.

    A report counts only passes that drafted. But prefill yields one token and each later pass one
    more than it accepts, which tells how many there were; unless the last ran over the answer's
    end, and so there are at least those that drafted.
    """
    undrafted_too = num_output_tokens - 1 - report.num_accepted_draft_tokens
    passes = max(undrafted_too, report.num_spec_steps)
    return 1.0 + report.num_accepted_draft_tokens / passes if passes > 0 else None


class Correction:
    """The map of one pool that drafts up to `k` tokens, and how well it does."""

    def __init__(self, k: int) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        self.k = k
        self.num_pairs = 0
        self._bins = [[0.0, 0.0, 0.0] for _ in range(BINS)]  # passes, and sums of both over them
        self._errors = [0.0, 0.0, 0.0, 0.0]  # passes; sums of error, its square, and uncorrected
        self._knots: tuple[list[float], list[float]] | None = None

    def take(self, replayed: float, observed: float, num_passes: int) -> None:
        """Learns from one answer's tokens per pass. Raises ValueError for what none can be."""
        if not (1.0 <= replayed <= self.k + 1 and isfinite(observed) and num_passes > 0):
            raise ValueError(f"not a pair for k = {self.k}: {replayed=} {observed=} {num_passes=}")
        observed = min(max(observed, 1.0), self.k + 1.0)
        weight = float(min(num_passes, MAX_PASSES))
        error = self.corrected(replayed) - observed  # before it is learned from
        kept = 0.5 ** (weight / HALF_LIFE_PASSES)
        for sums in (*self._bins, self._errors):
            sums[:] = [kept * value for value in sums]
        _add(self._errors, weight, (error, error**2, (replayed - observed) ** 2))
        at = min(BINS - 1, int((replayed - 1.0) / self.k * BINS))
        _add(self._bins[at], weight, (replayed, observed))
        self.num_pairs += 1
        self._knots = None

    def corrected(self, replayed: float) -> float:
        """The pool's expected tokens per pass, within [1, k + 1]; never less for more."""
        if self._knots is None:
            self._knots = self._fit()
        xs, ys = self._knots
        right = bisect_right(xs, replayed)
        if right in (0, len(xs)):
            return ys[min(right, len(xs) - 1)]
        left = right - 1
        return ys[left] + (ys[right] - ys[left]) * (replayed - xs[left]) / (xs[right] - xs[left])

    def _fit(self) -> tuple[list[float], list[float]]:
        """Both ends of the range, and a knot for every bin at the mean of what fell into it."""
        slope, k = self._slope(), self.k
        xs = [1.0]
        levels = [(1.0, BIN_PRIOR_PASSES)]
        for at, (passes, sum_x, sum_y) in enumerate(self._bins):
            weight = BIN_PRIOR_PASSES + passes
            middle = 1.0 + k * (at + 0.5) / BINS
            x = (BIN_PRIOR_PASSES * middle + sum_x) / weight
            foretold = min(1.0 + slope * (middle - 1.0), k + 1.0)
            xs.append(x)
            levels.append(((BIN_PRIOR_PASSES * foretold + sum_y) / weight, weight))
        xs.append(k + 1.0)
        levels.append((min(1.0 + slope * k, k + 1.0), BIN_PRIOR_PASSES))
        return xs, non_decreasing(levels)

    def _slope(self) -> float:
        replayed = sum(sum_x - passes for passes, sum_x, _ in self._bins)  # accepted tokens
        observed = sum(sum_y - passes for passes, _, sum_y in self._bins)
        return (SLOPE_PRIOR_TOKENS + observed) / (SLOPE_PRIOR_TOKENS + replayed)

    @property
    def residual(self) -> float | None:
        """Root mean square of what was foretold less what was seen, in tokens per pass, each pair
        before it was learned from; None before the first."""
        return self._root_mean(2)

    @property
    def uncorrected_residual(self) -> float | None:
        """The same of the replay itself: what correcting it is good for shows beside this."""
        return self._root_mean(3)

    @property
    def bias(self) -> float | None:
        """The mean of what was foretold less what was seen."""
        return self._errors[1] / self._errors[0] if self._errors[0] > 0 else None

    def _root_mean(self, at: int) -> float | None:
        return sqrt(self._errors[at] / self._errors[0]) if self._errors[0] > 0 else None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, from which `of` makes it again."""
        bins, errors = [list(sums) for sums in self._bins], list(self._errors)
        return {"k": self.k, "num_pairs": self.num_pairs, "bins": bins, "errors": errors}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Correction:
        """From `as_json`. Raises ValueError for anything else."""
        try:
            made = cls(int(said["k"]))
            made.num_pairs = int(said["num_pairs"])
            made._bins = [_sums(sums, 3) for sums in said["bins"]]
            made._errors = _sums(said["errors"], 4)
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"not a correction: {problem!r}") from None
        if len(made._bins) != BINS or made.num_pairs < 0:
            raise ValueError("not a correction: it has other bins")
        return made


def _add(sums: list[float], weight: float, values: Sequence[float]) -> None:
    for at, value in enumerate((1.0, *values)):
        sums[at] += weight * value


def _sums(said: Any, length: int) -> list[float]:
    sums = [float(value) for value in said]
    if len(sums) != length or not all(map(isfinite, sums)) or sums[0] < 0:
        raise ValueError(f"not sums: {said!r}")
    return sums


def non_decreasing(levels: Sequence[tuple[float, float]]) -> list[float]:
    """The non-decreasing values nearest to those given as (value, weight), by weighted squares."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in levels:
        count = 1
        while blocks and blocks[-1][0] > value:
            before, before_weight, before_count = blocks.pop()
            total = weight + before_weight
            value = (value * weight + before * before_weight) / total
            weight, count = total, count + before_count
        blocks.append((value, weight, count))
    return [value for value, _, count in blocks for _ in range(count)]


def survivals_for(survivals: Sequence[float], tokens_per_pass: float) -> tuple[float, ...]:
    """Survivals of the same shape whose sum is `tokens_per_pass` - 1, as far as powers of them can
    have it: the same power of each keeps them in [0, 1] and in order, and 0 and 1 as they are."""
    wanted = tokens_per_pass - 1.0
    low, high = 1 / 64, 64.0  # the sum falls as the power grows
    for _ in range(60):
        power = sqrt(low * high)
        if sum(held**power for held in survivals) > wanted:
            low = power
        else:
            high = power
    return tuple(held**power for held in survivals)
