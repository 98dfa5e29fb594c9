"""The fleet as it is now: which workers are up, what each has in flight, what each last said.

The mutable side of `core.types`: the data plane counts here, the scraper reports here, and
decisions are made from the frozen snapshots that this hands out.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from paceline.core.types import ModelSnapshot, PoolSnapshot, WorkerLoad, WorkerSnapshot
from paceline.edge.upstream import Upstream
from paceline.settings import ModelSettings, PoolSettings, Settings, Timeouts, WorkerSettings

log = logging.getLogger(__name__)

FAILURES_TO_GO_DOWN = 3
"""Probes in a row that must fail: one slow answer among good ones removes nobody."""
LOAD_FRESH_S = 5.0
"""Age at which scraped load counts as unknown."""


class Worker:
    """One worker. Up until it is known to be down."""

    def __init__(self, settings: WorkerSettings, timeouts: Timeouts, turns: Iterator[int]) -> None:
        self.url = settings.url
        self.upstream = Upstream(settings.url, key=settings.key, connect_s=timeouts.connect_s)
        self.in_flight = 0
        self.last_picked = 0
        self._turns = turns  # one count for the whole fleet
        self.up = True
        self.has_answered = False
        self._complained = False
        self.upstream_names: set[str] = set()  # what our models are called there
        self.card: Mapping[str, Any] | None = None  # its own entry for one of them
        self._failures = 0
        self._load = WorkerLoad()
        self._load_at_s = 0.0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Counts a request for as long as it lasts, whatever becomes of it."""
        self.in_flight += 1
        self.last_picked = next(self._turns)
        try:
            yield
        finally:
            self.in_flight -= 1

    def answered(self) -> None:
        self._failures = 0
        self.has_answered = True
        if not self.up:
            self.up = True
            log.warning("worker %s is up again", self.url)

    def failed_probe(self, why: str) -> None:
        self._failures += 1
        if self._failures >= FAILURES_TO_GO_DOWN:
            self._goes_down(why)

    def unreachable(self, why: str) -> None:
        """A request found no connection: down at once. The next good probe brings it back."""
        self._failures = max(self._failures, FAILURES_TO_GO_DOWN)
        self._goes_down(why)

    def serves(self, cards: Sequence[Mapping[str, Any]]) -> None:
        """Takes note of the models that it says it serves."""
        ours = [card for card in cards if card["id"] in self.upstream_names]
        self.card = next(iter(ours), {})
        if not ours:
            served = ", ".join(card["id"] for card in cards) or "no model"
            self.complains(f"it serves {served}, not {' or '.join(sorted(self.upstream_names))}")

    def complains(self, why: str) -> None:
        """It lives, but not for us: logged once, since it stays so until somebody mends it."""
        if not self._complained:
            self._complained = True
            log.warning("worker %s: %s", self.url, why)

    def _goes_down(self, why: str) -> None:
        if self.up:
            self.up = False
            log.warning("worker %s is down: %s", self.url, why)

    def report(self, load: WorkerLoad, now_s: float) -> None:
        self._load, self._load_at_s = load, now_s

    def load(self, now_s: float) -> WorkerLoad:
        """What it last said of itself, or unknown if that was too long ago."""
        return self._load if now_s - self._load_at_s < LOAD_FRESH_S else WorkerLoad()

    def snapshot(self, now_s: float, *, up: bool) -> WorkerSnapshot:
        return WorkerSnapshot(
            url=self.url,
            in_flight=self.in_flight,
            last_picked=self.last_picked,
            up=up,
            load=self.load(now_s),
        )


class Pool:
    def __init__(self, settings: PoolSettings, workers: tuple[Worker, ...]) -> None:
        self.settings = settings
        self.name = settings.name
        self.workers = workers

    def snapshot(self, now_s: float, without: Collection[str]) -> PoolSnapshot:
        return PoolSnapshot(
            name=self.name,
            speculation=self.settings.speculation,
            workers=tuple(
                worker.snapshot(now_s, up=worker.up and worker.url not in without)
                for worker in self.workers
            ),
        )


class Model:
    def __init__(self, settings: ModelSettings, pools: tuple[Pool, ...]) -> None:
        self.settings = settings
        self.name = settings.name
        self.pools = pools

    def snapshot(self, now_s: float, *, without: Collection[str] = ()) -> ModelSnapshot:
        """For a decision; workers `without` count as down."""
        return ModelSnapshot(
            name=self.name,
            default_pool=self.settings.default_pool,
            pools=tuple(pool.snapshot(now_s, without) for pool in self.pools),
        )

    @property
    def is_ready(self) -> bool:
        """Whether some worker of it is known to be up, and not only believed to be."""
        workers = (worker for pool in self.pools for worker in pool.workers)
        return any(worker.up and worker.has_answered for worker in workers)

    def card(self) -> Mapping[str, Any]:
        """What some worker says of the model; empty before one was asked."""
        cards = (worker.card for pool in self.pools for worker in pool.workers)
        return next((card for card in cards if card), {})


class Fleet:
    """All models, their pools and workers. A worker named twice is one worker."""

    def __init__(self, settings: Settings, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.workers: dict[str, Worker] = {}
        self._turns = itertools.count(1)
        self.models = tuple(self._model(model, settings) for model in settings.models)
        self._by_name = {
            name: model for model in self.models for name in (model.name, *model.settings.aliases)
        }

    @property
    def names(self) -> dict[str, Model]:
        """Every name that a client may ask for."""
        return self._by_name

    def close(self) -> None:
        for worker in self.workers.values():
            worker.upstream.close()

    def _model(self, model: ModelSettings, settings: Settings) -> Model:
        def worker(of: WorkerSettings) -> Worker:
            if of.url not in self.workers:
                self.workers[of.url] = Worker(of, settings.timeouts, self._turns)
            self.workers[of.url].upstream_names.add(model.upstream_name)
            return self.workers[of.url]

        pools = (Pool(pool, tuple(map(worker, pool.workers))) for pool in model.pools)
        return Model(model, tuple(pools))
