"""How far the rate is evened out, beside what could be: the aims of `make bench-smoothing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from paceline.bench.optimum import Score, delays, rate_variation, taut_string
from paceline.bench.streams import RecordedStream
from paceline_client import PacerOptions

RATE_CV_AIM = 0.6
"""Of the rate CV of the stream as it came."""

NOT_PEERS = ("ours", "ours, TypeScript", "optimum", "pass-through")
STEP_MS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The rate CV of one class of streams: medians over them.

    `optimum` is of the optimum for the same greatest delay, `optimum_needs_ms` the mean delay with
    which the optimum reaches the aim (None if no delay does, up to the longest that is allowed),
    and `smoother_for_less` names the rules with a lower rate CV for no more mean delay.
    """

    raw: float
    ours: float
    optimum: float
    mean_delay_ms: float
    optimum_needs_ms: float | None
    smoother_for_less: tuple[str, ...]


def standing(by_rule: Mapping[str, Sequence[Score]], streams: Sequence[RecordedStream]) -> Standing:
    """What one class of streams shows of the aims."""
    raw = _rate_cv(by_rule["pass-through"])
    return Standing(
        raw=raw,
        ours=_rate_cv(by_rule["ours"]),
        optimum=_rate_cv(by_rule["optimum"]),
        mean_delay_ms=_mean_delay_ms(by_rule["ours"]),
        optimum_needs_ms=_optimum_needs_ms(streams, RATE_CV_AIM * raw),
        smoother_for_less=smoother_for_less(by_rule),
    )


def smoother_for_less(by_rule: Mapping[str, Sequence[Score]]) -> tuple[str, ...]:
    """The rules of others with a lower rate CV than ours for the same mean delay or less."""
    ours = by_rule["ours"]
    return tuple(
        name
        for name, scores in by_rule.items()
        if name not in NOT_PEERS
        and _rate_cv(scores) < _rate_cv(ours)
        and _mean_delay_ms(scores) <= _mean_delay_ms(ours)
    )


def _rate_cv(scores: Sequence[Score]) -> float:
    return median(one.rate_cv for one in scores)


def _mean_delay_ms(scores: Sequence[Score]) -> float:
    return median(one.mean_delay_ms for one in scores)


def _optimum_needs_ms(streams: Sequence[RecordedStream], rate_cv: float) -> float | None:
    """The mean delay of the first optimum, its bound raised by steps, to have this rate CV."""
    options = PacerOptions()
    for delay_ms in range(0, int(options.max_delay_ms) + 1, STEP_MS):
        end_lag_ms = min(delay_ms, options.drain_ms)
        shown = [taut_string(one.arrivals, delay_ms, end_lag_ms) for one in streams]
        if median(map(rate_variation, shown)) <= rate_cv:
            added = [delays(s.arrivals, at) for s, at in zip(streams, shown, strict=True)]
            return median(sum(one) / len(one) for one in added)
    return None
