"""The smoothest playout there can be, against closed forms and a solver that knows no strings."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.bench.optimum import (
    as_smooth,
    delays,
    efficiency_ratio,
    gaps,
    quantile,
    rate_variation,
    roughness,
    score,
    taut_string,
    variation,
)

streams = st.lists(
    st.sampled_from([0.0, 0.0, 0.0, 10.0, 45.0, 120.0, 700.0]), min_size=1, max_size=14
).map(lambda between: [0.0, *accumulate(between)])
bounds_ms = st.sampled_from([0.0, 20.0, 100.0, 400.0])


def corridor(arrivals: list[float], delay_ms: float, end_lag_ms: float):
    end_ms = arrivals[-1] + min(end_lag_ms, delay_ms)
    high = [min(arrival + delay_ms, end_ms) for arrival in arrivals]
    return [*arrivals[:-1], end_ms], [arrivals[0], *high[1:]]


def by_relaxation(arrivals: list[float], delay_ms: float, end_lag_ms: float) -> list[float]:
    """The quadratic programme min sum of squared gaps in the corridor, by projected Gauss-Seidel.

    Each time is moved to the middle of its neighbours as far as its bounds allow; the problem is
    strictly convex in them, so this converges to its only solution.
    """
    low, high = corridor(arrivals, delay_ms, end_lag_ms)
    shown = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    shown[0], shown[-1] = low[0], high[-1]
    for _ in range(20_000):
        moved = 0.0
        for index in range(1, len(shown) - 1):
            middle = (shown[index - 1] + shown[index + 1]) / 2
            to = min(high[index], max(low[index], middle))
            moved = max(moved, abs(to - shown[index]))
            shown[index] = to
        if moved < 1e-9:
            return shown
    raise AssertionError("did not converge")


@given(streams, bounds_ms, bounds_ms)
def test_it_is_what_a_solver_of_quadratic_programmes_finds(
    arrivals: list[float], delay_ms: float, end_lag_ms: float
) -> None:
    taut = taut_string(arrivals, delay_ms, end_lag_ms)
    assert taut == pytest.approx(by_relaxation(arrivals, delay_ms, end_lag_ms), abs=1e-3)


@given(streams, bounds_ms, bounds_ms)
def test_it_stays_in_the_corridor(
    arrivals: list[float], delay_ms: float, end_lag_ms: float
) -> None:
    taut = taut_string(arrivals, delay_ms, end_lag_ms)
    low, high = corridor(arrivals, delay_ms, end_lag_ms)
    assert all(a - 1e-6 <= s <= b + 1e-6 for a, s, b in zip(low, taut, high, strict=True))
    assert all(gap >= -1e-6 for gap in gaps(taut))


@given(streams, bounds_ms)
def test_its_worst_gap_is_the_best_there_can_be(arrivals: list[float], delay_ms: float) -> None:
    """max over i < j of (low_j - high_i) / (j - i): what any playout must cover in j - i steps."""
    taut = taut_string(arrivals, delay_ms, delay_ms)
    low, high = corridor(arrivals, delay_ms, delay_ms)
    pairs = [(i, j) for j in range(len(low)) for i in range(j)]
    best = max([0.0, *((low[j] - high[i]) / (j - i) for i, j in pairs)])
    assert max(gaps(taut)) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("size", "period_ms"), [(3, 45.0), (5, 120.0), (65, 450.0)])
def test_equal_bursts_need_a_period_less_one_unit(size: int, period_ms: float) -> None:
    """P (k - 1) / k of delay makes bursts of k every P even; half of it is the mean delay."""
    arrivals = [burst * period_ms for burst in range(20) for _ in range(size)]
    needed_ms = period_ms * (size - 1) / size
    even = taut_string(arrivals, needed_ms, needed_ms)
    assert gaps(even) == pytest.approx([period_ms / size] * (len(arrivals) - 1))
    added = delays(arrivals, even)
    assert max(added) == pytest.approx(needed_ms)
    assert sum(added) / len(added) == pytest.approx(needed_ms / 2)
    short = taut_string(arrivals, 0.8 * needed_ms, 0.8 * needed_ms)
    assert max(gaps(short)) == pytest.approx(period_ms / size + 0.2 * needed_ms)


@given(streams, bounds_ms)
def test_more_delay_is_never_rougher(arrivals: list[float], delay_ms: float) -> None:
    less = roughness(taut_string(arrivals, delay_ms, 50))
    more = roughness(taut_string(arrivals, delay_ms + 100, 50))
    if delay_ms >= 50:  # below, the end moves too
        assert more <= less + 1e-6


def test_without_delay_it_is_the_arrivals() -> None:
    arrivals = [0.0, 0.0, 45.0, 45.0, 90.0]
    assert taut_string(arrivals, 0, 0) == arrivals
    assert taut_string([], 10, 10) == []
    assert taut_string([5.0], 10, 10) == [15.0]  # the end is where it is asked to be


def test_rho_is_one_for_the_optimum_and_for_spending_nothing() -> None:
    arrivals = [0.0, 0.0, 0.0, 45.0, 45.0, 45.0, 90.0, 90.0, 90.0]
    for delay_ms in (0.0, 10.0, 30.0):
        assert efficiency_ratio(arrivals, taut_string(arrivals, delay_ms, delay_ms)) == (
            pytest.approx(1)
        )
    worse = [0.0, 1.0, 2.0, 60.0, 61.0, 62.0, 110.0, 111.0, 120.0]
    assert efficiency_ratio(arrivals, worse) > 1.5


def gap_cv(shown: list[float]) -> float:
    return variation(gaps(shown))


@given(streams, st.floats(1, 400), st.floats(0, 400))
def test_the_equal_smoothness_delay_of_the_optimum_is_its_own(
    arrivals: list[float], delay_ms: float, end_lag_ms: float
) -> None:
    """Up to where more delay makes nothing smoother."""
    best = taut_string(arrivals, delay_ms, end_lag_ms)
    found = as_smooth(arrivals, best)
    assert gap_cv(found) <= gap_cv(best) + 1e-6
    assert max(delays(arrivals, found)) <= max(delays(arrivals, best)) + 1e-6
    if gap_cv(taut_string(arrivals, 0.95 * delay_ms, end_lag_ms)) > gap_cv(best) + 1e-6:
        assert max(delays(arrivals, found)) == pytest.approx(delay_ms, rel=0.05, abs=0.05)


@given(streams, bounds_ms, st.floats(0, 400))
def test_more_delay_never_makes_gaps_vary_more(
    arrivals: list[float], delay_ms: float, end_lag_ms: float
) -> None:
    less, more = (taut_string(arrivals, ms, end_lag_ms) for ms in (delay_ms, delay_ms + 30))
    assert gap_cv(more) <= gap_cv(less) + 1e-6


@given(streams, st.lists(st.floats(0, 500), min_size=14, max_size=14))
def test_the_optimum_needs_no_more_delay_than_any_playout_that_is_as_smooth(
    arrivals: list[float], held_ms: list[float]
) -> None:
    held = zip(arrivals, [0.0, *held_ms], strict=False)
    shown = list(accumulate((arrival + wait_ms for arrival, wait_ms in held), max))
    found = as_smooth(arrivals, shown)
    assert gap_cv(found) <= gap_cv(shown) + 1e-6
    assert max(delays(arrivals, found)) <= max(delays(arrivals, shown)) + 1e-6


@given(streams)
def test_what_is_no_smoother_than_the_arrivals_is_worth_no_delay(arrivals: list[float]) -> None:
    assert as_smooth(arrivals, arrivals) == arrivals
    late = [arrival + 100 for arrival in arrivals]
    assert as_smooth(arrivals, late) == arrivals


def test_the_equal_smoothness_delay_of_bursts_halved() -> None:
    """Pairs whose second token comes 20 ms later cannot be had for less; later still is worse."""
    arrivals = [0.0, 0.0, 45.0, 45.0, 90.0, 90.0, 135.0]
    shown = [0.0, 20.0, 45.0, 65.0, 90.0, 110.0, 135.0]
    assert max(delays(arrivals, as_smooth(arrivals, shown))) == pytest.approx(20, abs=0.1)
    late = [0.0, 20.0, 65.0, 85.0, 110.0, 130.0, 155.0]
    score_of = score(arrivals, late, end_ms=135.0)
    assert score_of.equal_max_delay_ms < score_of.max_delay_ms
    assert score_of.equal_mean_delay_ms < score_of.mean_delay_ms


def test_metrics_by_hand() -> None:
    assert variation([1, 1, 1]) == 0
    assert variation([0, 2]) == 1
    assert variation([]) == variation([0.0]) == 0
    assert rate_variation([0, 50, 100, 150, 200]) == pytest.approx(0.2)  # 2 and 3 in 100 ms each
    assert quantile([3, 1, 2, 4], 0.5) == 2
    assert quantile([1], 0.99) == 1
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_a_score_by_hand() -> None:
    result = score([0.0, 0.0, 100.0], [0.0, 50.0, 120.0], end_ms=110.0)
    assert (result.mean_delay_ms, result.max_delay_ms) == (pytest.approx(70 / 3), 50)
    assert (result.first_ms, result.end_lag_ms, result.p99_gap_ms) == (0, 10, 70)
