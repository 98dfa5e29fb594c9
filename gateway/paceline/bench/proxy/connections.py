"""A client's connections, which read answers with as little work as can be, and what they saw."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools

from paceline.bench.proxy.events import NUM_EVENTS, STAMP

EVENT_END = b"\n\n"


@dataclass(slots=True)
class Recorder:
    """Counts always; times only while `recording`. All in seconds."""

    recording: bool = False
    completed: int = 0
    failed: int = 0
    events: int = 0
    latencies_s: list[float] = field(default_factory=list)
    ttfts_s: list[float] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)  # from the mock's write to our read
    gaps_s: list[float] = field(default_factory=list)  # between two events of a stream, here


class Connection(asyncio.Protocol):
    """One request at a time. `free` is called with it when it may be asked again.

    A lost connection fails the request on it and all that follow: proxies must keep them open.
    """

    __slots__ = (
        "_began_s", "_busy", "_done", "_events", "_free", "_last_ns", "_now_ns", "_parser",
        "_recorder", "_rest", "_transport",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, free: Callable[[Connection], None]) -> None:
        self._recorder = recorder
        self._free = free
        self._parser = httptools.HttpResponseParser(self)
        self._transport = cast(asyncio.Transport, None)
        self._busy = False
        self._began_s = 0.0
        self._now_ns = 0
        self._forget()

    def _forget(self) -> None:
        self._events = 0
        self._last_ns = 0
        self._rest = b""
        self._done = False

    def ask(self, request: bytes, began_s: float) -> None:
        """Send; times are counted from `began_s`."""
        self._busy = True
        self._began_s = began_s
        if self._transport.is_closing():
            self._recorder.failed += 1
        else:
            self._transport.write(request)

    def close(self) -> None:
        self._busy = False
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._busy:
            self._recorder.failed += 1

    def data_received(self, data: bytes) -> None:
        self._now_ns = time.monotonic_ns()
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        text = self._rest + body
        whole = text.rfind(EVENT_END) + len(EVENT_END)
        if whole < len(EVENT_END):  # none has ended yet, or this is no stream
            self._rest = text
            return
        for stamp in STAMP.finditer(text, 0, whole):
            self._event(int(stamp[1]))
        self._done = self._done or b"data: [DONE]" in text
        self._rest = text[whole:]

    def _event(self, sent_ns: int) -> None:
        recorder, now_ns = self._recorder, self._now_ns
        recorder.events += 1
        if recorder.recording:
            recorder.delays_s.append((now_ns - sent_ns) / 1e9)
            if self._events:
                recorder.gaps_s.append((now_ns - self._last_ns) / 1e9)
            else:
                recorder.ttfts_s.append(now_ns / 1e9 - self._began_s)
        self._events += 1
        self._last_ns = now_ns

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() != 200 or not self._is_whole():
            self._recorder.failed += 1
        else:
            self._recorder.completed += 1
            if self._recorder.recording:
                self._recorder.latencies_s.append(self._now_ns / 1e9 - self._began_s)
        self._busy = False
        self._forget()
        self._free(self)

    def _is_whole(self) -> bool:
        """Every event of a stream and its end; or no event, in an answer that is none."""
        return self._events == NUM_EVENTS if self._done else not self._events
