"""The fleet as decisions see it: snapshots are kept, and none may outlive what it says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from harness import NGRAM, pool, settings
from paceline.core.types import WorkerLoad, WorkerSnapshot
from paceline.edge.workers import LOAD_FRESH_S, Fleet, Pool, Worker
from paceline.errors import (
    WorkerBusy,
    WorkerDied,
    WorkerProtocolError,
    WorkerUnavailable,
)

ONE, SHARED, OTHER = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
URLS = (ONE, SHARED, OTHER)
ENDS: tuple[Exception | None, ...] = (
    None,
    WorkerUnavailable("refused"),
    WorkerDied("cut short"),
    WorkerProtocolError("nonsense"),
    WorkerBusy("429"),
    RuntimeError("ours"),
)


def a_fleet(now_s: Callable[[], float]) -> Fleet:
    """Two pools that share a worker."""
    pools = pool("ngram", ONE, SHARED, speculation=NGRAM), pool("p", SHARED, OTHER)
    return Fleet(settings(*pools), now_s)


def made_anew(pool: Pool, now_s: float) -> tuple[WorkerSnapshot, ...]:
    """Its workers as they are, with what is kept of them left alone."""
    made = []
    for worker in pool.workers:
        kept = worker._snapshot, worker.snapshot_until_s
        worker._snapshot = None
        made.append(worker.snapshot(now_s))
        worker._snapshot, worker.snapshot_until_s = kept
    return tuple(made)


class KeptSnapshots(RuleBasedStateMachine):
    """Whatever happens to workers, in whatever order: what was kept is what would be made now."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.fleet = a_fleet(lambda: self.now_s)
        self.under_way: list[tuple[Worker, contextlib.AbstractContextManager[None]]] = []

    @rule(
        seconds=st.one_of(
            st.sampled_from([0.0, 0.1, 1.0, LOAD_FRESH_S, 10.0, 60.0]),
            st.floats(0.0, 12.0),
        )
    )
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(url=st.sampled_from(URLS), k=st.integers(0, 5))
    def a_request_begins(self, url: str, k: int) -> None:
        worker = self.fleet.workers[url]
        request = worker.request(k)
        request.__enter__()
        self.under_way.append((worker, request))

    @rule(data=st.data(), status=st.sampled_from([200, 400, 429, 500, 503]))
    def a_worker_answers(self, data: st.DataObject, status: int) -> None:
        if self.under_way:
            worker, _ = data.draw(st.sampled_from(self.under_way))
            worker.answers(status)

    @rule(data=st.data(), error=st.sampled_from(ENDS))
    def a_request_ends(self, data: st.DataObject, error: Exception | None) -> None:
        if self.under_way:
            at = data.draw(st.integers(0, len(self.under_way) - 1))
            worker, request = self.under_way.pop(at)
            if error is None:
                worker.succeeded()
            request.__exit__(type(error) if error else None, error, None)

    @rule(url=st.sampled_from(URLS), good=st.booleans())
    def it_is_probed(self, url: str, good: bool) -> None:
        worker = self.fleet.workers[url]
        worker.probe_succeeded() if good else worker.probe_failed("silence")

    @rule(url=st.sampled_from(URLS))
    def it_fails_five_times(self, url: str) -> None:
        for _ in range(5):
            self.fleet.workers[url].failed("500")

    @rule(url=st.sampled_from(URLS), running=st.none() | st.floats(0.0, 50.0))
    def it_tells_its_load(self, url: str, running: float | None) -> None:
        worker = self.fleet.workers[url]
        worker.report(WorkerLoad(running=running, waiting=1.0), asked_with=worker.in_flight)

    @rule(at=st.integers(0, 1))
    def a_decision_asks(self, at: int) -> None:
        """Of one pool, so that the other's is kept for longer."""
        pool = self.fleet.models[0].pools[at]
        kept = pool.snapshot(self.now_s, without=[]).workers
        assert kept == made_anew(pool, self.now_s)
        without = pool.snapshot(self.now_s, without=[SHARED]).workers
        assert [w for w in without if w.url != SHARED] == [w for w in kept if w.url != SHARED]
        assert not any(w.up or w.on_trial for w in without if w.url == SHARED)

    def teardown(self) -> None:
        self.a_decision_asks(0)
        self.a_decision_asks(1)
        self.fleet.close()


TestKeptSnapshots = KeptSnapshots.TestCase
TestKeptSnapshots.settings = effort(max_examples=100, stateful_step_count=30, deadline=None)
