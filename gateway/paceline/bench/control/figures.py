"""Ratios between policies, with intervals over seeds.

Where a policy that ours is compared with serves under 99 % of its requests well, the ratio is ours
over its goodput; where it serves them all, its mean E2E latency over ours. Either way above 1 is
better for ours. Pairs of runs have the same arrivals, so each ratio is taken within a seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from paceline.bench.control.plan import MODERATE, Done
from paceline.sim.policies import OFF, STATIC
from paceline.sim.simulator import RunResult

OURS = "paceline"
SERVED = 0.99
# Student's t at 97.5 %, by degrees of freedom; beyond the table the normal distribution's.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean over seeds and its 95 % interval; the interval is the mean where there is one seed."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        middle = mean(values)
        if len(values) < 2:
            return cls(mean=middle, low=middle, high=middle)
        t = _T[len(values) - 2] if len(values) - 2 < len(_T) else _NORMAL
        half = t * stdev(values) / sqrt(len(values))
        return cls(mean=middle, low=middle - half, high=middle + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All runs of one mix at one rate: by policy, by seed."""

    mix: str
    share: float
    rate_per_s: float
    runs: Mapping[str, Mapping[int, RunResult]]

    def ratio(self, other: str, ours: str = OURS) -> Interval:
        """Ours to another's, paired by seed. Raises KeyError where one of them did not run."""
        mine, theirs = self.runs[ours], self.runs[other]
        seeds = sorted(mine.keys() & theirs.keys())
        if mean(theirs[seed].attainment for seed in seeds) < SERVED:
            found = [_over(mine[seed].goodput, theirs[seed].goodput) for seed in seeds]
        else:
            found = [
                _over(theirs[seed].mean_e2e_s or 0.0, mine[seed].mean_e2e_s or 0.0)
                for seed in seeds
            ]
        return Interval.of(found)

    @property
    def best_static(self) -> str:
        """Of the static configurations that ran with every seed, the one that ours does worst
        beside."""
        most = max(len(by_seed) for by_seed in self.runs.values())
        names = [name for name in STATIC if len(self.runs.get(name, ())) == most]
        return min(names, key=lambda name: self.ratio(name).mean)

    def mean(self, policy: str, figure: str) -> float | None:
        """A figure's mean over seeds; None where it is not known."""
        values = [getattr(result, figure) for result in self.runs[policy].values()]
        known = [value for value in values if value is not None]
        return mean(known) if known else None


def _over(one: float, other: float) -> float:
    """A quotient, for goodputs that may be next to none: a hundredth of a request/s is added."""
    return (one + 0.01) / (other + 0.01)


def cells(done: Iterable[Done]) -> list[Cell]:
    """In order of mix, as they first came, and rate."""
    grouped: dict[tuple[str, float, float], dict[str, dict[int, RunResult]]] = {}
    for one in done:
        task = one.task
        key = (task.scenario.name, task.share, task.rate_per_s)
        runs = grouped.setdefault(key, defaultdict(dict))
        for name, result in one.results.items():
            runs[name][task.seed] = result
    return [
        Cell(mix=mix, share=share, rate_per_s=rate, runs=dict(runs))
        for (mix, share, rate), runs in sorted(grouped.items(), key=lambda item: item[0])
    ]


def headline(all_cells: Sequence[Cell]) -> dict[str, float]:
    """The figures by which runs are judged; `off_lower_bound` is the lowest end of an interval."""
    moderate = [cell for cell in all_cells if cell.share in MODERATE] or list(all_cells)
    off = [cell.ratio(OFF) for cell in all_cells]
    return {
        "min_vs_best_static": min(cell.ratio(cell.best_static).mean for cell in all_cells),
        "min_vs_oracle": min(cell.ratio("oracle").mean for cell in all_cells),
        "vs_round_robin_moderate": min(cell.ratio("round robin").mean for cell in moderate),
        "vs_least_loaded_moderate": min(cell.ratio("least loaded").mean for cell in moderate),
        "min_vs_speculation_off": min(ratio.mean for ratio in off),
        "off_lower_bound": min(ratio.low for ratio in off),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """The rate from which a speculating fleet is slower than a plain one, over seeds.

    None where it is faster at every rate that was run, 0 where at none. `seeds_crossing` says in
    how many of `seeds` it crossed at all; the interval is over those.
    """

    policy: str
    rate_per_s: Interval | None
    seeds_crossing: int
    seeds: int


def crossover(of_mix: Sequence[Cell], policy: str) -> Crossover:
    """By mean E2E latency, on straight lines between rates; `of_mix` in order of rate."""
    seeds = sorted(of_mix[0].runs[policy].keys() & of_mix[0].runs[OFF].keys())
    found = [rate for seed in seeds if (rate := _crossing(of_mix, policy, seed)) is not None]
    return Crossover(
        policy=policy,
        rate_per_s=Interval.of(found) if found else None,
        seeds_crossing=len(found),
        seeds=len(seeds),
    )


def _crossing(of_mix: Sequence[Cell], policy: str, seed: int) -> float | None:
    before: tuple[float, float] | None = None
    for cell in of_mix:
        plain, other = cell.runs[OFF][seed].mean_e2e_s, cell.runs[policy][seed].mean_e2e_s
        gain = (plain or 0.0) / other - 1.0 if other else -1.0
        if gain < 0.0:
            if before is None:
                return 0.0
            rate, was = before
            return rate + (cell.rate_per_s - rate) * was / (was - gain)
        before = (cell.rate_per_s, gain)
    return None
