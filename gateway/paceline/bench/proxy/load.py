"""A client at a fixed rate over a fixed set of connections, and what it cost everybody.

`python -m paceline.bench.proxy.load SPEC OUT`: a `LoadSpec` as JSON in, a `Sample` as JSON out. It
reads the CPU time of proxy, mock and itself at both ends of the measured window, so nothing but the
load lies between the readings.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from paceline.bench import process_tree
from paceline.bench.proxy.bodies import chat_body, http_request
from paceline.bench.proxy.connections import Connection, Recorder
from paceline.bench.proxy.limits import raise_descriptor_limit
from paceline.bench.proxy.quantiles import quantile
from paceline.bench.proxy.schedule import OpenLoop

DRAIN_S = 2.0
TIMER_S = 0.001  # libuv's timers tick in milliseconds; a shorter wait would spin
VARIANTS_BYTES = 2**20
"""Of different bodies that are held ready; at least four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What to offer, and to whom. `proxy_pid` is None where nothing is in between."""

    port: int
    rate: float  # requests per second
    connections: int
    body_bytes: int
    stream: bool
    warmup_s: float
    window_s: float
    mock_pid: int
    proxy_pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was seen within the window; CPU in seconds, times in seconds, None where nothing was."""

    window_s: float
    offered: int
    completed: int
    events: int
    failed: int  # in the whole run
    waiting: int  # for a free connection, at the window's end
    proxy_cpu_s: float
    mock_cpu_s: float
    client_cpu_s: float
    machine_cpu_s: float
    proxy_rss_bytes: int
    latency_p50_s: float | None
    latency_p99_s: float | None
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    event_delay_p50_s: float | None
    event_delay_p99_s: float | None
    event_gap_p99_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counters at one moment."""

    at_s: float
    offered: int
    completed: int
    events: int
    proxy: list[process_tree.ProcessStat]
    mock_cpu_s: float
    client_cpu_s: float
    machine_cpu_s: float


class Load:
    """The requests of one cell, from the connections' opening to their end."""

    def __init__(self, spec: LoadSpec) -> None:
        self._spec = spec
        self._loop = asyncio.get_running_loop()
        self._recorder = Recorder()
        self._requests = _requests(spec)
        self._connections: list[Connection] = []
        self._idle: deque[Connection] = deque()
        self._waiting: deque[float] = deque()
        self._schedule: OpenLoop | None = None
        self._num_sent = 0
        self._drained = asyncio.Event()

    async def run(self) -> Sample:
        await self._connect()
        self._schedule = OpenLoop(start_s=time.monotonic(), rate=self._spec.rate)
        self._tick()
        await asyncio.sleep(self._spec.warmup_s)
        before = self._read()
        self._recorder.recording = True
        await asyncio.sleep(self._spec.window_s)
        self._recorder.recording = False
        after, waiting = self._read(), len(self._waiting)
        self._schedule = None
        if len(self._idle) < len(self._connections):
            await self._drain()
        for connection in self._connections:
            connection.close()
        return self._sample(before, after, waiting)

    async def _connect(self) -> None:
        for _ in range(self._spec.connections):
            _, connection = await self._loop.create_connection(
                lambda: Connection(self._recorder, self._free), "127.0.0.1", self._spec.port
            )
            self._connections.append(connection)
            self._idle.append(connection)

    def _tick(self) -> None:
        if self._schedule is None:
            return
        for due_s in self._schedule.take_due(time.monotonic()):
            self._waiting.append(due_s)
            if self._idle:
                self._waiting.pop()
                # The client's own timer is late by up to a millisecond; that is not the proxy's.
                self._send(self._idle.popleft(), time.monotonic())
        wait_s = self._schedule.next_due_s - time.monotonic()
        self._loop.call_later(max(TIMER_S, wait_s), self._tick)

    def _send(self, connection: Connection, began_s: float) -> None:
        request = self._requests[self._num_sent % len(self._requests)]
        self._num_sent += 1
        connection.ask(request, began_s)

    def _free(self, connection: Connection) -> None:
        """A connection has its answer: the longest waiting request is next, timed from when due."""
        if self._waiting and self._schedule is not None:
            self._send(connection, self._waiting.popleft())
        else:
            self._idle.append(connection)
            if self._schedule is None and len(self._idle) == len(self._connections):
                self._drained.set()

    async def _drain(self) -> None:
        """Wait for the answers that are still to come, though not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._drained.wait()

    def _read(self) -> Reading:
        proxy = process_tree.tree(self._spec.proxy_pid) if self._spec.proxy_pid else []
        return Reading(
            at_s=time.monotonic(),
            offered=self._schedule.num_taken if self._schedule else 0,
            completed=self._recorder.completed,
            events=self._recorder.events,
            proxy=proxy,
            mock_cpu_s=process_tree.cpu_s(process_tree.tree(self._spec.mock_pid)),
            client_cpu_s=process_tree.cpu_s(process_tree.tree(os.getpid())),
            machine_cpu_s=process_tree.machine_cpu_s(),
        )

    def _sample(self, before: Reading, after: Reading, waiting: int) -> Sample:
        seen = self._recorder
        return Sample(
            window_s=after.at_s - before.at_s,
            offered=after.offered - before.offered,
            completed=after.completed - before.completed,
            events=after.events - before.events,
            failed=seen.failed,
            waiting=waiting,
            proxy_cpu_s=process_tree.cpu_s(after.proxy) - process_tree.cpu_s(before.proxy),
            mock_cpu_s=after.mock_cpu_s - before.mock_cpu_s,
            client_cpu_s=after.client_cpu_s - before.client_cpu_s,
            machine_cpu_s=after.machine_cpu_s - before.machine_cpu_s,
            proxy_rss_bytes=process_tree.rss_bytes(after.proxy),
            latency_p50_s=quantile(seen.latencies_s, 0.50),
            latency_p99_s=quantile(seen.latencies_s, 0.99),
            ttft_p50_s=quantile(seen.ttfts_s, 0.50),
            ttft_p99_s=quantile(seen.ttfts_s, 0.99),
            event_delay_p50_s=quantile(seen.delays_s, 0.50),
            event_delay_p99_s=quantile(seen.delays_s, 0.99),
            event_gap_p99_s=quantile(seen.gaps_s, 0.99),
        )


def _requests(spec: LoadSpec) -> Sequence[bytes]:
    number = max(4, min(20, VARIANTS_BYTES // spec.body_bytes))
    bodies = [chat_body(spec.body_bytes, i, stream=spec.stream) for i in range(number)]
    return [http_request(body, spec.port) for body in bodies]


def main() -> None:
    raise_descriptor_limit()
    spec = LoadSpec(**json.loads(sys.argv[1]))

    async def run() -> Sample:
        return await Load(spec).run()

    Path(sys.argv[2]).write_text(json.dumps(asdict(uvloop.run(run()))), encoding="utf-8")


if __name__ == "__main__":
    main()
