"""Connections to workers: HTTP/1.1 over asyncio, parsed by httptools.

A small client of our own, because this is the hot path: measured per request, httpx costs 4-10 ms
of CPU, aiohttp 0.3-0.4 ms and this kind 0.15 ms. It does what a gateway needs and no more: one
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
                f"a worker did not accept a connection within {self._connect_s:g} s"
            ) from None
        except OSError as error:
            raise WorkerUnavailable(
                f"a worker cannot be reached ({type(error).__name__})"
            ) from error
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
        return self._open.status

    @property
    def headers(self) -> Headers:
        """Names in lower case, in the order in which they came."""
        return self._open.headers

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


class _Connection(asyncio.Protocol):
    """A socket to a worker. The parser's callbacks fill in the answer; `read` empties it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, upstream: Upstream) -> None:
        self._loop = loop
        self._upstream = upstream
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._used = False
        self._closed = False
        self._idle_since_s = loop.time()
        self._begin()

    def _begin(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._buffered_bytes = 0
        self._header_bytes = 0
        self._paused = False
        self._answered = False  # a byte of this exchange's answer has come
        self._headers_done = False
        self._complete = False
        self._surplus = False  # more than one answer to one request: not to be trusted again
        self._keep_alive = False
        self._until_eof = False
        self._error: WorkerError | None = None

    # -- what an exchange does -------------------------------------------------------------------

    async def start(self, message: bytes, timeout_s: float) -> None:
        """Sends the request and waits for the headers of the answer."""
        if self._used:
            self._begin()
        reused, self._used = self._used, True
        assert self._transport is not None
        self._transport.write(message)
        try:
            while not self._headers_done and self._error is None:
                await self._wait(timeout_s)
        except TimeoutError:
            raise WorkerTimeout(f"a worker sent nothing for {timeout_s:g} s") from None
        if self._error is not None and not self._headers_done:
            if reused and not self._answered and isinstance(self._error, WorkerDied):
                raise StaleConnection(self._error.message)
            raise self._error

    async def read(self, timeout_s: float) -> bytes:
        while not self._chunks and not self._complete:
            if self._error is not None:
                raise self._error
            await self._wait(timeout_s)
        data = b"".join(self._chunks) if len(self._chunks) != 1 else self._chunks[0]
        self._chunks.clear()
        self._buffered_bytes = 0
        if self._paused and self._transport is not None and not self._closed:
            self._paused = False
            self._transport.resume_reading()
        return data

    def reusable(self) -> bool:
        fresh = self._loop.time() - self._idle_since_s < IDLE_S
        ended_well = self._complete and not self._chunks and not self._surplus
        return fresh and ended_well and self._keep_alive and not self._closed

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
        if self._error is None and not self._complete:
            self._error = error
        self._wake()

    # -- what the socket does --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        if self._complete or not self._used:  # bytes that nobody asked for
            self._upstream._forget(self)
            self.abort()
            return
        self._answered = True
        if not self._headers_done:
            self._header_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(WorkerProtocolError(f"a worker's answer is not HTTP ({error})"))
            self.abort()
            return
        if not self._headers_done and self._header_bytes > MAX_HEADER_BYTES:
            self._fail(WorkerProtocolError("a worker's headers are too long"))
            self.abort()
        self._wake()

    def eof_received(self) -> bool:
        if self._headers_done and self._until_eof:
            self._complete = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._upstream._forget(self)
        self._fail(WorkerDied("a worker closed its connection before its answer was complete"))

    # -- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._surplus = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._surplus:
            return
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._surplus:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:  # 100 Continue and its kind: the answer is still to come
            self.headers = []
            return
        names = {name for name, _ in self.headers}
        self._until_eof = not names & {b"content-length", b"transfer-encoding"}
        self._headers_done = True

    def on_body(self, body: bytes) -> None:
        if self._surplus:
            return
        self._chunks.append(body)
        self._buffered_bytes += len(body)
        if self._buffered_bytes > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            assert self._transport is not None
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._surplus or not self._headers_done:
            return
        self._complete = True
        self._keep_alive = self._parser.should_keep_alive()
        self._idle_since_s = self._loop.time()


def _expire(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
