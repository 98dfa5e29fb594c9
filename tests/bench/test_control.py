"""`make bench-control`: ratios, intervals and crossovers of runs written by hand; small runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.bench.control.capacity import WANTED, capacity, meets
from paceline.bench.control.figures import Cell, Interval, cells, crossover, headline
from paceline.bench.control.plan import Task, simulated, still_of_interest
from paceline.bench.control.robustness import shares_of
from paceline.bench.scenarios import load
from paceline.bench.svg import Line, chart, ticks
from paceline.sim.policies import OFF, STATIC
from paceline.sim.simulator import POLICIES, RunResult


def result(goodput: float, attainment: float, e2e_s: float) -> RunResult:
    return RunResult(
        num_requests=100,
        num_finished=100,
        goodput=goodput,
        attainment=attainment,
        attainment_at=(attainment, 1.0, 1.0),
        mean_e2e_s=e2e_s,
        mean_ttft_s=0.02,
        mean_tpot_s=0.006,
        total_tokens_per_s=1000.0,
        wasted_verify_tokens=0.5,
        switches=0.1,
        pool_shares={"plain": 1.0},
        mean_running=4.0,
    )


def cell(rate: float = 10.0, share: float = 0.5, **runs: list[RunResult]) -> Cell:
    return Cell(
        mix="m",
        share=share,
        rate_per_s=rate,
        runs={name: dict(enumerate(results)) for name, results in runs.items()},
    )


def test_goodput_is_compared_where_the_other_falls_short() -> None:
    one = cell(
        paceline=[result(9.0, 0.9, 3.0), result(10.0, 1.0, 3.0)],
        oracle=[result(6.0, 0.6, 2.0), result(8.0, 0.8, 2.0)],
    )
    ratio = one.ratio("oracle")
    assert ratio.mean == pytest.approx((9 / 6 + 10 / 8) / 2, rel=0.002)
    assert ratio.low < 1.25 < 1.5 < ratio.high


def test_latency_is_compared_where_the_other_serves_all() -> None:
    one = cell(paceline=[result(9.9, 0.99, 2.0)], oracle=[result(10.0, 1.0, 3.0)])
    assert one.ratio("oracle") == Interval(
        mean=pytest.approx(1.5, rel=0.005),
        low=pytest.approx(1.5, rel=0.005),
        high=pytest.approx(1.5, rel=0.005),
    )


def test_an_interval_is_students() -> None:
    """Five values with mean 3 and standard deviation sqrt(2.5): 2.776 * sqrt(2.5 / 5)."""
    found = Interval.of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3.0
    assert found.high - found.mean == pytest.approx(1.963, abs=0.001)
    assert found.mean - found.low == pytest.approx(1.963, abs=0.001)


def test_the_best_static_is_what_ours_does_worst_beside_of_those_with_every_seed() -> None:
    ours = [result(8.0, 0.8, 3.0)] * 2
    one = cell(
        paceline=ours,
        **{
            OFF: [result(4.0, 0.4, 3.0)] * 2,
            "eagle3-k2 x8": [result(7.0, 0.7, 3.0)] * 2,
            "eagle3-k3 x8": [result(9.0, 0.9, 3.0)],  # sat the second seed out
        },
    )
    assert one.best_static == "eagle3-k2 x8"


def test_a_crossover_lies_between_the_rates_it_was_seen_at() -> None:
    """At 10 requests/s a third faster than plain, at 20 as much slower: it crosses at 15."""
    found = crossover(
        [
            cell(10.0, x=[result(9, 1, 3.0)], **{OFF: [result(9, 1, 4.0)]}),
            cell(20.0, x=[result(9, 1, 6.0)], **{OFF: [result(9, 1, 4.0)]}),
        ],
        "x",
    )
    assert found.rate_per_s is not None
    assert found.rate_per_s.mean == pytest.approx(15.0)
    assert found.seeds_crossing == found.seeds == 1


def test_what_is_always_faster_crosses_nowhere() -> None:
    found = crossover([cell(x=[result(9, 1, 3.0)], **{OFF: [result(9, 1, 4.0)]})], "x")
    assert (found.rate_per_s, found.seeds_crossing) == (None, 0)


def test_static_configurations_far_from_the_best_sit_out() -> None:
    results = {name: result(1.0, 0.5, 9.0) for name in POLICIES}
    results |= {f"eagle3-k{k} x8": result(9.0, 0.9, 2.0) for k in (1, 2, 3)}
    kept = still_of_interest(results)
    assert {"eagle3-k1 x8", "eagle3-k2 x8", "eagle3-k3 x8", OFF, "paceline"} <= set(kept)
    assert "ngram-k10 x8" not in kept


def test_windows_begin_at_the_fault() -> None:
    calm, struck = [100.0] * 40, [100.0] * 20 + [50.0] * 10 + [100.0] * 10
    shares = shares_of(struck, calm, from_s=15)
    assert shares[0] == pytest.approx(0.75)  # seconds 15 to 24
    assert min(shares) == pytest.approx(0.5)
    assert shares[-1] == pytest.approx(1.0)


def test_a_task_runs_all_its_policies_on_one_set_of_arrivals_and_figures_come_out() -> None:
    scenario = replace(load("mixed"), duration_s=10.0, drain_s=20.0)
    done = [
        simulated(
            Task(
                scenario=scenario,
                share=0.5,
                rate_per_s=20.0,
                seed=seed,
                policies=tuple(POLICIES),
            )
        )
        for seed in (1, 2)
    ]
    for one in done:
        assert len({run.num_requests for run in one.results.values()}) == 1
    (only,) = cells(done)
    assert set(only.runs) == set(POLICIES)
    assert only.best_static in STATIC
    figures = headline([only])
    assert 0.5 < figures["min_vs_oracle"] < 1.5
    assert figures["off_lower_bound"] <= figures["min_vs_speculation_off"]


def test_capacity_is_the_highest_rate_that_is_met() -> None:
    scenario = replace(load("mixed"), duration_s=4.0, drain_s=10.0)
    found = capacity(scenario, ["eagle3-k3 x8", OFF])
    assert found.policy == "eagle3-k3 x8"
    assert meets(scenario, found.policy, found.rate_per_s)
    assert not meets(scenario, found.policy, found.rate_per_s * 1.1)
    assert WANTED == 0.9


def test_a_chart_is_whole_and_escapes_what_it_is_told() -> None:
    drawn = chart("a < b", "x", "y", [Line(name="&", points=[(0.0, 1.0), (2.0, 3.0)])], level=2.0)
    assert drawn.startswith("<svg ")
    assert drawn.rstrip().endswith("</svg>")
    assert "a &lt; b" in drawn
    assert "&amp;" in drawn
    assert ticks(0.0, 10.0) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
