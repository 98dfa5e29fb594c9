"""lambda*: the highest rate at which the best static configuration serves 90 % of requests well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from paceline.sim.policies import STATIC
from paceline.sim.scenario import Scenario
from paceline.sim.simulator import run
from paceline.sim.workload import requests

WANTED = 0.9
SEEDS = (101, 102)  # none of those that are compared on
LOWEST, HIGHEST = 32.0, 1000.0  # requests/s; no fleet of eight such workers bears the latter
LIKELY = "eagle3-k2 x8"  # tried first, so that most of the others are tried once
PRECISION = 0.01  # of the rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """`rate_per_s` of `policy`, the best of all static ones."""

    rate_per_s: float
    policy: str


def capacity(scenario: Scenario, policies: Sequence[str] = tuple(STATIC)) -> Capacity:
    """By bisection; of several `policies` one that falls short of the best so far is tried once.

    Raises ValueError if none meets the objective at any rate.
    """
    best = Capacity(rate_per_s=0.0, policy="")
    for name in sorted(policies, key=lambda name: name != LIKELY):
        low = best.rate_per_s
        if low and not meets(scenario, name, low * (1.0 + PRECISION)):
            continue
        low, high = _bracket(scenario, name, low)
        while high - low > PRECISION * high:
            middle = (low + high) / 2
            if meets(scenario, name, middle):
                low = middle
            else:
                high = middle
        if low > best.rate_per_s:
            best = Capacity(rate_per_s=low, policy=name)
    if not best.policy:
        raise ValueError(f"{scenario.name}: no static configuration meets the objective")
    return best


def _bracket(scenario: Scenario, name: str, low: float) -> tuple[float, float]:
    """A rate that is met, or 0, and one that is not."""
    step = 1.1 if low else 1.5
    high = low * step or LOWEST
    while high < HIGHEST and meets(scenario, name, high):
        low, high = high, high * step
    return low, high


def meets(scenario: Scenario, name: str, rate_per_s: float) -> bool:
    attained = [
        run(
            scenario, STATIC[name], rate_per_s, seed, requests(scenario, rate_per_s, seed)
        ).result.attainment
        for seed in SEEDS
    ]
    return mean(attained) >= WANTED
