"""The fleet as it is now: which workers are up, what each has in flight, what each last said.

The mutable side of `core.types`: the data plane counts here, the scraper reports here, and
decisions are made from the frozen snapshots that this hands out.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from paceline.core.health import DOWN, TRIAL, UP, Health, Standing
from paceline.core.types import ModelSnapshot, PoolSnapshot, WorkerLoad, WorkerSnapshot
from paceline.edge.upstream import Upstream
from paceline.errors import WorkerBusy, WorkerError, WorkerUnavailable
from paceline.settings import ModelSettings, PoolSettings, Settings, Timeouts, WorkerSettings

log = logging.getLogger(__name__)

BACK_PRESSURE = frozenset([429, 503])
"""Statuses of a worker that is well and has too much to do."""
LOAD_FRESH_S = 5.0
"""Age at which scraped load counts as unknown."""


class Worker:
    """One worker: what it has in flight, how it has behaved, what it last said."""

    def __init__(
        self,
        settings: WorkerSettings,
        timeouts: Timeouts,
        turns: Iterator[int],
        now_s: Callable[[], float],
    ) -> None:
        self.url = settings.url
        self.per_request_k = settings.per_request_k
        self.upstream = Upstream(settings.url, key=settings.key, connect_s=timeouts.connect_s)
        self.in_flight = 0
        self._draft_slots = 0  # draft tokens a pass, of the requests in flight
        self._request_s = self._slot_s = 0.0  # both, added up over time
        self._counted_s = now_s()
        self._elsewhere = 0.0
        self._last_picked = 0
        self._turns = turns  # one count for the whole fleet
        self._now_s = now_s
        self._health = Health()
        self._was_standing = UP
        self.has_answered = False
        self._has_served = False  # a request, since it was last asked for its health
        self._complained = False
        self.upstream_names: set[str] = set()  # what our models are called there
        self.card: Mapping[str, Any] | None = None  # its own entry for one of them
        self._load = WorkerLoad()
        self._load_until_s = float("-inf")
        self._snapshot: WorkerSnapshot | None = None  # as long as it is true
        self.snapshot_until_s = 0.0
        self.pools: list[Pool] = []  # that it is a worker of

    # -- requests --------------------------------------------------------------------------------

    def request(self, k: int = 0) -> _InFlight:
        """Counts a request for as long as it lasts, and how it ended, whatever becomes of it. It
        drafts `k` tokens a pass."""
        return _InFlight(self, k)

    def begins(self, k: int) -> None:
        self._add_up()
        self.in_flight += 1
        self._draft_slots += k
        self._last_picked = next(self._turns)
        self._health.request_began()
        self._changed()

    def ends(self, k: int, error: BaseException | None) -> None:
        self._add_up()
        self.in_flight -= 1
        self._draft_slots -= k
        self._changed()
        if isinstance(error, WorkerUnavailable):
            self._health.unreachable()
            self._noted(error.message)
        elif isinstance(error, WorkerError) and not isinstance(error, WorkerBusy):
            self.failed(error.message)
        elif error is not None:
            self._health.request_said_nothing()

    def busy(self) -> Busy:
        """What it has had to do so far; the difference of two says how busy it was between."""
        self._add_up()
        return Busy(self._counted_s, self._request_s, self._slot_s, self._elsewhere)

    def _add_up(self) -> None:
        now_s = self._now_s()
        passed_s, self._counted_s = now_s - self._counted_s, now_s
        self._request_s += passed_s * self.in_flight
        self._slot_s += passed_s * self._draft_slots

    def answers(self, status: int) -> None:
        """It has begun to answer: enough for a worker on trial."""
        self.has_answered = True
        if status in BACK_PRESSURE:
            self._health.request_said_nothing()
            self._changed()
        elif status >= 500:
            self.failed(f"it answered {status}")
        elif not self._health.is_well and self.standing is not UP:
            self.succeeded()

    def succeeded(self) -> None:
        """Its answer is complete."""
        self._has_served = True
        if not self._health.is_well:
            self._health.request_succeeded(self._now_s())
            self._noted("")

    def failed(self, why: str) -> None:
        """What it began to answer, or did not, counts against it."""
        self._health.request_failed(self._now_s())
        self._noted(why)

    # -- probes ----------------------------------------------------------------------------------

    def has_served(self) -> bool:
        """Whether it has answered a request since this was last asked: as good as a probe."""
        has_served, self._has_served = self._has_served, False
        return has_served

    def probe_succeeded(self) -> None:
        self.has_answered = True
        self._health.probe_succeeded(self._now_s())
        self._noted("")

    def probe_failed(self, why: str) -> None:
        self._health.probe_failed()
        self._noted(why)

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

    def report(self, load: WorkerLoad, *, asked_with: int) -> None:
        """What it says of its load, asked when `asked_with` of our requests were in flight: one of
        them that has ended since may be among those that it counted, and is nobody else's."""
        self._load, self._load_until_s = load, self._now_s() + LOAD_FRESH_S
        if load.running is not None:  # unknown is not zero: what was seen last stands
            there = load.running + (load.waiting or 0.0)
            self._elsewhere = max(0.0, there - max(asked_with, self.in_flight))
        self._changed()

    # -- what is known ---------------------------------------------------------------------------

    @property
    def standing(self) -> Standing:
        return self._health.standing(self._now_s())

    @property
    def up(self) -> bool:
        return self.standing is not DOWN

    def load(self, now_s: float) -> WorkerLoad:
        """What it last said of itself, or unknown if that was too long ago."""
        return self._load if now_s < self._load_until_s else WorkerLoad()

    def snapshot(self, now_s: float) -> WorkerSnapshot:
        """Made anew only when something has changed: a decision asks for it of every worker."""
        if self._snapshot is None or now_s >= self.snapshot_until_s:
            standing = self._health.standing(now_s)
            self._snapshot = WorkerSnapshot(
                url=self.url,
                in_flight=self.in_flight,
                last_picked=self._last_picked,
                up=standing is not DOWN,
                on_trial=standing is TRIAL,
                share=self._health.share(now_s),
                load=self.load(now_s),
                drafting=float(self._draft_slots),
                elsewhere=self._elsewhere,
                per_request_k=self.per_request_k,
            )
            is_fresh = now_s < self._load_until_s
            self.snapshot_until_s = min(
                self._health.steady_until_s(now_s), self._load_until_s if is_fresh else float("inf")
            )
        return self._snapshot

    def _changed(self) -> None:
        self._snapshot = None
        for pool in self.pools:
            pool.has_changed = True

    def _noted(self, why: str) -> None:
        """Says so when it goes or comes; a trial is neither."""
        self._changed()
        standing = self._health.standing(self._now_s())
        if (standing is DOWN) != (self._was_standing is DOWN):
            if standing is DOWN:
                log.warning("worker %s is down: %s", self.url, why)
            else:
                log.warning("worker %s is up again", self.url)
            self._was_standing = standing


class Busy(Struct, frozen=True):
    """Up to `at_s`: requests and draft slots in flight, each times how long; and how many requests
    others than this gateway had there when it was last asked."""

    at_s: float
    request_s: float
    slot_s: float
    elsewhere: float


class _InFlight:
    """One request's place in its worker's count."""

    __slots__ = ("_k", "_worker")

    def __init__(self, worker: Worker, k: int) -> None:
        self._worker = worker
        self._k = k

    def __enter__(self) -> None:
        self._worker.begins(self._k)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._worker.ends(self._k, error)


class Pool:
    def __init__(self, settings: PoolSettings, workers: tuple[Worker, ...]) -> None:
        self.settings = settings
        self.name = settings.name
        self.workers = workers
        for worker in workers:
            worker.pools.append(self)
        self.has_changed = True  # one of its workers has, since its snapshot
        self._snapshot = self._of([])
        self._snapshot_until_s = 0.0

    def snapshot(self, now_s: float, without: Collection[str]) -> PoolSnapshot:
        """Made anew only when something has changed, like its workers'."""
        if self.has_changed or now_s >= self._snapshot_until_s:
            workers: list[WorkerSnapshot] = []
            until_s = float("inf")
            for worker in self.workers:
                workers.append(worker.snapshot(now_s))
                until_s = min(until_s, worker.snapshot_until_s)
            self._snapshot, self._snapshot_until_s = self._of(workers), until_s
            self.has_changed = False
        if not without:
            return self._snapshot
        return self._of(
            [
                replace(worker, up=False, on_trial=False) if worker.url in without else worker
                for worker in self._snapshot.workers
            ]
        )

    def _of(self, workers: Sequence[WorkerSnapshot]) -> PoolSnapshot:
        return PoolSnapshot(
            name=self.name,
            speculation=self.settings.speculation,
            workers=tuple(workers),
            max_num_seqs=self.settings.max_num_seqs,
        )


class Model:
    def __init__(self, settings: ModelSettings, pools: tuple[Pool, ...]) -> None:
        self.settings = settings
        self.name = settings.name
        self.pools = pools

    def snapshot(self, now_s: float, *, without: Collection[str] = ()) -> ModelSnapshot:
        """For a decision; workers `without` count as down."""
        pools: list[PoolSnapshot] = []
        for pool in self.pools:
            pools.append(pool.snapshot(now_s, without))
        return ModelSnapshot(
            name=self.name, default_pool=self.settings.default_pool, pools=tuple(pools)
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
                self.workers[of.url] = Worker(of, settings.timeouts, self._turns, self.now_s)
            self.workers[of.url].upstream_names.add(model.upstream_name)
            return self.workers[of.url]

        pools = (Pool(pool, tuple(map(worker, pool.workers))) for pool in model.pools)
        return Model(model, tuple(pools))
