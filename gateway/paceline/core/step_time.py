"""Seconds of a decode pass of one pool's workers, fitted to what requests took.

    T(n, B, L) = fixed + n * token_s + B * L * kv_token_s

`core/cost.py`'s sum, as far as a request that has ended can tell its terms apart: the fixed part
holds weights, host and drafting. Each request gives one equation: what a pass took on average while
it ran, beside the load it ran in. They are solved by least squares on relative errors, with what a
device like an H100 takes for an 8B model as the prior shape: terms that the load so far cannot tell
apart keep that shape's proportions, whatever the device's speed.

Robust: an equation that is off by more than `HUBER` standard errors counts less, and none says that
passes are more than `MOST_FASTER` times as fast as was believed: errors are relative, so an answer
that came all at once, as through a proxy that buffers, would outweigh thousands. Old ones fade. It
says how far off it is (`residual`) and which loads it has seen (`known_to`), since a straight line
is easily continued to where nobody has been.

Few equations, or old ones, are not believed alone: how fast the model runs elsewhere stands for
`ELSEWHERE` of them. Else one request in a bad moment would keep all others away, and nothing would
ever put it right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan

from paceline.core.cost import PassCosts

MEMORY = 256.0
"""Equations remembered, as a sum of weights."""
PRIOR_STRENGTH = 0.25
"""Of the prior shape, in equations' worth of evidence on each term."""
HUBER = 1.5
"""Source: Huber, "Robust Estimation of a Location Parameter", 1964; 1.345 is usual for his 95 %."""
MOST_FASTER = 4.0
ELSEWHERE = 4.0
"""Equations that the scale of the model's other pools is worth to a pool's own: as much as the
prior of any running mean here."""
MIN_RESIDUAL = 0.02
"""No fit is believed to be better than this: a worker's clock of passes is not ours."""
BEYOND = 1.5
"""How far past the greatest load seen a fit is still believed, as a factor."""
SMALLEST_SHARE = 0.02
"""Of the prior shape's term: no term of a pass is negative, nor free."""


def part_left(updated_s: float, now_s: float, half_life_s: float) -> float:
    """Of what was seen up to `updated_s`, if half of it is gone after `half_life_s`."""
    return float(0.5 ** (max(0.0, now_s - updated_s) / half_life_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """The three terms, in seconds; `known_to` are the scheduled tokens up to which they are known,
    and not only continued."""

    fixed_s: float
    token_s: float
    kv_token_s: float
    known_to: float = float("inf")

    def seconds(self, running: float, scheduled: float, context: float) -> float:
        """Of a pass with `running` sequences after `context` tokens each, and `scheduled` tokens
        to compute."""
        return self.fixed_s + self.token_s * scheduled + self.kv_token_s * running * context

    def times(self, factor: float) -> StepTime:
        return StepTime(
            fixed_s=self.fixed_s * factor,
            token_s=self.token_s * factor,
            kv_token_s=self.kv_token_s * factor,
            known_to=self.known_to,
        )

    @classmethod
    def of(cls, costs: PassCosts, k: int, *, context: float = 800.0) -> StepTime:
        """A dense model's `costs` in a pool that drafts `k` tokens, near one length of context.

        Linear in what the pass holds, so a mixture's experts are taken as all read.
        """
        idle = costs.decode_s(0, k, context)
        one, two = (costs.decode_s(running, k, context) for running in (1, 2))
        per_sequence = two - one
        kv_s = costs.kv_token_s * costs.factor
        return cls(
            fixed_s=max(one - per_sequence, idle),
            token_s=max(0.0, per_sequence - kv_s * context) / (1 + k),
            kv_token_s=kv_s,
        )


class StepTimeFit:
    """The fit of one pool. `shape` is believed in before there is evidence, up to its scale; half
    of the evidence is gone after `half_life_s`."""

    def __init__(self, shape: StepTime, half_life_s: float = inf) -> None:
        self._shape = shape
        self._half_life_s = half_life_s
        self._updated_s = 0.0
        self._products = [[0.0] * 3 for _ in range(3)]  # of terms over observed, summed by weight
        self._sums = [0.0] * 3
        self._weight = 0.0
        self._square_error = 0.0
        self._greatest = 0.0  # scheduled tokens seen, fading
        self._terms: StepTime | None = None

    @property
    def num_observed(self) -> float:
        """Equations remembered."""
        return self._weight

    @property
    def residual(self) -> float | None:
        """Root mean square of relative errors; None before anything was seen."""
        if self._weight == 0:
            return None
        return float((self._square_error / self._weight) ** 0.5)

    def observe(
        self, running: float, scheduled: float, context: float, seconds: float, now_s: float = 0.0,
        elsewhere: float | None = None,
    ) -> None:  # fmt: skip
        """A request saw passes of `seconds` on average, at this load. `elsewhere` as in
        `step_time`. Raises ValueError unless all are positive and finite."""
        positive = min(running, scheduled, seconds) > 0 and context >= 0
        if not positive or not isfinite(running + scheduled + context + seconds):
            raise ValueError(f"not a pass: {running=} {scheduled=} {context=} {seconds=}")
        expected_s = self.step_time(now_s, elsewhere).seconds(running, scheduled, context)
        seconds = max(seconds, expected_s / MOST_FASTER)
        terms = self._split(running, scheduled, context)
        row = [term / seconds for term in terms]
        error = expected_s / seconds - 1.0
        spread = max(MIN_RESIDUAL, self.residual or 0.0)
        weight = 1.0 if self._weight < 8 else min(1.0, HUBER * spread / max(abs(error), 1e-9))
        keep = (1.0 - 1.0 / MEMORY) * self._kept(now_s)
        self._updated_s = now_s
        self._products = [
            [keep * self._products[i][j] + weight * row[i] * row[j] for j in range(3)]
            for i in range(3)
        ]
        self._sums = [keep * self._sums[i] + weight * row[i] for i in range(3)]
        if self._weight > 0:  # the first has nothing to be compared with
            self._square_error = keep * self._square_error + min(error * error, 1.0)
        self._weight = keep * self._weight + 1.0
        self._greatest = max(scheduled, keep * self._greatest)
        self._terms = None

    def step_time(self, now_s: float = 0.0, elsewhere: float | None = None) -> StepTime:
        """The terms now. `elsewhere` is by how much the model's other pools are slower than their
        shapes say (`scale`), None if that is unknown."""
        scale = self._scale
        if scale is None:
            return self._shape.times(elsewhere or 1.0)
        if self._terms is None:
            self._terms = self._solve(scale)
        if elsewhere is None:
            return self._terms
        alone = self._weight * self._kept(now_s) / ELSEWHERE
        return self._terms.times((elsewhere / scale) ** (1.0 / (1.0 + alone)))

    @staticmethod
    def scale(fits: Iterable[StepTimeFit]) -> float | None:
        """How much slower passes are than their shapes say, all terms and all fits together; None
        if unknown. By least squares, as the terms."""
        over = total = 0.0
        for fit in fits:
            over += sum(map(sum, fit._products))
            total += sum(fit._sums)
        return total / over if over > 0 else None

    @property
    def _scale(self) -> float | None:
        return self.scale([self])

    def _kept(self, now_s: float) -> float:
        """What part of the evidence is left."""
        return part_left(self._updated_s, now_s, self._half_life_s)

    def state(self) -> dict[str, object]:
        """As plain JSON values."""
        return {
            "products": self._products,
            "sums": self._sums,
            "weight": self._weight,
            "square_error": self._square_error,
            "greatest": self._greatest,
            "updated_s": self._updated_s,
        }

    def restore(
        self, *, products: Sequence[Sequence[float]], sums: Sequence[float], weight: float,
        square_error: float, greatest: float, updated_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Raises ValueError for what no observations add up to."""
        bounded = 0.0 <= weight <= MEMORY + 1 and square_error >= 0.0 and greatest >= 0.0
        if len(products) != 3 or any(len(row) != 3 for row in products) or len(sums) != 3:
            raise ValueError("a fit has three terms")
        if not bounded or min(map(min, products)) < 0 or min(sums) < 0:
            raise ValueError("a fit's sums are not negative")
        if not isfinite(updated_s):
            raise ValueError("a fit was updated at some time")
        if weight == 0.0 < max(max(map(max, products)), max(sums)):
            raise ValueError("a fit has no sums without observations")
        self._products = [list(map(float, row)) for row in products]
        self._sums = list(map(float, sums))
        self._weight, self._square_error = float(weight), float(square_error)
        self._greatest, self._terms = float(greatest), None
        self._updated_s = float(updated_s)
        try:
            found = self._solve(self._scale or 1.0)
        except (ZeroDivisionError, OverflowError):
            found = StepTime(fixed_s=nan, token_s=nan, kv_token_s=nan)
        if not isfinite(found.fixed_s + found.token_s + found.kv_token_s):
            raise ValueError("a fit's sums have no solution")

    def _split(self, running: float, scheduled: float, context: float) -> tuple[float, ...]:
        shape = self._shape
        return shape.fixed_s, shape.token_s * scheduled, shape.kv_token_s * running * context

    def _solve(self, scale: float) -> StepTime:
        """Least squares for what each term of the shape is to be multiplied with."""
        # Its strength is that of equations in which each term has a third of the pass.
        strength = PRIOR_STRENGTH / (9.0 * scale * scale)
        matrix = [
            [self._products[i][j] + (strength if i == j else 0.0) for j in range(3)]
            for i in range(3)
        ]
        factors = _solved(matrix, [self._sums[i] + strength * scale for i in range(3)])
        fixed, token, kv = (max(factor, SMALLEST_SHARE * scale) for factor in factors)
        shape = self._shape
        return StepTime(
            fixed_s=shape.fixed_s * fixed,
            token_s=shape.token_s * token,
            kv_token_s=shape.kv_token_s * kv,
            known_to=BEYOND * self._greatest,
        )


def _solved(matrix: list[list[float]], sums: list[float]) -> list[float]:
    """Of three equations in three unknowns, by elimination; the matrix is positive definite."""
    rows = [[*row, right] for row, right in zip(matrix, sums, strict=True)]
    for i in range(3):
        for j in range(i + 1, 3):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [
                below - factor * above for below, above in zip(rows[j], rows[i], strict=True)
            ]
    found = [0.0] * 3
    for i in (2, 1, 0):
        known = sum(rows[i][j] * found[j] for j in range(i + 1, 3))
        found[i] = (rows[i][3] - known) / rows[i][i]
    return found
