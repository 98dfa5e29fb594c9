"""The client's side of one request: its body, our answer, and its leaving.

An ASGI server does not cancel an application whose client has gone; it tells who asks. So one
task per request waits for the disconnect and cancels the request's own task, wherever it waits:
for a connection, for a first byte, mid-stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any

from paceline.edge.encoding import Inflater, TooLong
from paceline.edge.upstream import Headers
from paceline.errors import InvalidRequest, PayloadTooLarge, RequestTimeout, UnsupportedMediaType

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ClientGone(Exception):
    """The client closed its connection."""


class Client:
    """One request's client. As a context, it turns a disconnect within into ClientGone."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._watch: asyncio.Task[None] | None = None
        self.gone = False
        self.started = False
        self.finished = False
        self.status = 0

    async def body(
        self, *, limit_bytes: int, encoding: bytes | None, declared: bytes | None, timeout_s: float
    ) -> bytes:
        """The request's body, inflated. `declared` is its Content-Length, if it sent one.

        Raises PayloadTooLarge, UnsupportedMediaType, InvalidRequest, RequestTimeout, ClientGone.
        """
        too_large = PayloadTooLarge(f"the body is longer than {limit_bytes} bytes")
        if declared is not None and declared.isdigit() and int(declared) > limit_bytes:
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
        while True:
            async with asyncio.timeout(silence_s):
                message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            pieces.append(inflater.feed(message.get("body", b"")))
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def start(self, status: int, headers: Headers) -> None:
        """Commits the status line. Once only."""
        self.started = True
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Waits while the client reads too slowly."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self, data: bytes = b"") -> None:
        self.finished = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole response, with its length."""
        length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
        await self.start(status, [*headers, *length])
        await self.finish(body)

    async def __aenter__(self) -> Client:
        task = asyncio.current_task()
        assert task is not None
        self._watch = asyncio.create_task(self._wait_until_gone(task))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._watch is not None
        self._watch.cancel()
        if self.gone and isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            raise ClientGone from None

    async def _wait_until_gone(self, task: asyncio.Task[Any]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.finished:  # ASGI says the same once a response is complete
            self.gone = True
            task.cancel()
