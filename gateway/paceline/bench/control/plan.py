"""Which runs there are, and how they are shared out: a task is a mix, a rate and a seed.

All policies of a task run on the same arrivals. The first seed's tasks run every static
configuration; those that are nowhere near the best there sit the other seeds out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context

from paceline.bench.control.capacity import Capacity, capacity
from paceline.sim.policies import BLIND, OFF, STATIC
from paceline.sim.scenario import Scenario
from paceline.sim.simulator import POLICIES, RunResult, run
from paceline.sim.workload import requests

SHARES = (0.1, 0.3, 0.5, 0.7, 0.85, 1.0, 1.15, 1.3)
"""Of lambda*."""
MODERATE = (0.5, 0.7, 0.85)
PROCESSES = 2
KEPT = 3
"""Static configurations that run with every seed, the best of the first seed."""
ALWAYS = (OFF, "ngram-k5 x8", "eagle3-k5 x8", *BLIND, "paceline", "oracle")
"""These run with every seed: what the ratios refer to, and whose crossovers are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    scenario: Scenario
    share: float
    rate_per_s: float
    seed: int
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    task: Task
    results: dict[str, RunResult]


def simulated(task: Task) -> Done:
    """Every policy of a task. The collector of cycles is off meanwhile: nothing here makes any, and
    it would look through a hundred thousand requests again and again."""
    gc.disable()
    try:
        arrivals = requests(task.scenario, task.rate_per_s, task.seed)
        return Done(
            task=task,
            results={
                name: run(
                    task.scenario, POLICIES[name], task.rate_per_s, task.seed, arrivals
                ).result
                for name in task.policies
            },
        )
    finally:
        gc.enable()
        gc.collect()


def capacities(scenarios: Sequence[Scenario]) -> dict[str, Capacity]:
    with get_context("spawn").Pool(PROCESSES) as pool:
        found = pool.map(capacity, scenarios, chunksize=1)
    return {scenario.name: one for scenario, one in zip(scenarios, found, strict=True)}


def all_done(
    scenarios: Sequence[Scenario],
    rates: dict[str, float],
    *,
    shares: Sequence[float] = SHARES,
    advance: Callable[[int, int], None] = lambda done, of: None,
) -> list[Done]:
    """Every task's results; `advance` is told how many of how many are done."""
    first = [task for one in scenarios for task in _first(one, rates[one.name], shares)]
    rest = sum(len(one.seeds) - 1 for one in scenarios) * len(shares)
    found: list[Done] = []
    with get_context("spawn").Pool(PROCESSES) as pool:
        for wave in (first, None):
            tasks = wave or _later(found)
            for one in pool.imap_unordered(simulated, _longest_first(tasks)):
                found.append(one)
                advance(len(found), len(first) + rest)
    return found


def _first(scenario: Scenario, rate: float, shares: Sequence[float]) -> Iterator[Task]:
    """The first seed's tasks, with every policy."""
    for share in shares:
        yield Task(
            scenario=scenario,
            share=share,
            rate_per_s=share * rate,
            seed=scenario.seeds[0],
            policies=tuple(POLICIES),
        )


def _later(first: Sequence[Done]) -> list[Task]:
    """The other seeds of the tasks done, with the policies that are still of interest."""
    return [
        Task(
            scenario=done.task.scenario,
            share=done.task.share,
            rate_per_s=done.task.rate_per_s,
            seed=seed,
            policies=still_of_interest(done.results),
        )
        for done in first
        for seed in done.task.scenario.seeds[1:]
    ]


def still_of_interest(results: dict[str, RunResult]) -> tuple[str, ...]:
    """The best static configurations of a run by goodput, and by latency where all are good."""
    by_goodput = sorted(STATIC, key=lambda name: -results[name].goodput)[:KEPT]
    by_latency = sorted(
        (name for name in STATIC if results[name].attainment >= 0.98),
        key=lambda name: results[name].mean_e2e_s or float("inf"),
    )[:KEPT]
    wanted = {*ALWAYS, *by_goodput, *by_latency}
    return tuple(name for name in POLICIES if name in wanted)


def _longest_first(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: -task.rate_per_s)
