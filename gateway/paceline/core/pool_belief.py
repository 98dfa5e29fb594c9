"""What is believed of one pool: how it drafts, how long passes take, how slow its workers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log
from operator import mul
from typing import Any

from msgspec import Struct

from paceline.core.band_shift import Shares
from paceline.core.lookup import LOOKUPS
from paceline.core.posterior import SurvivalPosterior
from paceline.core.priors import NUM_BANDS, draft_limit, prior_step_time, prior_survivals
from paceline.core.step_time import StepTime, StepTimeFit, part_left
from paceline.core.types import Speculation, Workload

MEAN_MEMORY = 64.0
"""Requests that a running mean remembers."""
SLOWNESS_WEIGHT = 1.0 / 8.0
"""Of one request in a worker's slowness."""
MOST_SLOWNESS = 8.0
MOST_NEWS = 2.0
"""Factor by which one request may differ from what was believed and still count for all of it: one
that stood still for a while says little of the next (Huber's estimator, as in `step_time`)."""
MAX_DRAFTING = 4096
"""Requests' shares that are reckoned out and kept: beliefs are rounded, so few differ."""


class Drafting(Struct, frozen=True):
    """How a pool drafts for a request: the cases that the request may be, with the probability of
    each, by k = 0, 1, … what 1 / tokens a pass is in each, and its mean; and `fill`, the part of
    its draft slots that its requests use, in [0, 1]."""

    shares: tuple[float, ...]
    inverse_taus: tuple[tuple[float, ...], ...]
    mean_inverses: tuple[float, ...]
    fill: float

    @classmethod
    def of(
        cls,
        shares: tuple[float, ...],
        inverse_taus: tuple[tuple[float, ...], ...],
        fill: float = 1.0,
    ) -> Drafting:
        means = tuple([sum(map(mul, shares, row), start=0.0) for row in inverse_taus])
        return cls(shares, inverse_taus, means, fill)


@dataclass(slots=True)
class Mean:
    """A running mean that starts as its prior's, worth `prior_count` observations."""

    value: float
    count: float = 4.0

    def observe(self, value: float) -> None:
        self.count = min(self.count + 1.0, MEAN_MEMORY)
        self.value += (value - self.value) / self.count

    def state(self) -> dict[str, float]:
        """As plain JSON values."""
        return {"value": self.value, "count": self.count}

    @classmethod
    def of(cls, state: Mapping[str, Any], *, least: float, most: float) -> Mean:
        """From `state`. Raises ValueError, KeyError, TypeError for what is no mean of values from
        `least` to `most`."""
        value, count = float(state["value"]), float(state["count"])
        if not (least <= value <= most and 0.0 <= count <= MEAN_MEMORY):
            raise ValueError(f"not a mean within {least:g} and {most:g}: {value=} {count=}")
        return cls(value, count)


@dataclass(slots=True)
class Slowness:
    """How much longer a worker's passes take than its pool's fit says, as a factor."""

    half_life_s: float
    log_factor: float = 0.0
    count: float = 0.0
    updated_s: float = 0.0

    def observe(self, ratio: float, now_s: float) -> None:
        self.count += 1.0
        weight = max(SLOWNESS_WEIGHT, 1.0 / (self.count + 2.0))  # two as expected, to begin with
        bounded = min(max(log(ratio), -log(MOST_SLOWNESS)), log(MOST_SLOWNESS))
        before = log(self.factor(now_s))
        news = min(max(bounded - before, -log(MOST_NEWS)), log(MOST_NEWS))
        self.log_factor, self.updated_s = before + weight * news, now_s

    def factor(self, now_s: float) -> float:
        """1 when it has not been seen for long: one that nothing is sent to may be well again."""
        return exp(self.log_factor * part_left(self.updated_s, now_s, self.half_life_s))


class PoolBelief:
    """Of one pool: survivals by workload and band, seconds of a pass, slots really drafted."""

    def __init__(self, speculation: Speculation | None, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self.method = speculation.method if speculation is not None else None
        self.limit = draft_limit(speculation)
        self.looks_up = self.method in LOOKUPS
        priors = prior_survivals(self.method, self.limit)
        self.cells = {
            (workload, band): SurvivalPosterior(priors[band])
            for workload in Workload
            for band in range(NUM_BANDS)
        }
        self.fit = StepTimeFit(prior_step_time(self.method, self.limit), half_life_s)
        self.fill = Mean(1.0)  # of the k slots, what part is drafted and so verified
        self.slowness: dict[str, Slowness] = {}
        self._inverse_taus: dict[Workload, tuple[tuple[float, ...], ...]] = {}
        self._drafting: dict[tuple[Workload, Shares], Drafting] = {}

    def drafting(self, workload: Workload, shares: Shares) -> Drafting:
        """For a request whose copy ratio lies in each band so likely; kept until it changes."""
        key = (workload, shares)
        known = self._drafting.get(key)
        if known is None:
            if len(self._drafting) >= MAX_DRAFTING:
                self._drafting.clear()
            taus = self.inverse_taus(workload)
            known = self._drafting[key] = Drafting.of(shares, taus, self.fill.value)
        return known

    def inverse_taus(self, workload: Workload) -> tuple[tuple[float, ...], ...]:
        """1 / tokens a pass, by k = 0, 1, … `limit` and then by band; kept until it changes."""
        known = self._inverse_taus.get(workload)
        if known is None:
            by_band = [
                [
                    1.0 / tau
                    for tau in accumulate(self.cells[workload, band].survivals(), initial=1.0)
                ]
                for band in range(NUM_BANDS)
            ]
            known = self._inverse_taus[workload] = tuple(zip(*by_band, strict=True))
        return known

    def changed(self, workload: Workload) -> None:
        self._inverse_taus.pop(workload, None)
        self._drafting.clear()

    def step_time(self, worker: str, now_s: float, elsewhere: float | None) -> StepTime:
        """Of one worker. `elsewhere` is the scale of the model's other pools, if known."""
        step_time = self.fit.step_time(now_s, elsewhere)
        slow = self.slowness.get(worker)
        return step_time if slow is None else step_time.times(slow.factor(now_s))

    def observe_time(
        self, worker: str, running: float, scheduled: float, context: float, seconds: float,
        now_s: float, elsewhere: float | None,
    ) -> None:  # fmt: skip
        """A worker's passes took `seconds` on average, at this load."""
        if self.fit.num_observed > 0:
            expected = self.fit.step_time(now_s, elsewhere)
            slow = self.slowness.setdefault(worker, Slowness(self.half_life_s))
            slow.observe(seconds / expected.seconds(running, scheduled, context), now_s)
        self.fit.observe(running, scheduled, context, seconds, now_s, elsewhere)

    def state(self) -> dict[str, Any]:
        """As plain JSON values. A worker's slowness is not kept: it may be another by tomorrow."""
        return {
            "method": self.method,
            "limit": self.limit,
            "cells": {
                workload.value: [self.cells[workload, band].state() for band in range(NUM_BANDS)]
                for workload in Workload
            },
            "fit": self.fit.state(),
            "fill": self.fill.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes up what was learned before, if the pool drafts as it did then.

        Raises ValueError, KeyError, TypeError for what is no such state.
        """
        if (state["method"], state["limit"]) != (self.method, self.limit):
            return
        for workload in Workload:
            for band, cell in enumerate(state["cells"][workload.value]):
                self.cells[workload, band].restore(**cell)
        self.fit.restore(**state["fit"])
        self.fill = Mean.of(state["fill"], least=0.0, most=1.0)
        self._inverse_taus.clear()
        self._drafting.clear()
