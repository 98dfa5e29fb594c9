"""What becomes of tokens per second when something goes wrong, beside a run in which nothing does.

The two runs have the same arrivals, so what the fault takes away is seen second by second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.sim.policies import Policy
from paceline.sim.scenario import Scenario
from paceline.sim.simulator import POLICIES, run, tokens_by_second
from paceline.sim.workload import requests

WINDOW_S = 10
BACK = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """`recovery_s` is how long after the fault tokens/s were back for good, at `BACK` of what they
    are without it, over windows of `WINDOW_S`; None if they never were. `worst` is the lowest such
    share, `switches` the changes of pool per conversation over the whole run."""

    scenario: str
    policy: str
    seed: int
    recovery_s: float | None
    worst: float
    switches: float
    switches_without: float
    attainment: float
    attainment_without: float
    tokens_per_s: tuple[float, ...]
    tokens_per_s_without: tuple[float, ...]


def recovery(scenario: Scenario, name: str, rate_per_s: float, seed: int) -> Recovery:
    """Raises ValueError for a scenario in which nothing goes wrong."""
    if not scenario.faults:
        raise ValueError(f"{scenario.name}: nothing goes wrong")
    policy: Policy = POLICIES[name]
    calm = replace(scenario, faults=())
    runs = [
        run(of, policy, rate_per_s, seed, requests(of, rate_per_s, seed)) for of in (scenario, calm)
    ]
    series = [tokens_by_second(one.jobs, 0.0, scenario.duration_s) for one in runs]
    at_s = int(min(fault.at_s for fault in scenario.faults))
    shares = shares_of(*series, from_s=at_s)
    last = max((i for i, share in enumerate(shares) if share < BACK), default=-1)
    return Recovery(
        scenario=scenario.name,
        policy=name,
        seed=seed,
        recovery_s=None if last == len(shares) - 1 else float(last + 1),
        worst=min(shares),
        switches=runs[0].result.switches,
        switches_without=runs[1].result.switches,
        attainment=runs[0].result.attainment,
        attainment_without=runs[1].result.attainment,
        tokens_per_s=tuple(series[0]),
        tokens_per_s_without=tuple(series[1]),
    )


def recovery_of(asked: tuple[Scenario, str, float, int]) -> Recovery:
    """The same, of its arguments in one: what a pool of processes can be given."""
    return recovery(*asked)


def shares_of(struck: Sequence[float], calm: Sequence[float], *, from_s: int) -> list[float]:
    """Tokens of each window that begins after the fault, over those without it."""
    return [
        sum(struck[at : at + WINDOW_S]) / max(1.0, sum(calm[at : at + WINDOW_S]))
        for at in range(from_s, len(struck) - WINDOW_S + 1)
    ]
