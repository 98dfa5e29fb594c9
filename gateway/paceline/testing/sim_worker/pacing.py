"""Real time for the engine: one task steps it at its own deadlines and hands out what it yields.

The task exists while there is work and sleeps until each pass is due, so an idle worker costs
nothing. A request reads its passes from a `Mailbox`; one that is slow to read finds several passes
there and sends them as one event, which is what vLLM does too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from paceline.sim.engine import Engine
from paceline.sim.generation import Generation, Pass
from paceline.testing.sim_worker.metrics import EngineMetrics
from paceline.testing.sim_worker.times import RequestTimes

REMEMBERED = 20_000  # passes whose lateness is kept


class Mailbox:
    """One request's passes on their way from the engine, and the end of the client's interest."""

    def __init__(self) -> None:
        self._passes: list[Pass] = []
        self._news = asyncio.Event()
        self._failure: Exception | None = None
        self.closed = False
        self.times: RequestTimes | None = None  # of the sequence that ended last

    def put(self, part: Pass) -> None:
        self._passes.append(part)
        self._news.set()

    def close(self) -> None:
        """The client has gone, or the engine has: nothing more will come."""
        self.closed = True
        self._news.set()

    def fail(self, failure: Exception) -> None:
        """Whoever waits for passes gets the exception instead."""
        self._failure = failure
        self._news.set()

    async def take(self) -> list[Pass]:
        """All passes that have come since the last call, at least one; none when closed."""
        await self._news.wait()
        if self.closed:
            return []
        if self._failure is not None:
            raise self._failure
        return self.drain()

    def drain(self) -> list[Pass]:
        """What is there, without waiting."""
        if not self.closed and self._failure is None:
            self._news.clear()
        passes, self._passes = self._passes, []
        return passes


class EnginePacer:
    """Drives one engine by a monotonic clock, in seconds, `time_scale` times as fast as that."""

    def __init__(
        self,
        engine: Engine,
        metrics: EngineMetrics,
        *,
        time_scale: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine = engine
        self.lateness_s: deque[float] = deque(maxlen=REMEMBERED)  # real seconds after being due
        self._metrics = metrics
        self._scale = time_scale
        self._clock = clock
        self._tracks: dict[str, _Track] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def serving(self, generations: Sequence[Generation], mailbox: Mailbox) -> Iterator[None]:
        """The sequences run while the block does: leaving it takes out what is unfinished."""
        for generation in generations:
            self._tracks[generation.key] = _Track(generation, mailbox, self._clock(), self._scale)
            self.engine.add(generation)
        self.wake()
        try:
            yield
        finally:
            for generation in generations:
                if self._tracks.pop(generation.key, None) is not None:
                    self.engine.remove(generation.key)
                    self._metrics.finished["abort"] += 1
            if self.engine.waiting:
                self.wake()  # its place may be what another one waits for

    def fail(self, failure: Exception) -> None:
        """End all that is under way with an exception."""
        for track in self._tracks.values():
            track.mailbox.fail(failure)

    def wake(self) -> None:
        """See that the task runs if there is anything to do."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while True:
                due_s = self._step()
                if due_s is None:
                    return
                # First let the streams send. libuv waits by the time at which the timer was set,
                # so one set before them would be late by as long as they take (10 ms for 300).
                await asyncio.sleep(0)
                await asyncio.sleep(due_s - self._clock())
        except Exception:
            # A mistake of ours: end the streams rather than leave them silent, then let it be seen.
            for track in self._tracks.values():
                track.mailbox.close()
            raise

    def _step(self) -> float | None:
        """Hand out what is due; when to come again, on our clock."""
        now_s = self._clock()
        due_s = self.engine.due_s
        if due_s is not None and now_s * self._scale >= due_s:
            self.lateness_s.append(now_s - due_s / self._scale)
        for part in self.engine.step(now_s * self._scale):
            self._deliver(part, now_s)
        return None if self.engine.due_s is None else self.engine.due_s / self._scale

    def _deliver(self, part: Pass, now_s: float) -> None:
        track = self._tracks.get(part.key)
        if track is None:
            return
        track.observe(part, now_s, self._metrics)
        track.mailbox.put(part)
        if part.finished:
            del self._tracks[part.key]


class _Track:
    """A sequence on its way: where its passes go, and when what happened, in real seconds."""

    def __init__(
        self, generation: Generation, mailbox: Mailbox, arrived_s: float, scale: float
    ) -> None:
        self.mailbox = mailbox
        self._generation = generation
        self._arrived_s = arrived_s
        self._scale = scale
        self._first_s: float | None = None
        self._last_s = arrived_s

    def observe(self, part: Pass, now_s: float, metrics: EngineMetrics) -> None:
        if self._first_s is None:
            self._first_s = now_s
            metrics.ttft.observe(now_s - self._arrived_s)
        else:
            metrics.itl.observe(now_s - self._last_s)
        self._last_s = now_s
        if part.finished:
            self._observe_end(part, now_s, self._first_s, metrics)

    def _observe_end(
        self, part: Pass, now_s: float, first_s: float, metrics: EngineMetrics
    ) -> None:
        started_s = (self._generation.started_s or 0.0) / self._scale
        self.mailbox.times = RequestTimes(
            arrived_s=self._arrived_s,
            started_s=started_s,
            first_s=first_s,
            ended_s=now_s,
            num_tokens=part.end,
        )
        metrics.finished[self._generation.script.finish] += 1
        metrics.e2e.observe(now_s - self._arrived_s)
        metrics.queue.observe(max(0.0, started_s - self._arrived_s))
        metrics.prefill.observe(first_s - started_s)
        metrics.decode.observe(now_s - first_s)
        metrics.inference.observe(now_s - started_s)
        metrics.tpot.observe((now_s - first_s) / max(1, part.end - 1))
        metrics.prompt_tokens.observe(self._generation.num_prompt_tokens)
        metrics.generation_tokens.observe(part.end)
