"""Quantiles and spreads, without a library: the client's process has to start quickly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of them do not exceed (nearest rank); None of none.

    Raises ValueError for a share that is not within (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"a share lies within (0, 1]: {share}")
    if not values:
        return None
    return sorted(values)[math.ceil(share * len(values)) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median of some values, and how far they lie apart."""

    median: float
    least: float
    most: float
    number: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None where there are no values."""
        if not values:
            return None
        return cls(median=median(values), least=min(values), most=max(values), number=len(values))
