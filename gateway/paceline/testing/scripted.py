"""A worker made of bytes: it plays a list of writes, pauses and endings, for tests of faults.

Every write is one segment on the socket, so a test decides where reads are cut. What each request
said is kept, and when its client went away.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class End(Enum):
    """How a script ends its connection; without one the connection stays open for reuse."""

    CLOSE = "close"  # FIN
    RESET = "reset"  # RST
    HANG = "hang"  # nothing more, until the client leaves


Step = bytes | float | End
"""Bytes are written at once, a number is a pause in seconds."""
Script = Sequence[Step]


MODELS = b'{"object":"list","data":[{"id":"up","object":"model","max_model_len":2048}]}'


@dataclass
class Seen:
    """One request as it arrived, on the worker's how manieth connection, and whether its client
    left before the answer was complete."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int = 0
    client_left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


class ScriptedWorker:
    """Plays the next script for each generating request, the last one for ever after.

    GET is answered as a healthy plain worker would: health, `metrics`, `models`.
    """

    def __init__(self, *scripts: Script) -> None:
        self._scripts = deque(scripts)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = asyncio.Event()
        self.seen: list[Seen] = []
        self.num_connections = 0
        self.metrics = b""
        self.models = MODELS
        self.models_status = 200
        self.chooses: Callable[[Seen], Script] | None = None  # in place of the next in the list
        self.routine: Script | None = None  # played for every GET, where one is set
        self.num_unread = 0  # so many bodies are not read: a script begins at its request's head

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def num_open(self) -> int:
        """Connections now."""
        return len(self._connections)

    def play(self, *scripts: Script) -> None:
        """From now on these, in place of those that are left."""
        self._scripts = deque(scripts)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ScriptedWorker]:
        await self.listen()
        try:
            yield self
        finally:
            self.stop()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def listen(self) -> None:
        """Starts, the second time on the same port as before."""
        self._stopped.clear()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """As if the process had died: nothing listens, and every connection is reset."""
        assert self._server is not None
        self._stopped.set()
        self._server.close()
        for writer in self._connections:
            _reset(writer)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._stopped.is_set():  # accepted just before
            _reset(writer)
            return
        self.num_connections += 1
        connection = self.num_connections
        self._connections.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while (seen := await self._request(reader)) is not None:
                if seen.method == "GET":
                    script = self.routine or [self._routine(seen.path)]
                else:
                    script = self._script(seen)
                    seen.connection = connection
                    self.seen.append(seen)
                if not await self._play(script, seen, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> Seen | None:
        seen = await _read_head(reader)
        if seen is not None and (length := seen.header("content-length")):
            if self.num_unread:
                self.num_unread -= 1
            else:
                seen.body = await reader.readexactly(int(length[0]))
        return seen

    def _script(self, seen: Seen) -> Script:
        if self.chooses is not None:
            return self.chooses(seen)
        return self._scripts[0] if len(self._scripts) == 1 else self._scripts.popleft()

    def _routine(self, path: str) -> bytes:
        if path == "/v1/models":
            return response(self.models, status=self.models_status)
        return response(self.metrics if path == "/metrics" else b" ")

    async def _play(
        self, script: Script, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection may be used again."""
        left = asyncio.create_task(_wait_for_end(reader))
        try:
            for step in script:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                    await asyncio.sleep(0)
                elif isinstance(step, End):
                    return await self._end(step, left, writer)
                else:
                    await asyncio.wait([left], timeout=step)
                if left.done():
                    return False
            return True
        finally:
            if left.done():
                seen.client_left.set()
            left.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await left

    async def _end(self, end: End, left: asyncio.Task[None], writer: asyncio.StreamWriter) -> bool:
        if end is End.HANG:
            await asyncio.wait([left], timeout=30)
        elif end is End.RESET:
            _reset(writer)
        return False


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN: what a client sees when a process dies with its answer half sent."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _read_head(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = [line.partition(": ") for line in lines if line]
    return Seen(method, path, [(name, value) for name, _, value in pairs], b"")


async def _wait_for_end(reader: asyncio.StreamReader) -> None:
    """Until the client closes its side. It has no reason to send within an answer."""
    with contextlib.suppress(ConnectionError):
        await reader.read(1)


# -- writing scripts ---------------------------------------------------------------------------


def response(
    body: bytes, *, status: int = 200, kind: str = "application/json", extra: Iterable[str] = ()
) -> bytes:
    """A whole response with its length."""
    head = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}", *extra]
    return "\r\n".join([*head, "", ""]).encode() + body


def stream_head(*extra: str) -> bytes:
    """The head of a chunked event stream."""
    head = ["HTTP/1.1 200 OK", "content-type: text/event-stream; charset=utf-8", *extra]
    return "\r\n".join([*head, "transfer-encoding: chunked", "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; the empty one ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: Any) -> bytes:
    """One event with JSON data."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def delta(text: str, *, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    """A chat chunk's event."""
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}
    )


DONE = b"data: [DONE]\n\n"
END = chunk(b"")


def stream(*events: bytes, each: Callable[[bytes], bytes] = chunk) -> list[Step]:
    """A whole stream: head, one chunk per event, the end."""
    return [stream_head(), *(each(one) for one in events), END]
