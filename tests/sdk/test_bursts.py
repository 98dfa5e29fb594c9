"""What a stream's arrivals say about its source."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline_client.bursts import MAX_PERIOD_MS, MERGE_MS, REMEMBERED_BURSTS, Bursts

# Within twice of each other: none is taken for a stall.
even_periods_ms = st.lists(st.integers(30, 59), min_size=1, max_size=80)


@given(even_periods_ms, st.integers(1, 5))
def test_the_period_is_the_median_of_the_last_bursts(periods_ms: list[int], units: int) -> None:
    bursts = Bursts()
    for at_ms in accumulate(periods_ms, initial=0):
        bursts.arrive(at_ms, units)
    last = sorted(periods_ms[-REMEMBERED_BURSTS:])
    assert bursts.period_ms() == last[len(last) // 2]
    assert bursts.num_bursts == len(periods_ms) + 1


@given(st.lists(st.floats(0, 5000), min_size=1, max_size=80))
def test_the_gap_is_no_longer_than_the_longest_period(waits_ms: list[float]) -> None:
    bursts = Bursts()
    times = list(accumulate(waits_ms, initial=0.0))
    for at_ms in times:
        bursts.arrive(at_ms, 1)
    # A period begins with its burst, and a burst takes in what comes within MERGE_MS.
    longest_ms = MERGE_MS + max(later - at for at, later in pairwise(times))
    assert 0 < bursts.gap_ms <= max(8.0, longest_ms) * (1 + 1e-9)
    assert bursts.period_ms() <= max(MAX_PERIOD_MS, bursts.gap_ms)


def test_before_anything_is_measured_a_hint_says_it() -> None:
    bursts = Bursts()
    assert bursts.gap_ms == 8
    bursts.hint(period_ms=45, units=3)
    assert (bursts.gap_ms, bursts.period_ms()) == (15, 45)
    bursts.arrive(0, 2)
    bursts.arrive(100, 2)
    bursts.hint(period_ms=1, units=1)
    assert bursts.gap_ms == pytest.approx(50)
    assert bursts.period_ms() == 100
