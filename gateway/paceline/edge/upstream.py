"""Requests to workers: idle connections kept and reused, new ones made, stale ones replaced.

A small client of our own, because this is the hot path, where general clients cost several times as
much as the parser alone. It does what a gateway needs and no more: one
exchange at a time on a connection, idle connections kept for reuse, bodies in the pieces they
arrive in, reading paused while nobody takes them.

Foreign errors become ours here and in `connection.py`, and only there: refused or unreachable is
`WorkerUnavailable`, an answer cut short `WorkerDied`, silence `WorkerTimeout`, nonsense
`WorkerProtocolError`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from urllib.parse import urlsplit

from paceline.edge.connection import BODY, COMPLETE, Answer, Connection, Sink, StaleConnection
from paceline.errors import WorkerUnavailable

MAX_IDLE = 256
"""Idle connections kept per worker: as many as one runs sequences, by vLLM's usual settings."""
ONE_PIECE_BYTES = 16 * 1024
"""Up to this size a body is copied behind its head: writing two pieces costs more than that."""

LINGER_S = 0.1
"""How long a connection may take to end a body of which nothing more is wanted. Then it can be used
again, else it is cut."""


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
        self._idle: deque[Connection] = deque()
        authorization = f"\r\nAuthorization: Bearer {key}" if key else ""
        self._fixed = (
            f" HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept-Encoding: identity{authorization}"
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
        message = self._message(method, path, headers, body)
        idle = self._pop_idle()
        if idle is not None:
            try:
                return await self._exchange(idle, message, timeout_s)
            except StaleConnection:
                pass
        return await self._exchange(await self._connect(), message, timeout_s)

    def close_idle(self) -> None:
        """Closes the connections that have been idle for too long, before the worker does."""
        while self._idle and not self._idle[0].is_fresh():
            self._idle.popleft().abort()

    def close(self) -> None:
        """Closes all idle connections; exchanges under way go on."""
        while self._idle:
            self._idle.pop().abort()

    def _message(
        self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> list[bytes]:
        lines = [f"{method} {path}{self._fixed}".encode(), *map(b": ".join, headers)]
        if body or method == "POST":
            lines.append(b"Content-Length: %d" % len(body))
        lines += (b"", body)
        if len(body) <= ONE_PIECE_BYTES:
            return [b"\r\n".join(lines)]
        lines[-1] = b""
        return [b"\r\n".join(lines), body]

    async def _exchange(
        self, connection: Connection, message: Sequence[bytes], timeout_s: float
    ) -> Exchange:
        try:
            answer = await connection.start(message, timeout_s)
        except BaseException:
            self._release(connection)
            raise
        return Exchange(self, connection, answer)

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, self._forget), self._host, self._port, ssl=self._tls
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

    def _pop_idle(self) -> Connection | None:
        """The connection used last, unless it has been idle for too long (then all have)."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.abort()
        return None

    def _release(self, connection: Connection) -> None:
        if connection.reusable() and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.abort()

    def _forget(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)


class Exchange:
    """One request and its answer, from the headers on. `close` must be called, whatever happened.

    Header names are in lower case, in the order in which they came.
    """

    __slots__ = (
        "_answer", "_connection", "_lets_end", "_upstream", "headers", "named", "status",
    )  # fmt: skip

    def __init__(self, upstream: Upstream, connection: Connection, answer: Answer) -> None:
        self._upstream = upstream
        self._connection: Connection | None = connection
        self._answer = answer
        self._lets_end = False
        self.status = answer.status
        self.headers = answer.headers
        self.named = dict(answer.headers)  # the last of each name

    def whole(self) -> bytes | None:
        """The body, if all of it came with the headers; else None, and nothing is taken."""
        if self._answer.stage is not COMPLETE:
            return None
        self._open.read_on(True)
        return self._answer.take()

    async def read(self, timeout_s: float) -> bytes:
        """The next piece of the body as it arrived; empty at its end.

        Raises TimeoutError after `timeout_s` of silence, and may be called again then. Raises
        WorkerDied if the connection ends before the body does.
        """
        return await self._open.read(timeout_s)

    def pipe(self, sink: Sink) -> None:
        """What is still to come of the body goes to `sink`, as it arrives."""
        self._open.pipe(sink)

    def read_on(self, on: bool) -> None:
        """Whether more of the body may come."""
        self._open.read_on(on)

    def lets_end(self) -> None:
        """All that was wanted of the body is here: after `close` it may still come to its end."""
        self._lets_end = True

    def close(self) -> None:
        """Frees the connection: for reuse if the answer was read to its end or comes to it soon,
        else it is cut, which tells the worker to stop generating."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._answer.sink = None
        if self._lets_end and self._answer.stage is BODY:
            connection.linger(LINGER_S, self._upstream._release)
        else:
            self._upstream._release(connection)

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("this exchange is closed")
        return self._connection
