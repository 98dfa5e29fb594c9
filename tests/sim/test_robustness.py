"""Things go wrong in mid-run: tokens per second come back, conversations do not flap.

Each is beside a run on the same arrivals in which nothing goes wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean

import pytest

from paceline.bench.control.robustness import BACK, shares_of
from paceline.bench.scenarios import load
from paceline.core.types import Workload
from paceline.sim.scenario import Fault
from paceline.sim.simulator import POLICIES, Run, run, tokens_by_second

FAULT_S, END_S, RATE = 40.0, 110.0, 40.0
BACK_WITHIN_S = 60
FAULTS = {
    "stops copying": ("edits", Fault(at_s=FAULT_S, stop_copying=Workload.EDIT)),
    "slow worker": ("mixed", Fault(at_s=FAULT_S, slow_worker=2, slow_factor=2.0)),
    "metrics vanish": ("mixed", Fault(at_s=FAULT_S, lose_metrics=True)),
}


@dataclass(frozen=True)
class Pair:
    struck: Run
    calm: Run

    def shares(self) -> Sequence[float]:
        """Tokens of the windows that begin after the fault, over those without it."""
        series = [tokens_by_second(one.jobs, 0.0, END_S) for one in (self.struck, self.calm)]
        return shares_of(*series, from_s=int(FAULT_S))


@cache
def simulated(mix: str, fault: Fault | None) -> Run:
    of = replace(load(mix), faults=(fault,) if fault else (), duration_s=END_S, drain_s=30.0)
    return run(of, POLICIES["paceline"], RATE, 1)


def pair(name: str) -> Pair:
    mix, fault = FAULTS[name]
    return Pair(simulated(mix, fault), simulated(mix, None))


@pytest.mark.parametrize("name", FAULTS)
def test_tokens_are_back_within_a_minute_and_conversations_do_not_flap(name: str) -> None:
    found = pair(name)
    assert min(found.shares()[BACK_WITHIN_S:]) >= BACK
    result = found.struck.result
    assert result.num_finished == result.num_requests
    # A conversation moves at most once more than it does in a calm fleet, and seldom that.
    assert result.switches <= found.calm.result.switches + 0.5


def pool_share(of: Run, workload: Workload, pool: str, from_s: float) -> float:
    return mean(
        of.fleet.workers[job.worker].pool.name == pool
        for job in of.jobs
        if job.request.workload is workload and job.request.arrival_s >= from_s
    )


def test_edits_that_stop_copying_leave_the_lookup_pool() -> None:
    found = pair("stops copying")
    late_s = FAULT_S + 40.0
    struck = pool_share(found.struck, Workload.EDIT, "ngram", late_s)
    calm = pool_share(found.calm, Workload.EDIT, "ngram", late_s)
    assert calm > 0.3
    assert struck < 0.5 * calm


def test_a_slow_worker_gets_less() -> None:
    found = pair("slow worker")

    def share(of: Run) -> float:
        late = [job for job in of.jobs if job.request.arrival_s >= FAULT_S + 20.0]
        return mean(job.worker == 2 for job in late)

    assert share(found.struck) < 0.7 * share(found.calm)
