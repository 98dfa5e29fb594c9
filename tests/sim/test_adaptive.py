"""The policies that reckon costs: they decide by `core.decide`, on what a gateway would know."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from paceline.core.beliefs import Beliefs, Outcome
from paceline.core.sampling import LIKELY_EVERY_S, OTHERS_EVERY_S, PER_TURN, TURN_S
from paceline.core.types import ModelSnapshot, WorkerLoad
from paceline.sim import adaptive
from paceline.sim.adaptive import FleetView
from paceline.sim.fleet import Fleet
from paceline.sim.scenario import Scenario, SimulatedPool
from paceline.sim.simulator import POLICIES, run
from paceline.sim.workload import Request, Workload, requests

POOLS = (
    SimulatedPool(name="eagle3", method="eagle3", k=3, num_workers=2),
    SimulatedPool(name="ngram", method="ngram", k=5, num_workers=1),
)
MIX = Scenario(
    name="test",
    shares={Workload.CODE: 0.3, Workload.CHAT: 0.3, Workload.EDIT: 0.4},
    pools=POOLS,
    label_pools={Workload.CODE: "eagle3", Workload.CHAT: "eagle3", Workload.EDIT: "ngram"},
    duration_s=25.0,
    drain_s=30.0,
)
RATE = 20.0


def regret(policy: str) -> float:
    found = run(MIX, POLICIES[policy], RATE, 1).result.regret
    assert found is not None
    return found


def test_who_knows_regrets_least_and_who_does_not_look_most() -> None:
    assert regret("oracle") < 0.02
    assert regret("oracle") < regret("paceline") < regret("round robin")


@pytest.mark.parametrize("name", ["paceline", "oracle"])
def test_the_same_seed_is_the_same_run(name: str) -> None:
    once, again = run(MIX, POLICIES[name], RATE, 3), run(MIX, POLICIES[name], RATE, 3)
    assert once.result == again.result


def test_nobody_drafts_more_than_the_pool_does() -> None:
    jobs = run(MIX, POLICIES["paceline"], RATE, 1).jobs
    limits = [pool.k for pool in POOLS for _ in range(pool.num_workers)]
    assert all(0 <= job.k <= limits[job.worker] for job in jobs)


def test_snapshots_have_fresh_counts_and_loads_of_the_last_look() -> None:
    """Kept snapshots are as good as new ones, at every decision of a run."""
    fleet = Fleet(MIX)
    view = FleetView(fleet, MIX.default_pool)
    seen: list[ModelSnapshot] = []

    def choose(fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        model = view.model()
        seen.append(model)
        workers = [worker for pool in model.pools for worker in pool.workers]
        for worker, snapshot in zip(fleet.workers, workers, strict=True):
            assert snapshot.in_flight == worker.in_flight
            assert snapshot.drafting == worker.drafting_in_flight
            assert snapshot.last_picked == worker.last_picked
            assert snapshot.load is fleet.loads[worker.index]
        assert model == FleetView(fleet, MIX.default_pool).model()
        return request.index % 3, fleet.workers[request.index % 3].pool.k

    fleet.run(requests(MIX, RATE, 1), choose, lambda job, now_s: None)
    loads = {worker.load for model in seen for pool in model.pools for worker in pool.workers}
    assert WorkerLoad() not in loads
    assert len(loads) > 10


def test_it_learns_at_the_pace_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw of what lookups served and one of the rest every half second, and a few whose texts
    are replayed."""
    told: list[tuple[float, Outcome]] = []
    learn = Beliefs.observe

    def observe(self: Beliefs, outcome: Outcome, now_s: float) -> None:
        told.append((now_s, outcome))
        learn(self, outcome, now_s)

    monkeypatch.setattr(Beliefs, "observe", observe)
    busy = replace(MIX, pools=tuple(replace(pool, num_workers=4) for pool in POOLS))
    ended = run(busy, POLICIES["paceline"], 60.0, 1).jobs
    replayed = [now_s for now_s, outcome in told if outcome.copy_ratio is not None]
    others = [now_s for now_s, outcome in told if outcome.copy_ratio is None]
    length_s = max(job.finish_s or 0.0 for job in ended)
    most = length_s / LIKELY_EVERY_S + length_s / OTHERS_EVERY_S
    assert 0.3 * most < len(replayed) <= 2 + most
    assert PER_TURN < max(others.count(now_s) for now_s in set(others)) <= 2 * PER_TURN
    turns = sorted(set(others))
    assert min(b - a for a, b in pairwise(turns)) >= TURN_S
    assert len(told) < len(ended)


def test_the_decision_is_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `core.decide.route` says is where a request goes, and with which k."""
    said = []
    route = adaptive.route

    def watched(*args: object) -> object:
        said.append(route(*args))  # type: ignore[arg-type]
        return said[-1]

    monkeypatch.setattr(adaptive, "route", watched)
    monkeypatch.setattr(adaptive.Regret, "EVERY", 10**9)  # which asks too: once, at the first
    jobs = run(MIX, POLICIES["paceline"], RATE, 1).jobs
    decided = [made for at, made in enumerate(said) if at != 1]
    assert [(str(job.worker), job.k) for job in jobs] == [(made.worker, made.k) for made in decided]
