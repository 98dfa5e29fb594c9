"""Streams whose client leaves, and streams that end in their own time: what tests of leaks repeat.

A worker plays for each request what its `user` field names; the client leaves once the stream has
come so far, and the worker must see it leave.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from paceline.testing.scripted import (
    DONE,
    End,
    Script,
    ScriptedWorker,
    Seen,
    chunk,
    delta,
    stream,
    stream_head,
)

SOON_S = 10.0
"""By then everything must have happened that was to happen."""


class Window(StrEnum):
    """Where a stream stands when its client leaves."""

    BEFORE_HEADERS = "before the headers"
    BEFORE_FIRST_EVENT = "before the first event"
    MID_STREAM = "mid stream"
    WHOLE = "never"


ABORTED = (Window.BEFORE_HEADERS, Window.BEFORE_FIRST_EVENT, Window.MID_STREAM)
FIRST = delta("one ")
WHOLE = (FIRST, delta("two "), delta("three", finish="stop"), DONE)
SCRIPTS: Mapping[Window, Script] = {
    Window.BEFORE_HEADERS: [End.HANG],
    Window.BEFORE_FIRST_EVENT: [stream_head(), End.HANG],
    Window.MID_STREAM: [stream_head(), chunk(FIRST), End.HANG],
    Window.WHOLE: stream(*WHOLE),
}


class AbortedStreams:
    """A worker, and clients of a gateway before it."""

    def __init__(self) -> None:
        self.worker = ScriptedWorker()
        self.worker.chooses = self._script
        self._numbers = itertools.count()
        self._arrived: dict[str, asyncio.Future[Seen]] = {}

    async def many(
        self, url: str, *, num_aborted: int, num_whole: int, at_once: int, model: str
    ) -> None:
        """So many streams of a gateway, the windows in turn, aborted ones among whole ones.

        Raises RuntimeError for one that is not whole, TimeoutError where the worker was not left.
        """
        aborted = list(itertools.islice(itertools.cycle(ABORTED), num_aborted))
        whole = [Window.WHOLE] * num_whole
        pairs = itertools.zip_longest(aborted, whole)
        todo = iter([window for pair in pairs for window in pair if window is not None])

        async def in_turn() -> None:
            for window in todo:
                async with asyncio.timeout(SOON_S):
                    await self.one(url, window, model)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(in_turn())

    async def one(self, url: str, window: Window, model: str) -> None:
        """One stream, left in this window. Raises RuntimeError if a whole one is not whole."""
        number = str(next(self._numbers))
        arrived = self._arrived[number] = asyncio.get_running_loop().create_future()
        reader, writer = await _asked(url, f"{number} {window}", model)
        try:
            if window is Window.WHOLE:
                answer = await reader.read()
                if not all(event in answer for event in WHOLE):
                    raise RuntimeError(f"a stream is not whole: {answer!r}")
                return
            seen = await arrived
            if window is Window.MID_STREAM:
                await reader.readuntil(FIRST)
        finally:
            writer.transport.abort()
            del self._arrived[number]
        await seen.client_left.wait()

    def _script(self, seen: Seen) -> Script:
        number, _, window = seen.json["user"].partition(" ")
        self.worker.seen.clear()  # of thousands, each is waited for by its own client
        arrived = self._arrived.get(number)
        if arrived is not None and not arrived.done():
            arrived.set_result(seen)
        return SCRIPTS[Window(window)]


async def _asked(
    url: str, user: str, model: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a stream was asked for."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    body = json.dumps({"model": model, "messages": [], "stream": True, "user": user}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    return reader, writer
