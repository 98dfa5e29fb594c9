"""How smooth a playout is, and the smoothest there can be for the delay it spends.

Times are milliseconds. `arrivals` holds the arrival of every token, ascending; a *playout* the time
at which each is shown. Below, g are the gaps between tokens shown one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, sqrt

WINDOW_MS = 100.0

Times = Sequence[float]


def taut_string(arrivals: Times, delay_ms: float, end_lag_ms: float) -> list[float]:
    """The smoothest playout that holds no token longer than `delay_ms`, known all arrivals.

    Of all non-decreasing s with a_i <= s_i <= min(a_i + delay, a_n + end lag), s_0 = a_0 and
    s_n = a_n + end lag, the one whose gaps minimise every convex separable cost at once: the string
    pulled tight through the corridor over (index, time). Where the end lag exceeds the delay, the
    delay bounds the end as well.

    From each bend, the steepest and flattest line that stays inside are narrowed until they cross;
    the string bends where they touched. Time O(n²) at worst, about n in practice.

    Source: Salehi, Zhang, Kurose, Towsley, "Supporting stored video: reducing rate variability and
    end-to-end resource requirements through optimal smoothing", SIGMETRICS 1996, with the client's
    buffer as our delay.
    """
    if not arrivals:
        return []
    last = len(arrivals) - 1
    end_ms = arrivals[-1] + min(end_lag_ms, delay_ms)
    low = list(arrivals)
    high = [min(arrival + delay_ms, end_ms) for arrival in arrivals]
    high[0], low[last] = low[0], high[last]
    shown = [low[0]] * (last + 1)
    bend = 0
    while bend < last:
        to, at_ms = _next_bend(low, high, bend, shown[bend])
        step = (at_ms - shown[bend]) / (to - bend)
        for index in range(bend + 1, to + 1):
            shown[index] = shown[bend] + step * (index - bend)
        bend = to
    return shown


def _next_bend(
    low: list[float], high: list[float], start: int, start_ms: float
) -> tuple[int, float]:
    """The next point at which the string touches the corridor, and on which side."""
    last = len(low) - 1
    steepest, flattest = inf, -inf
    at_high, at_low = start, start
    for index in range(start + 1, last + 1):
        down = (low[index] - start_ms) / (index - start)
        up = (high[index] - start_ms) / (index - start)
        if down > steepest:
            return at_high, high[at_high]
        if up < flattest:
            return at_low, low[at_low]
        if up <= steepest:
            steepest, at_high = up, index
        if down >= flattest:
            flattest, at_low = down, index
    return last, high[last]


def gaps(shown: Times) -> list[float]:
    return [later - earlier for earlier, later in pairwise(shown)]


def roughness(shown: Times) -> float:
    """J, the sum of squared gaps, in ms²."""
    return sum(gap * gap for gap in gaps(shown))


def efficiency_ratio(arrivals: Times, shown: Times) -> float:
    """rho = J / J of the optimum with the same greatest delay and end lag; 1 is optimal.

    Showing everything at once scores 1 too, by spending nothing: read it beside the delay. The
    delay counts up to 400 ms, more being no bound that anyone would set.
    """
    delay_ms = min(400.0, max(delays(arrivals, shown)))
    best = roughness(taut_string(arrivals, delay_ms, shown[-1] - arrivals[-1]))
    return roughness(shown) / best if best else 1.0


def as_smooth(arrivals: Times, shown: Times, *, within_ms: float = 0.05) -> list[float]:
    """The playout of least delay that is as smooth as `shown`, known all arrivals.

    It is the taut string with the smallest bound on the delay (found by bisection, to `within_ms`)
    whose gaps vary no more, and which ends no later. Its delay, the *equal-smoothness delay*, is
    how much delay that smoothness is worth: of the optimum's own playout its delay, none of a
    playout no smoother than the arrivals are, and never more than the playout itself spends.

    Gaps are compared by their coefficient of variation, which over the same time orders playouts as
    the sum of squares does, and does not take ending sooner for being smoother. It never rises with
    the bound: a playout stretched to an end so much later keeps its variation, and the bound.
    """
    target = variation(gaps(shown)) + 1e-9
    if variation(gaps(arrivals)) <= target:
        return list(arrivals)
    end_lag_ms = shown[-1] - arrivals[-1]
    rougher_ms, smooth_ms = 0.0, max(delays(arrivals, shown))
    while smooth_ms - rougher_ms > within_ms:
        middle_ms = (rougher_ms + smooth_ms) / 2
        if variation(gaps(taut_string(arrivals, middle_ms, end_lag_ms))) <= target:
            smooth_ms = middle_ms
        else:
            rougher_ms = middle_ms
    return taut_string(arrivals, smooth_ms, end_lag_ms)


def delays(arrivals: Times, shown: Times) -> list[float]:
    return [at - arrival for arrival, at in zip(arrivals, shown, strict=True)]


def variation(values: Times) -> float:
    """The coefficient of variation, standard deviation over mean; 0 without a mean."""
    if not values:
        return 0.0
    mean = sum(values) / len(values)
    if not mean:
        return 0.0
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean


def rate_variation(shown: Times, window_ms: float = WINDOW_MS) -> float:
    """The variation of how many tokens appear in windows of 100 ms one after another."""
    counts = [0] * max(1, ceil((shown[-1] - shown[0]) / window_ms))
    for at in shown:
        counts[min(len(counts) - 1, int((at - shown[0]) / window_ms))] += 1
    return variation(counts)


def quantile(values: Times, share: float) -> float:
    """The nearest-rank quantile. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values, no quantile")
    return sorted(values)[min(len(values) - 1, max(0, ceil(share * len(values)) - 1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One playout of one stream; `equal_…` are the delays of the optimum that is as smooth."""

    rho: float
    rate_cv: float
    gap_cv: float
    p99_gap_ms: float
    mean_delay_ms: float
    p95_delay_ms: float
    max_delay_ms: float
    equal_mean_delay_ms: float
    equal_max_delay_ms: float
    first_ms: float
    end_lag_ms: float


def score(arrivals: Times, shown: Times, *, end_ms: float) -> Score:
    """Every metric of a playout; `end_ms` is when the stream said that it was over."""
    added = delays(arrivals, shown)
    needed = delays(arrivals, as_smooth(arrivals, shown))
    between = gaps(shown)
    return Score(
        rho=efficiency_ratio(arrivals, shown),
        rate_cv=rate_variation(shown),
        gap_cv=variation(between),
        p99_gap_ms=quantile(between, 0.99),
        mean_delay_ms=sum(added) / len(added),
        p95_delay_ms=quantile(added, 0.95),
        max_delay_ms=max(added),
        equal_mean_delay_ms=sum(needed) / len(needed),
        equal_max_delay_ms=max(needed),
        first_ms=added[0],
        end_lag_ms=shown[-1] - end_ms,
    )
