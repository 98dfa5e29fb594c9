"""The copy ratio that a request's answer is expected to have, as a distribution.

Answers either give back what they were given or they do not, so the distribution has two parts:
with probability `share` the ratio lies above `BORDER`, else below. Within a part the quantile at u
lies at u^k of its width, where k follows from the part's mean. The share depends on the posterior
of the workload and on the size of the material; the means on material and size, and the upper one
on some of the signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp

from paceline.core.types import CopyRatio, Material

BORDER = 0.55
"""The copy ratio from which n-gram drafting beats a trained head on an idle worker."""
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""The quantiles of a `CopyRatio`."""
LOW_MEANS = (0.0004, 0.96)
HIGH_MEANS = (0.1, 0.95)
"""Where the means within the parts are cut off, as shares of the part."""

LEAST_LOG = -7.0
"""A log-probability below this says no more than it."""

STEPS = 200
"""Shares and means are rounded to one part in as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyModel:
    """Weights of `share_terms`; and for each material, by the band of its size, the power of the
    low part and the mean of the high one."""

    share: Sequence[float]
    low_powers: Mapping[Material, Sequence[float]]
    high_means: Mapping[Material, Sequence[float]]


LogOdds = tuple[float, float, float]
"""log P(code), log P(chat), log P(edit)."""


def share_terms(edit: float, logs: LogOdds, band: int) -> tuple[float, ...]:
    """What the log-odds of a high copy ratio are linear in."""
    code, chat, edits = logs
    size = band / 8.0
    bounded = max(code, LEAST_LOG), max(chat, LEAST_LOG), max(edits, LEAST_LOG)
    return (1.0, edit, size, edit * size, *bounded)


def copy_ratio(
    odds: float, material: Material, band: int, from_signals: float, model: CopyModel
) -> CopyRatio:
    """The distribution for the log-odds of a high copy ratio and a band of the material's size.

    `from_signals` is what the signals add to the mean of high copy ratios.
    """
    return mixture(
        round(STEPS / (1.0 + exp(-odds))),
        model.low_powers[material][band],
        round(STEPS * (model.high_means[material][band] + from_signals)),
    )


@lru_cache(maxsize=8192)
def mixture(share_steps: int, low_power: float, high_steps: int) -> CopyRatio:
    """Kept, since a value of `CopyRatio` is dear to make and few ever occur."""
    share = share_steps / STEPS
    rest = 1.0 - share
    high_mean = min(max(high_steps / STEPS, HIGH_MEANS[0]), HIGH_MEANS[1])
    high_power = 1.0 / high_mean - 1.0
    found = [
        BORDER * (level / rest) ** low_power
        if level < rest
        else BORDER + (1.0 - BORDER) * ((level - rest) / share) ** high_power
        for level in LEVELS
    ]
    return CopyRatio(quantiles=(found[0], found[1], found[2], found[3], found[4]))


def power_of(mean: float) -> float:
    """The k for which u^k has this mean over u in [0, 1]."""
    return 1.0 / min(max(mean, LOW_MEANS[0]), LOW_MEANS[1]) - 1.0
