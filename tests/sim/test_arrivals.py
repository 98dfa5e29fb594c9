"""Arrivals: the rates and the burstiness that were asked for, the same from the same seed."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import mean, pvariance

import pytest

from paceline.sim.arrivals import gamma_arrivals, poisson_arrivals, trace_arrivals


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise([0.0, *times])]


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_gaps_have_the_rate_and_the_variation_asked_for(burstiness: float) -> None:
    times = gamma_arrivals(20.0, 2000.0, random.Random(1), burstiness=burstiness)
    assert len(times) == pytest.approx(40_000, rel=0.03)
    assert pvariance(gaps(times)) / mean(gaps(times)) ** 2 == pytest.approx(
        1 / burstiness, rel=0.06
    )


def test_poisson_counts_vary_as_much_as_they_are() -> None:
    counts = [len(poisson_arrivals(5.0, 20.0, random.Random(seed))) for seed in range(2000)]
    assert mean(counts) == pytest.approx(100.0, rel=0.01)
    assert pvariance(counts) == pytest.approx(100.0, rel=0.1)


def test_times_ascend_within_the_duration() -> None:
    trace = [0.0, 0.1, 0.2, 5.0, 9.0]
    for times in (
        poisson_arrivals(10.0, 50.0, random.Random(1)),
        gamma_arrivals(10.0, 50.0, random.Random(1), burstiness=0.3),
        trace_arrivals(trace, 10.0, 50.0, random.Random(1)),
    ):
        assert times == sorted(times)
        assert 0.0 <= times[0] <= times[-1] < 50.0


def test_a_trace_keeps_its_rhythm_at_another_rate() -> None:
    trace = [0.0, 1.0, 1.5, 2.0, 10.0]  # mean gap 2.5 s
    times = trace_arrivals(trace, 4.0, 1000.0, random.Random(3))
    assert len(times) == pytest.approx(4000, rel=0.01)
    assert {round(gap, 6) for gap in gaps(times)[1:]} == {0.1, 0.05, 0.8, 0.25}


def test_the_same_seed_gives_the_same_times() -> None:
    one, same, other = (poisson_arrivals(3.0, 30.0, random.Random(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize("trace", [[], [1.0], [1.0, 1.0], [2.0, 1.0, 3.0]])
def test_what_is_no_trace_is_refused(trace: list[float]) -> None:
    with pytest.raises(ValueError, match="trace"):
        trace_arrivals(trace, 1.0, 10.0, random.Random(1))
