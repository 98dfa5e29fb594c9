"""The client's side of one request: its body, our answer, and its leaving.

`Client` stands between a connection (`protocol.py`), which tells it what arrives, and the one task
that serves the request. Writing never waits: whoever writes much asks `writable`, or waits for
`drained`. A client that leaves cancels the task, wherever it waits: for a connection, for a first
byte, mid-stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from paceline.edge.encoding import Inflater, TooLong
from paceline.edge.wire import Headers
from paceline.errors import (
    InvalidRequest,
    PacelineError,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)

HIGH_WATER_BYTES = 64 * 1024
"""Unread body at which reading from the client pauses."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_NO_BODY = (204, 304)


class ClientGone(Exception):
    """The client closed its connection."""


class Connection(Protocol):
    """What a client's connection does for a request."""

    @property
    def write(self) -> Callable[[bytes], None]: ...
    def head(self, status: int, headers: Headers) -> bytes: ...
    async def drained(self) -> None: ...
    def read_on(self, on: bool) -> None: ...
    def answered(self, client: Client) -> None: ...


class Client:
    """One request, and our answer to it. Header names are in lower case."""

    __slots__ = (
        "_body", "_body_bytes", "_broken", "_chunked", "_connection", "_has_body", "_head",
        "_headers", "_reading_paused", "_waiter", "_wants_continue", "_write", "answered", "gone",
        "http_version", "keep_alive", "method", "named", "on_writable", "path", "query",
        "request_complete", "started", "status", "task", "writable",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        *,
        method: str,
        path: str,
        query: bytes,
        named: dict[str, str],
        headers: Headers | None = None,
        http_version: str,
        keep_alive: bool,
    ) -> None:
        """`path` is decoded once, `query` not at all. `named` are the headers by name, the last of
        each, decoded as latin-1; they are all of the `headers` where those are not given."""
        self._connection = connection
        self._write = connection.write
        self.method = method
        self.path = path
        self.query = query
        self._headers = headers
        self.named = named
        self.http_version = http_version
        self.keep_alive = keep_alive
        self.request_complete = False
        self.started = False
        self.answered = False
        self.gone = False
        self.writable = True  # it reads as fast as we write; `on_writable` when it does so again
        self.status = 0
        self.task: asyncio.Task[None] | None = None  # what serves it, and ends if it leaves
        self.on_writable: Callable[[], None] | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._broken: PacelineError | None = None  # why the rest of its body cannot be read
        self._reading_paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._head = b""  # of the answer, until the first piece of its body goes out with it
        self._chunked = False
        self._has_body = True
        self._wants_continue = (
            "expect" in named
            and http_version != "1.0"
            and any(
                name == b"expect" and value.lower() == b"100-continue"
                for name, value in self.headers
            )
        )

    @property
    def headers(self) -> Headers:
        """All, in the order in which they came."""
        if self._headers is None:
            self._headers = [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in self.named.items()
            ]
        return self._headers

    @property
    def over(self) -> bool:
        """Both ways: then the next request may begin."""
        return self.answered and self.request_complete

    # -- what the connection tells ---------------------------------------------------------------

    def body_received(self, data: bytes) -> None:
        if self.answered:
            return
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > HIGH_WATER_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._connection.read_on(False)
        self._wake()

    def body_ended(self) -> None:
        self.request_complete = True
        self._wake()

    def breaks(self, why: PacelineError) -> None:
        """Its body goes on in a way that cannot be read."""
        self._broken = why
        self._wake()

    def leaves(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._wake()
        if self.task is not None and not self.answered:
            self.task.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- its body --------------------------------------------------------------------------------

    async def body(
        self, *, limit_bytes: int, encoding: bytes | None, declared: str | None, timeout_s: float
    ) -> bytes:
        """The request's body, inflated. `declared` is its Content-Length, if it sent one.

        Raises PayloadTooLarge, UnsupportedMediaType, InvalidRequest, RequestTimeout, ClientGone.
        """
        if encoding is None and self.request_complete and self._body_bytes <= limit_bytes:
            return self._taken()  # as nearly always: it came with the head
        too_large = PayloadTooLarge(f"the body is longer than {limit_bytes} bytes")
        if declared is not None and declared.isdecimal() and int(declared) > limit_bytes:
            raise too_large
        try:
            inflater = Inflater(encoding, limit_bytes=limit_bytes)
        except LookupError:
            raise UnsupportedMediaType("a body may be plain, gzip or deflate") from None
        try:
            body = await self._whole(inflater, timeout_s)
        except TooLong:
            raise too_large from None
        except ValueError:
            raise InvalidRequest("the body is not what its Content-Encoding says") from None
        except TimeoutError:
            raise RequestTimeout(f"nothing of the body came for {timeout_s:g} s") from None
        if not inflater.complete:
            raise InvalidRequest("the compressed body is cut short")
        return body

    async def _whole(self, inflater: Inflater, silence_s: float) -> bytes:
        pieces: list[bytes] = []
        while data := await self.read(silence_s):
            pieces.append(inflater.feed(data))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read(self, timeout_s: float | None = None) -> bytes:
        """What has come of the body, at least a byte of it; empty at its end.

        Raises ClientGone, InvalidRequest, TimeoutError after `timeout_s` of silence.
        """
        while not self._body:
            if self.request_complete:
                return b""
            if self._broken is not None:
                raise self._broken
            if self._wants_continue:
                self._wants_continue = False
                self._write(CONTINUE)
            await self.changed(timeout_s)
        return self._taken()

    def _taken(self) -> bytes:
        """What has come of the body and was not read yet."""
        data = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body, self._body_bytes = [], 0
        if self._reading_paused:
            self._reading_paused = False
            self._connection.read_on(True)
        return data

    async def changed(self, timeout_s: float | None = None) -> None:
        """Until more of it came, or it has left. Raises ClientGone, TimeoutError."""
        if not self.gone:
            self._waiter = asyncio.get_running_loop().create_future()
            async with asyncio.timeout(timeout_s):
                await self._waiter
        if self.gone:
            raise ClientGone

    # -- our answer ------------------------------------------------------------------------------

    async def drained(self) -> None:
        """Returns once it has read enough, or has left."""
        await self._connection.drained()

    def start(self, status: int, headers: Headers, *, length: int | None = None) -> None:
        """Commits the status line, which goes out with the first `write`. Once only.

        Without the `length` of the body, in bytes, its end is its last chunk.
        """
        self.started = True
        self.status = status
        self._wants_continue = False
        self._has_body = self.method != "HEAD" and status not in _NO_BODY
        framing: Headers = []
        if length is not None:
            framing.append((b"content-length", b"%d" % length))
        elif self._has_body:
            self._chunked = self.http_version != "1.0"
            self.keep_alive = self.keep_alive and self._chunked
        if not self.request_complete:
            self.keep_alive = False
        if self._chunked:
            framing.append((b"transfer-encoding", b"chunked"))
        if not self.keep_alive:
            framing.append((b"connection", b"close"))
        self._head = self._connection.head(status, [*headers, *framing])

    def write(self, data: bytes, chunk: bytes | None = None) -> None:
        """A piece of the answer's body, or only its head if there is none yet. One system call,
        which costs as much as all else that is done for an event. `chunk` is `data` as a chunk, if
        somebody has made one of it already."""
        if self._head or not self._chunked:
            self._send(self._framed(data))
        elif data and not self.gone:
            self._write(chunk or b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self, data: bytes = b"") -> None:
        """The answer's end, with the last of its body."""
        self._send(self._framed(data) + b"0\r\n\r\n" if self._chunked else self._framed(data))
        self.answered = True
        self._body.clear()
        self._wake()
        if not self.gone:
            self._connection.answered(self)

    def _framed(self, data: bytes) -> bytes:
        if not (data and self._has_body):
            return b""
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def _send(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        if data and not self.gone:
            self._write(data)

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole response, with its length."""
        self.start(status, headers, length=None if status == 204 else len(body))
        self.finish(body)
