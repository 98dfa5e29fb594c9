"""Who gets a request: the policies that are compared, a dict of functions.

A policy has a fleet to run on, the scenario's own or a homogeneous one of as many workers, and
makes a chooser for one run. Those here are what people do without reckoning costs; those that do
are in `adaptive.py`, and take their choices from `core.decide` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from paceline.sim.fleet import Fleet, Job
from paceline.sim.scenario import Scenario, SimulatedPool
from paceline.sim.workload import Request


class Chooser(Protocol):
    """One run's decisions. `choose` gives worker and k; `ended` is told of every answer's end."""

    def choose(self, fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]: ...

    def ended(self, job: Job, now_s: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`pools` None is the scenario's own layout."""

    chooser: Callable[[Scenario, int], Chooser]  # of the scenario and the seed
    pools: Callable[[Scenario], Sequence[SimulatedPool]] | None = None

    def pools_of(self, scenario: Scenario) -> Sequence[SimulatedPool]:
        return scenario.pools if self.pools is None else self.pools(scenario)


class RoundRobin:
    """Every worker in turn."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._next = 0

    def choose(self, fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        index = self._next
        self._next = (index + 1) % len(fleet.workers)
        return index, fleet.workers[index].pool.k

    def ended(self, job: Job, now_s: float) -> None:
        """It does not learn."""


class LeastLoaded:
    """The worker with the fewest requests in flight; of equals the one picked longest ago."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._picked: dict[int, int] = {}
        self._count = 0

    def choose(self, fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        index = self.least(fleet, self.candidates(fleet, request))
        return index, fleet.workers[index].pool.k

    def candidates(self, fleet: Fleet, request: Request) -> range:
        return range(len(fleet.workers))

    def least(self, fleet: Fleet, candidates: range) -> int:
        workers, picked = fleet.workers, self._picked
        index = min(candidates, key=lambda i: (workers[i].in_flight, picked.get(i, 0)))
        self._count += 1
        picked[index] = self._count
        return index

    def ended(self, job: Job, now_s: float) -> None:
        """It does not learn."""


class ByLabel(LeastLoaded):
    """The pool that the scenario names for the predicted class, its least loaded worker."""

    def candidates(self, fleet: Fleet, request: Request) -> range:
        return fleet.pool_workers[fleet.scenario.label_pools[request.believed.workload]]


def homogeneous(method: str | None, k: int, scenario: Scenario) -> list[SimulatedPool]:
    """As many workers as the scenario has, all alike, with its most generous batch limit."""
    return [
        SimulatedPool(
            name=method or "plain",
            method=method,
            k=k,
            num_workers=sum(pool.num_workers for pool in scenario.pools),
            max_num_seqs=max(pool.max_num_seqs for pool in scenario.pools),
        )
    ]


def _fleet_of(method: str | None, k: int = 0) -> Policy:
    return Policy(chooser=LeastLoaded, pools=partial(homogeneous, method, k))


OFF = "plain x8"
STATIC: dict[str, Policy] = {
    OFF: _fleet_of(None),
    **{f"ngram-k{k} x8": _fleet_of("ngram", k) for k in (3, 5, 10)},
    **{f"eagle3-k{k} x8": _fleet_of("eagle3", k) for k in (1, 2, 3, 5)},
    "by label": Policy(chooser=ByLabel),
}
"""What an operator can set once: one kind of worker for all, or a pool for each label."""
BLIND: dict[str, Policy] = {
    "round robin": Policy(chooser=RoundRobin),
    "least loaded": Policy(chooser=LeastLoaded),
}
"""What balancers do with a mixed fleet."""
