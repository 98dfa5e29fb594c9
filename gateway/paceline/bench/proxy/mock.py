"""A worker that costs almost nothing: canned bytes on as many ports as it is told.

`python -m paceline.bench.proxy.mock --ports 3` says where it listens and runs until its end. One
process for all ports, so that its CPU time is one figure.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import signal
import socket
import sys
import time
from typing import Any, cast

import httptools
import uvloop

from paceline.bench.proxy import canned, events
from paceline.bench.proxy.bodies import HOLD
from paceline.bench.proxy.limits import raise_descriptor_limit

INTERVAL_S = 0.010
BACKLOG = 4096
ASKS_STREAM = re.compile(rb'"stream"\s*:\s*true')
ASKS_USAGE = re.compile(rb'"include_usage"\s*:\s*true')
_HOLD = HOLD.encode()


class Answers:
    """All that is said, put together once."""

    def __init__(self) -> None:
        self.stream_head = canned.stream_head()
        self.completion = canned.response(canned.completion())
        self.done = events.chunked(events.DONE)
        self.numbers = itertools.count(1)
        self.by_path = {
            b"/health": canned.response(b""),
            b"/metrics": canned.response(canned.metrics(), "text/plain; version=1.0.0"),
            b"/v1/models": canned.response(canned.models()),
            b"/version": canned.response(b'{"version":"0.32.0"}'),
        }
        self.unknown = canned.response(b'{"detail":"Not Found"}', status="404 Not Found")


class Worker(asyncio.Protocol):
    """One connection, one request at a time."""

    __slots__ = ("_answers", "_loop", "_parser", "_parts", "_path", "_stream", "_transport")

    def __init__(self, answers: Answers, loop: asyncio.AbstractEventLoop) -> None:
        self._answers = answers
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        self._parts: list[bytes] = []
        self._path = b""
        self._stream: Stream | None = None
        self._transport = cast(asyncio.Transport, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stream is not None:
            self._stream.cancel()

    def on_url(self, url: bytes) -> None:
        self._path = url.partition(b"?")[0]

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)

    def on_message_complete(self) -> None:
        body = b"".join(self._parts)
        self._parts.clear()
        answers = self._answers
        if self._path != b"/v1/chat/completions":
            self._transport.write(answers.by_path.get(self._path, answers.unknown))
        elif ASKS_STREAM.search(body) is None:
            self._transport.write(answers.completion)
        elif _HOLD in body:
            first = events.StreamEvents(next(answers.numbers)).chunk(0, time.monotonic_ns())
            self._transport.write(answers.stream_head + first)
        else:
            usage = ASKS_USAGE.search(body) is not None
            self._stream = Stream(self._transport, self._loop, answers, usage=usage)


class Stream:
    """`NUM_EVENTS` events, one every `INTERVAL_S`, each in a write of its own."""

    __slots__ = (
        "_answers", "_due_s", "_events", "_handle", "_index", "_loop", "_transport", "_usage",
    )  # fmt: skip

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        answers: Answers,
        *,
        usage: bool,
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._answers = answers
        self._usage = usage
        self._events = events.StreamEvents(next(answers.numbers))
        self._index = 0
        self._due_s = loop.time()
        transport.write(answers.stream_head)
        self._tick()

    def _tick(self) -> None:
        self._transport.write(self._events.chunk(self._index, time.monotonic_ns()))
        self._index += 1
        if self._index < events.NUM_EVENTS:
            self._due_s += INTERVAL_S
            self._handle: Any = self._loop.call_at(self._due_s, self._tick)
            return
        if self._usage:
            self._transport.write(self._events.usage())
        self._transport.write(self._answers.done)
        self._transport.write(b"0\r\n\r\n")

    def cancel(self) -> None:
        self._handle.cancel()


async def serve(num_ports: int) -> None:
    """Serves until SIGTERM, after saying where."""
    loop = asyncio.get_running_loop()
    answers = Answers()
    ports = []
    for _ in range(num_ports):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        await loop.create_server(lambda: Worker(answers, loop), sock=listener, backlog=BACKLOG)
        ports.append(str(listener.getsockname()[1]))
    sys.stdout.write(f"listening on {' '.join(ports)}\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="a worker of canned bytes")
    parser.add_argument("--ports", type=int, default=1)
    args = parser.parse_args()
    raise_descriptor_limit()
    uvloop.run(serve(args.ports))


if __name__ == "__main__":
    main()
