"""The fast fleet: it agrees with the engine that goes pass by pass, and it loses nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

import pytest

from paceline.core.draft import Drafter
from paceline.core.types import Workload
from paceline.sim.cost import pass_costs
from paceline.sim.counters import SpecCounts
from paceline.sim.draws import HeadDrafter
from paceline.sim.engine import Engine, run_out
from paceline.sim.fleet import Fleet, Job
from paceline.sim.generation import Generation
from paceline.sim.hardware import H100, LLAMA_31_8B, kv_cache_tokens
from paceline.sim.policies import BLIND, STATIC, Policy
from paceline.sim.scenario import Fault, Scenario, SimulatedPool
from paceline.sim.script import Finish, Script
from paceline.sim.simulator import run, tokens_by_second, tpot_s, ttft_s
from paceline.sim.truth import draws
from paceline.sim.workload import Request, requests

SHARES = {Workload.CODE: 0.4, Workload.CHAT: 0.4, Workload.EDIT: 0.2}


def scenario(*pools: SimulatedPool, **options: object) -> Scenario:
    given: dict[str, object] = {"duration_s": 60.0, "drain_s": 60.0, **options}
    return Scenario(
        name="test",
        shares=SHARES,
        pools=pools,
        label_pools=dict.fromkeys(Workload, pools[0].name),
        **given,  # type: ignore[arg-type]
    )


MIXED = (
    SimulatedPool(name="eagle3", method="eagle3", k=3, num_workers=2),
    SimulatedPool(name="ngram", method="ngram", k=5),
    SimulatedPool(name="plain"),
)


def simulate(
    of: Scenario, rate: float, *, policy: Policy = BLIND["round robin"], seed: int = 1
) -> tuple[Fleet, Sequence[Job], list[float]]:
    """The fleet after a run, its jobs, and the times of everything that happened."""
    fleet, times = Fleet(of, policy.pools_of(of)), []
    chooser = policy.chooser(of, seed)

    def choose(fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        times.append(now_s)
        return chooser.choose(fleet, request, now_s)

    def ended(job: Job, now_s: float) -> None:
        times.append(now_s)

    return fleet, fleet.run(requests(of, rate, seed), choose, ended), times


# --- beside the engine ----------------------------------------------------------------------------


def drafter(pool: SimulatedPool, request: Request, rng: random.Random) -> Drafter | None:
    if pool.method is None:
        return None
    of = draws(pool.method, request.workload, request.copy_ratio, pool.k, 0.0)
    # Independent passes, lookups too: the engine's two-state drafter stays in one state for up to
    # 50 passes, which here is part of a request's luck.
    return HeadDrafter(of.survivals, rng)


def by_engine(pool: SimulatedPool, of: Scenario, wanted: Sequence[Request]) -> dict[str, float]:
    """Mean TTFT, TPOT and E2E latency on one worker, every pass and token taken by itself."""
    engine = Engine(
        num_speculative_tokens=pool.k,
        max_num_seqs=pool.max_num_seqs,
        max_num_batched_tokens=of.max_num_batched_tokens,
        kv_cache_tokens=kv_cache_tokens(H100, LLAMA_31_8B),
        costs=pass_costs(H100, LLAMA_31_8B, method=pool.method),
    )
    rng = random.Random(5)
    arrivals = [
        (
            request.arrival_s,
            Generation(
                key=str(request.index),
                num_prompt_tokens=request.num_prompt_tokens,
                script=Script(
                    tokens=("x",) * request.num_output_tokens,
                    visible_chars=request.num_output_tokens,
                    finish=Finish.STOP,
                ),
                drafter=drafter(pool, request, rng),
                spec=SpecCounts.up_to(pool.k),
            ),
        )
        for request in wanted
    ]
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for now_s, one in run_out(engine, arrivals=arrivals):
        first.setdefault(int(one.key), now_s)
        last[int(one.key)] = now_s
    return {
        "ttft": mean(first[one.index] - one.arrival_s for one in wanted),
        "tpot": mean(
            (last[one.index] - first[one.index]) / (one.num_output_tokens - 1) for one in wanted
        ),
        "e2e": mean(last[one.index] - one.arrival_s for one in wanted),
    }


@pytest.mark.parametrize(
    ("pool", "rate"),
    [
        (SimulatedPool(name="plain"), 12.0),
        (SimulatedPool(name="eagle3", method="eagle3", k=3), 15.0),
        (SimulatedPool(name="ngram", method="ngram", k=5), 6.0),
        (SimulatedPool(name="full", max_num_seqs=32), 8.0),
    ],
    ids=lambda value: value.name if isinstance(value, SimulatedPool) else None,
)
def test_means_are_those_of_the_engine(pool: SimulatedPool, rate: float) -> None:
    of = scenario(pool, duration_s=40.0, drain_s=200.0)
    even = [replace(one, head_luck=0.0, lookup_luck=0.0) for one in requests(of, rate, 3)]
    fleet = Fleet(of)
    jobs = fleet.run(even, lambda fleet, request, now_s: (0, pool.k), lambda job, now_s: None)
    expected = by_engine(pool, of, even)
    found = {
        "ttft": mean(map(ttft_s, jobs)),
        "tpot": mean(map(tpot_s, jobs)),
        "e2e": mean((job.finish_s or 0.0) - job.request.arrival_s for job in jobs),
    }
    assert found["tpot"] == pytest.approx(expected["tpot"], rel=0.03)
    assert found["e2e"] == pytest.approx(expected["e2e"], rel=0.03)
    assert found["ttft"] == pytest.approx(expected["ttft"], rel=0.06)


# --- laws -----------------------------------------------------------------------------------------


def test_time_never_goes_back_and_nobody_is_answered_before_they_ask() -> None:
    _, jobs, times = simulate(scenario(*MIXED), 30.0)
    assert times == sorted(times)
    for job in jobs:
        assert job.first_s is not None
        assert job.finish_s is not None
        assert job.request.arrival_s < job.first_s < job.finish_s


def test_every_request_is_served_once_and_the_fleet_is_empty_after_it() -> None:
    of = scenario(*MIXED)
    fleet, jobs, _ = simulate(of, 30.0)
    assert [job.request for job in jobs] == requests(of, 30.0, 1)
    assert all(job.finish_s is not None for job in jobs)
    for worker in fleet.workers:
        assert (worker.in_flight, worker.running, len(worker.waiting)) == (0, 0, 0)
        assert worker.draft_tokens == 0.0


def test_tokens_are_conserved() -> None:
    """Each pass yields a token and what was accepted of its draft, the prefill one more."""
    _, jobs, _ = simulate(scenario(*MIXED), 30.0)
    for job in jobs:
        accepted, tokens = job.num_accepted, job.request.num_output_tokens
        assert 1 + job.num_passes + accepted == tokens
        assert 0 <= accepted <= job.num_passes * job.k
        assert accepted <= job.num_drafted
    assert sum(tokens_by_second(jobs, 0.0, 120.0)) == pytest.approx(
        sum(job.request.num_output_tokens for job in jobs), rel=1e-6
    )


def test_littles_law() -> None:
    """L = λW: the mean number in flight is the arrival rate times the mean time in the system."""
    of = scenario(*MIXED)
    _, jobs, _ = simulate(of, 40.0)
    changes = sorted(
        [(job.request.arrival_s, 1) for job in jobs] + [(job.finish_s or 0.0, -1) for job in jobs]
    )
    area, number, before_s = 0.0, 0, 0.0
    for now_s, change in changes:
        area += number * (now_s - before_s)
        number, before_s = number + change, now_s
    inside = sum((job.finish_s or 0.0) - job.request.arrival_s for job in jobs)
    assert number == 0
    assert area == pytest.approx(inside, rel=1e-9)
    rate, wait = len(jobs) / before_s, inside / len(jobs)
    assert area / before_s == pytest.approx(rate * wait, rel=1e-9)


def test_the_same_seed_is_the_same_run_and_another_is_another() -> None:
    of = scenario(*MIXED)
    for policy in (BLIND["least loaded"], STATIC["by label"], STATIC["eagle3-k2 x8"]):
        once, again = run(of, policy, 30.0, 7), run(of, policy, 30.0, 7)
        assert once.result == again.result
        assert once.result != run(of, policy, 30.0, 8).result


def test_more_load_is_slower() -> None:
    of = scenario(*MIXED)
    latencies = [
        run(of, BLIND["least loaded"], rate, 1).result.mean_e2e_s for rate in (5.0, 30.0, 60.0)
    ]
    assert latencies == sorted(latencies, key=lambda latency: latency or 0.0)


def test_a_full_worker_makes_others_wait() -> None:
    of = scenario(SimulatedPool(name="plain", max_num_seqs=4))
    _, jobs, _ = simulate(of, 5.0)
    ended = [job for job in jobs if job.first_s is not None]
    assert max(map(ttft_s, ended)) > 1.0
    for job in ended:
        beside = [
            other
            for other in ended
            if other.first_s is not None
            and job.first_s is not None
            and other.first_s <= job.first_s
            and (other.finish_s is None or other.finish_s > job.first_s)
        ]
        assert len(beside) <= 4


def test_a_sequence_waits_until_the_cache_has_room_for_its_whole_answer() -> None:
    small = replace(H100, memory_bytes=21.1e9)  # leaves room for about 6,000 tokens
    of = scenario(SimulatedPool(name="plain"), hardware=small)
    room = kv_cache_tokens(small, LLAMA_31_8B)
    fleet = Fleet(of)
    over: list[float] = []

    def choose(fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        over.append(fleet.workers[0].kv_cache_usage)
        return 0, 0

    wanted = [
        replace(one, num_prompt_tokens=1000, num_output_tokens=500) for one in requests(of, 6.0, 1)
    ]
    jobs = fleet.run(wanted, choose, lambda job, now_s: None)
    assert 4000 < room < 8000
    assert max(over) <= 1.0
    assert max(ttft_s(job) for job in jobs if job.first_s is not None) > 2.0


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_slow_worker_is_slower_from_then_on() -> None:
    calm = scenario(*MIXED)
    struck = replace(calm, faults=(Fault(at_s=30.0, slow_worker=3, slow_factor=2.0),))
    latencies = []
    for of in (calm, struck):
        _, jobs, _ = simulate(of, 20.0)
        on_it = [job for job in jobs if job.worker == 3]
        latencies.append(
            (
                mean(tpot_s(job) for job in on_it if (job.finish_s or 0.0) < 30.0),
                mean(tpot_s(job) for job in on_it if job.request.arrival_s > 30.0),
            )
        )
    (early, late), (early_struck, late_struck) = latencies
    assert early_struck == early
    assert late_struck > 1.9 * late


def test_lost_metrics_are_unknown_and_not_zero() -> None:
    of = scenario(*MIXED, faults=(Fault(at_s=30.0, lose_metrics=True),))
    seen: dict[bool, list[float | None]] = {False: [], True: []}

    def choose(fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        seen[now_s >= 30.0].append(fleet.loads[0].running)
        return 0, 3

    Fleet(of).run(requests(of, 5.0, 1), choose, lambda job, now_s: None)
    assert None not in seen[False]
    assert max(running or 0.0 for running in seen[False]) > 0
    assert set(seen[True]) == {None}


def test_a_workload_that_stops_copying_is_still_believed_to_copy() -> None:
    of = scenario(*MIXED, faults=(Fault(at_s=30.0, stop_copying=Workload.EDIT),))
    calm = requests(replace(of, faults=()), 20.0, 1)
    for before, after in zip(calm, requests(of, 20.0, 1), strict=True):
        stopped = before.arrival_s >= 30.0 and before.workload is Workload.EDIT
        assert after.believed == before.believed
        assert after.copy_ratio == (min(before.copy_ratio, 0.05) if stopped else before.copy_ratio)
