"""The composition root: everything that a gateway is made of, built in order.

There is no stack of middleware on the data plane; `DataPlane._serve` is its order written out:
path, key, method, body, decision, relay.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI

from paceline.edge.admin import create_admin_app
from paceline.edge.data_plane import DataPlane
from paceline.edge.decisions import Decisions
from paceline.edge.learner import Learner
from paceline.edge.learner_metrics import BeliefsCollector, ReplaysCollector
from paceline.edge.scrape import watch
from paceline.edge.telemetry import Telemetry
from paceline.edge.workers import Fleet
from paceline.settings import Settings

LAG_PERIOD_S = 0.5


@dataclass(frozen=True, slots=True)
class Gateway:
    """Two ASGI applications over one state, and the loops that keep it true."""

    data_plane: DataPlane
    admin: FastAPI
    fleet: Fleet
    telemetry: Telemetry
    learner: Learner | None
    decisions: Decisions
    now_s: Callable[[], float]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The background loops, for as long as the context lasts."""
        jitter = random.Random()
        workers = self.fleet.workers.values()
        loops = [asyncio.create_task(watch(worker, jitter)) for worker in workers]
        loops.append(asyncio.create_task(_watch_lag(self.telemetry, self.now_s)))
        if self.learner is not None:
            loops += map(asyncio.create_task, self.learner.loops())
        try:
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            self.fleet.close()
            if self.learner is not None:
                await self.learner.close()
            self.decisions.close()


def create_app(
    settings: Settings,
    *,
    now_s: Callable[[], float] = time.monotonic,
    unix_s: Callable[[], float] = time.time,
) -> Gateway:
    """`now_s` is a monotonic clock, `unix_s` Unix time; both in seconds. Raises ConfigurationError
    for files that cannot be used."""
    fleet = Fleet(settings, now_s)
    telemetry = Telemetry(fleet)
    learner = None
    if settings.learning is not None:
        learner = Learner(
            settings.learning,
            fleet,
            observed=telemetry.learned,
            unix_s=unix_s,
            rng=random.Random(),
        )
        telemetry.register(BeliefsCollector(learner.beliefs))
        if learner.replays is not None:
            telemetry.register(ReplaysCollector(learner.replays))
    decisions = Decisions(settings.log.decisions)
    return Gateway(
        data_plane=DataPlane(settings, fleet, telemetry, learner, decisions, now_s, int(unix_s())),
        admin=create_admin_app(settings, fleet, telemetry, learner, decisions),
        fleet=fleet,
        telemetry=telemetry,
        learner=learner,
        decisions=decisions,
        now_s=now_s,
    )


async def _watch_lag(telemetry: Telemetry, now_s: Callable[[], float]) -> None:
    """How late timers run is how long a request waits before its handler sees it."""
    while True:
        due_s = now_s() + LAG_PERIOD_S
        await asyncio.sleep(LAG_PERIOD_S)
        telemetry.loop_lag.set(max(0.0, now_s() - due_s))
