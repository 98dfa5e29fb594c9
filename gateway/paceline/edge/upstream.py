"""Connections to workers: HTTP/1.1 over asyncio, parsed by httptools.

A small client of our own, because this is the hot path, where general clients cost several times as
much as the parser alone. It does what a gateway needs and no more: one
exchange at a time on a connection, idle connections kept for reuse, bodies pulled in the pieces
they arrive in, reading paused while nobody pulls.

Foreign errors become ours here and only here: refused or unreachable is `WorkerUnavailable`, an
answer cut short `WorkerDied`, silence `WorkerTimeout`, nonsense `WorkerProtocolError`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, cast
from urllib.parse import urlsplit

import httptools

from paceline.errors import (
    WorkerDied,
    WorkerError,
    WorkerProtocolError,
    WorkerTimeout,
    WorkerUnavailable,
)

Headers = list[tuple[bytes, bytes]]

IDLE_S = 4.0
"""An idle connection is not used again after this: vLLM's server closes its own after 5 s."""
MAX_IDLE = 64
"""Idle connections kept per worker."""
HIGH_WATER_BYTES = 256 * 1024
"""Unread body at which reading from the worker pauses."""
MAX_HEADER_BYTES = 64 * 1024


class StaleConnection(WorkerError):
    """A reused connection ended before the worker sent a byte: it was closed while idle."""


class Upstream:
    """One worker: its address, and the idle connections to it.

    `key` is sent as a bearer token; the client's own credentials never are.
    """

    def __init__(self, url: str, *, key: str | None = None, connect_s: float = 5.0) -> None:
        parts = urlsplit(url)
        self.url = url
        self._host = parts.hostname or ""
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._connect_s = connect_s
        self._idle: deque[_Connection] = deque()
        authorization = f"Authorization: Bearer {key}\r\n" if key else ""
        self._fixed = (
            f"Host: {parts.netloc}\r\nAccept-Encoding: identity\r\n{authorization}".encode()
        )

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: bytes = b"",
        timeout_s: float,
    ) -> Exchange:
        """The worker's answer once its headers are here.

        `timeout_s` bounds the wait for them. A connection that turns out to be stale is replaced by
        a fresh one, once. Raises WorkerUnavailable, WorkerDied, WorkerTimeout, WorkerProtocolError.
        """
        head = [f"{method} {path} HTTP/1.1\r\n".encode(), self._fixed]
        head += [name + b": " + value + b"\r\n" for name, value in headers]
        if body or method == "POST":
            head.append(b"Content-Length: %d\r\n" % len(body))
        message = b"".join([*head, b"\r\n", body])
        idle = self._pop_idle()
        if idle is not None:
            try:
                return await self._exchange(idle, message, timeout_s)
            except StaleConnection:
                pass
        return await self._exchange(await self._connect(), message, timeout_s)

    def close(self) -> None:
        """Closes the idle connections; exchanges under way go on."""
        while self._idle:
            self._idle.pop().abort()

    async def _exchange(
        self, connection: _Connection, message: bytes, timeout_s: float
    ) -> Exchange:
        exchange = Exchange(self, connection)
        try:
            await connection.start(message, timeout_s)
        except BaseException:
            exchange.close()
            raise
        return exchange

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, self), self._host, self._port, ssl=self._tls
                )
        except TimeoutError:
            raise WorkerUnavailable(
                f"a worker did not accept a connection within {self._connect_s:g} s",
                retry_after_s=1,
            ) from None
        except (OSError, UnicodeError) as error:  # the second for a host that can be no name
            reason = error.strerror if isinstance(error, OSError) else None
            why = f"a worker cannot be reached: {reason or error}"
            raise WorkerUnavailable(why, retry_after_s=1) from error
        return connection

    def _pop_idle(self) -> _Connection | None:
        """The connection used last, unless it has been idle for too long (then all have)."""
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable():
                return connection
            connection.abort()
        return None

    def _release(self, connection: _Connection) -> None:
        if connection.reusable() and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.abort()

    def _forget(self, connection: _Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)


class Exchange:
    """One request and its answer. `close` must be called, whatever happened."""

    def __init__(self, upstream: Upstream, connection: _Connection) -> None:
        self._upstream = upstream
        self._connection: _Connection | None = connection

    @property
    def status(self) -> int:
        return self._open.answer.status

    @property
    def headers(self) -> Headers:
        """Names in lower case, in the order in which they came."""
        return self._open.answer.headers

    async def read(self, timeout_s: float) -> bytes:
        """The next piece of the body as it arrived; empty at its end.

        Raises TimeoutError after `timeout_s` of silence, and may be called again then. Raises
        WorkerDied if the connection ends before the body does.
        """
        return await self._open.read(timeout_s)

    def close(self) -> None:
        """Frees the connection: for reuse if the answer was read to its end, else it is cut, which
        tells the worker to stop generating."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._upstream._release(connection)

    @property
    def _open(self) -> _Connection:
        if self._connection is None:
            raise RuntimeError("this exchange is closed")
        return self._connection


class _Stage(IntEnum):
    """How far an answer has come."""

    ASKED = 0
    BEGUN = 1  # its first byte is here
    BODY = 2  # its headers are complete
    COMPLETE = 3


@dataclass(slots=True)
class _Answer:
    """One answer as it arrives. What fills it and what empties it are the connection's."""

    stage: _Stage = _Stage.ASKED
    status: int = 0
    headers: Headers = field(default_factory=list)
    num_head_bytes: int = 0
    chunks: list[bytes] = field(default_factory=list)
    num_buffered_bytes: int = 0
    ends_with_connection: bool = False
    keep_alive: bool = False
    error: WorkerError | None = None

    @property
    def used_up(self) -> bool:
        return self.stage is _Stage.COMPLETE and not self.chunks


class _Connection(asyncio.Protocol):
    """A socket to a worker and, from the first request on, the answer under way or read last."""

    def __init__(self, loop: asyncio.AbstractEventLoop, upstream: Upstream) -> None:
        self._loop = loop
        self._upstream = upstream
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._answer: _Answer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._spoilt = False  # it said something unasked: not to be trusted with another request
        self._closed = False
        self._idle_since_s = loop.time()

    # -- what an exchange does -------------------------------------------------------------------

    @property
    def answer(self) -> _Answer:
        assert self._answer is not None, "nothing was asked yet"
        return self._answer

    async def start(self, message: bytes, timeout_s: float) -> None:
        """Sends a request and waits for the headers of the answer."""
        is_first = self._answer is None
        self._answer = answer = _Answer()
        self._parser = httptools.HttpResponseParser(self)
        assert self._transport is not None
        if self._closed:
            answer.error = _died()
        else:
            self._transport.write(message)
        try:
            while answer.stage < _Stage.BODY and answer.error is None:
                await self._wait(timeout_s)
        except TimeoutError:
            raise WorkerTimeout(f"a worker sent nothing for {timeout_s:g} s") from None
        if answer.stage < _Stage.BODY and answer.error is not None:
            if not is_first and answer.stage is _Stage.ASKED:
                raise StaleConnection(answer.error.message)
            raise answer.error

    async def read(self, timeout_s: float) -> bytes:
        answer = self.answer
        while not answer.chunks and answer.stage < _Stage.COMPLETE:
            if answer.error is not None:
                raise answer.error
            await self._wait(timeout_s)
        data = answer.chunks[0] if len(answer.chunks) == 1 else b"".join(answer.chunks)
        answer.chunks.clear()
        answer.num_buffered_bytes = 0
        if self._reading_paused and self._transport is not None and not self._closed:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    def reusable(self) -> bool:
        fresh = self._loop.time() - self._idle_since_s < IDLE_S
        ended_well = self.answer.used_up and self.answer.keep_alive and not self._spoilt
        sent = self._transport is not None and not self._transport.get_write_buffer_size()
        return fresh and ended_well and sent and not self._closed

    def abort(self) -> None:
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self, timeout_s: float) -> None:
        """Until something happens. Raises TimeoutError after `timeout_s`."""
        self._waiter = waiter = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: WorkerError) -> None:
        answer = self._answer
        if answer is not None and answer.error is None and answer.stage < _Stage.COMPLETE:
            answer.error = error
        self._wake()

    # -- what the socket does --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or answer.stage is _Stage.COMPLETE:  # bytes that nobody asked for
            self._upstream._forget(self)
            self.abort()
            return
        if answer.stage < _Stage.BODY:
            answer.stage = _Stage.BEGUN
            answer.num_head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._break_off(f"a worker's answer is not HTTP ({error})")
        else:
            if answer.stage < _Stage.BODY and answer.num_head_bytes > MAX_HEADER_BYTES:
                self._break_off("a worker's headers are too long")
        self._wake()

    def _break_off(self, why: str) -> None:
        self._spoilt = True
        self._fail(WorkerProtocolError(why))
        self.abort()

    def eof_received(self) -> bool:
        answer = self._answer
        if answer is not None and answer.stage is _Stage.BODY and answer.ends_with_connection:
            answer.stage = _Stage.COMPLETE
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._upstream._forget(self)
        self._fail(_died())

    # -- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.answer.stage is _Stage.COMPLETE:  # a second answer to one request
            self._spoilt = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._spoilt and self.answer.stage < _Stage.BODY:  # later ones are trailers
            self.answer.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._spoilt:
            return
        answer = self.answer
        answer.status = self._parser.get_status_code()
        if 100 <= answer.status < 200:  # 100 Continue and its kind: the answer is still to come
            answer.headers = []
            return
        names = {name for name, _ in answer.headers}
        answer.ends_with_connection = not names & {b"content-length", b"transfer-encoding"}
        answer.stage = _Stage.BODY

    def on_body(self, body: bytes) -> None:
        if self._spoilt:
            return
        answer = self.answer
        answer.chunks.append(body)
        answer.num_buffered_bytes += len(body)
        if answer.num_buffered_bytes > HIGH_WATER_BYTES and not self._reading_paused:
            self._reading_paused = True
            assert self._transport is not None
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        answer = self.answer
        if self._spoilt or answer.stage < _Stage.BODY:
            return
        answer.stage = _Stage.COMPLETE
        answer.keep_alive = self._parser.should_keep_alive()
        self._idle_since_s = self._loop.time()


def _died() -> WorkerDied:
    return WorkerDied("a worker closed its connection before its answer was complete")


def _expire(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
