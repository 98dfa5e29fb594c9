"""Opens streams that go quiet after their first event, and reads the proxy's memory.

`python -m paceline.bench.proxy.idle SPEC OUT`: an `IdleSpec` as JSON in, a list of
[streams, resident bytes] as JSON out.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import uvloop

from paceline.bench import process_tree
from paceline.bench.proxy.bodies import chat_body, http_request
from paceline.bench.proxy.events import STAMP
from paceline.bench.proxy.limits import raise_descriptor_limit

OPENING = 32
"""Streams being opened at the same time."""
ANSWER_S = 30.0
BODY_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSpec:
    port: int
    counts: tuple[int, ...]  # how many streams to read the memory at, ascending
    proxy_pid: int
    settle_s: float = 1.0


class IdleStream(asyncio.Protocol):
    """A stream whose first event alone is waited for."""

    __slots__ = ("_seen", "_started", "transport")

    def __init__(self) -> None:
        self._seen = b""
        self._started: asyncio.Future[None] | None = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    async def started(self, request: bytes) -> None:
        """Raises TimeoutError, or RuntimeError with what came instead of an event."""
        assert self._started is not None
        self.transport.write(request)
        async with asyncio.timeout(ANSWER_S):
            await self._started
        self._started, self._seen = None, b""

    def data_received(self, data: bytes) -> None:
        if self._started is None or self._started.done():
            return
        self._seen += data
        if STAMP.search(self._seen):
            self._started.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._started is not None and not self._started.done():
            self._started.set_exception(RuntimeError(f"no stream: {self._seen[:500]!r}"))


async def measure(spec: IdleSpec) -> list[tuple[int, int]]:
    """Streams that are open, and the proxy's resident bytes with them."""
    loop = asyncio.get_running_loop()
    streams: list[IdleStream] = []
    gate = asyncio.Semaphore(OPENING)

    async def open_one(number: int) -> None:
        async with gate:
            _, stream = await loop.create_connection(IdleStream, "127.0.0.1", spec.port)
            body = chat_body(BODY_BYTES, number, stream=True, hold=True)
            await stream.started(http_request(body, spec.port))
            streams.append(stream)

    readings = []
    for count in spec.counts:
        async with asyncio.TaskGroup() as group:
            for number in range(len(streams), count):
                group.create_task(open_one(number))
        await asyncio.sleep(spec.settle_s)
        if lost := sum(stream.transport.is_closing() for stream in streams):
            raise RuntimeError(f"{lost} of {count} streams were closed")
        readings.append((count, process_tree.rss_bytes(process_tree.tree(spec.proxy_pid))))
    for stream in streams:
        stream.transport.close()
    return readings


def main() -> None:
    raise_descriptor_limit()
    spec = IdleSpec(**json.loads(sys.argv[1]))
    readings = uvloop.run(measure(spec))
    Path(sys.argv[2]).write_text(json.dumps(readings), encoding="utf-8")


if __name__ == "__main__":
    main()
