"""A client's connection: HTTP/1.1 on a socket → ASGI, as a protocol class for uvicorn's server.

uvicorn's own reads heads of any size, takes `Upgrade: h2c` for the end of HTTP, hides a client's
leaving behind a pipelined request, and sends chunks to HTTP/1.0. Here:

- a head has a bound in bytes and in seconds, and `Upgrade` is ignored, as RFC 9110 §7.8 allows;
- one request at a time: bytes behind a request under way are dropped, and its answer closes the
  connection, so a client's leaving is always seen (who pipelines asks again, RFC 9112 §9.3.2);
- HTTP/1.0 clients, nginx with its default settings among them, get an answer that ends with the
  connection;
- an answer sent before its request was read says `Connection: close` and lingers, so that it is not
  lost in a reset;
- a reader that stands still is cut off.
"""

from __future__ import annotations

import asyncio
import http
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn import Config
from uvicorn.server import ServerState

from paceline.edge.client import Message, Receive, Send
from paceline.edge.upstream import Headers
from paceline.edge.wire import error_body
from paceline.errors import HeadTooLarge, InvalidRequest, PacelineError, RequestTimeout

App = Callable[[Message, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256
HEAD_S = 30.0
"""From a connection's or a head's first moment to the head's end."""
LINGER_S = 2.0
"""How long a refused client may go on sending before its connection is closed on it."""
HIGH_WATER_BYTES = 64 * 1024
"""Unread body at which reading from the client pauses."""

_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)
_NO_BODY = (204, 304)


class HttpConnection(asyncio.Protocol):
    """One socket; its requests in turn."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        stalled_s: float = 120.0,
    ) -> None:
        """The first four are uvicorn's; `stalled_s` is how long a reader may stand still."""
        self.loop = _loop or asyncio.get_running_loop()
        self.stalled_s = stalled_s
        self.default_headers = server_state.default_headers
        self._app = cast(App, config.loaded_app)
        self._keep_alive_s = config.timeout_keep_alive
        self._server_state = server_state
        self._head = bytearray()
        self._parser: Any = None  # of the request under way
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None  # what this connection is waiting for now
        self._writable: asyncio.Future[None] | None = None
        self._closing = False

    # -- the socket ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._server_state.connections.add(cast(Any, self))
        self._wait(HEAD_S, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server_state.connections.discard(cast(Any, self))
        self._closing = True
        self._cancel_timer()
        self.resume_writing()
        if self._exchange is not None:
            self._exchange.client_left()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        exchange = self._exchange
        if exchange is None or exchange.over:
            self._read_head(data)
        elif exchange.request_complete:
            exchange.keep_alive = False
        else:
            self._feed(data)

    def pause_writing(self) -> None:
        self._writable = self._writable or self.loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    async def drained(self) -> None:
        """Returns once the client has read enough; one that stands still is cut off."""
        if self._writable is None:
            return
        try:
            async with asyncio.timeout(self.stalled_s):
                await asyncio.shield(self._writable)
        except TimeoutError:
            self.transport.abort()

    def shutdown(self) -> None:
        """uvicorn's word that the server is stopping."""
        if self._exchange is None or self._exchange.over:
            self.transport.close()
        else:
            self._exchange.keep_alive = False

    # -- heads -----------------------------------------------------------------------------------

    def _read_head(self, data: bytes) -> None:
        head = self._head
        if not head:
            self._wait(HEAD_S, self._head_is_late)
        searched = max(0, len(head) - 3)
        head += data
        end = head.find(b"\r\n\r\n", searched)
        if end > MAX_HEAD_BYTES or (end < 0 and len(head) > MAX_HEAD_BYTES):
            self.refuse(HeadTooLarge(f"the request's head is longer than {MAX_HEAD_BYTES} bytes"))
        elif end >= 0:
            self._cancel_timer()
            rest = bytes(head[end + 4 :])
            complete = _UPGRADE.sub(b"", bytes(head[: end + 4]))
            self._head = bytearray()
            self._begin(complete, rest)

    def _begin(self, head: bytes, rest: bytes) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: Headers = []
        self._exchange = None
        self._feed(head)
        if rest and self._exchange is not None and not self._closing:
            self.data_received(rest)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._exchange is not None and self._exchange.request_complete:
                self._exchange.keep_alive = False  # what stands behind it is no request
            else:
                self.refuse(InvalidRequest(f"the request is not valid HTTP ({error})"))

    def _head_is_late(self) -> None:
        if self._head:
            self.refuse(RequestTimeout(f"the request's head did not arrive within {HEAD_S:g} s"))
        else:
            self.transport.close()

    def refuse(self, error: PacelineError) -> None:
        """Answers what is no request; within an answer, cuts the connection instead."""
        if self._exchange is not None and not self._exchange.over:
            self._exchange.client_left()
            self._closing = True
            self.transport.abort()
            return
        body = error_body(error)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        self.transport.write(head_bytes(error.status, [*self.default_headers, *headers]) + body)
        self._close_gently()

    # -- what the parser finds -------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._exchange is None:  # else it is a trailer, which nobody reads
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._exchange is not None:  # of another request, in the same bytes
            self._exchange.keep_alive = False
            return
        version = self._parser.get_http_version()
        if len(self._headers) > MAX_HEADERS:
            self.refuse(HeadTooLarge(f"the request has more than {MAX_HEADERS} headers"))
            return
        if version != "1.0" and sum(name == b"host" for name, _ in self._headers) != 1:
            self.refuse(InvalidRequest("the request needs one Host"))
            return
        try:
            url = httptools.parse_url(self._url)
            path = unquote((url.path or b"/").decode("ascii"))
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
            self.refuse(InvalidRequest("the request's target is not a URL"))
            return
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "method": self._parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "root_path": "",
            "headers": self._headers,
            "client": self.transport.get_extra_info("peername"),
            "server": self.transport.get_extra_info("sockname"),
        }
        self._exchange = Exchange(self, scope, keep_alive=self._parser.should_keep_alive())
        task = self.loop.create_task(self._exchange.run(self._app))
        self._server_state.tasks.add(task)
        task.add_done_callback(self._server_state.tasks.discard)

    def on_body(self, body: bytes) -> None:
        if self._exchange is not None and not self._exchange.request_complete:
            self._exchange.body_received(body)

    def on_message_complete(self) -> None:
        if self._exchange is not None:
            self._exchange.body_ended()
            if self._exchange.answered:  # it was waited for only to be read to its end
                self.transport.close()

    # -- after an answer -------------------------------------------------------------------------

    def answered(self, exchange: Exchange) -> None:
        self._server_state.total_requests += 1
        if exchange.keep_alive:
            self._wait(self._keep_alive_s, self.transport.close)
        elif exchange.request_complete:
            self.transport.close()
        else:
            self._close_gently()

    def _close_gently(self) -> None:
        """Ends our side at once and the connection a little later: closing on bytes that were not
        read would reset it, and the client might lose the answer."""
        self._closing = True
        if self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()
        self._wait(LINGER_S, self.transport.close)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(seconds, then)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Exchange:
    """One request and its answer: the two ends that the application holds."""

    def __init__(
        self, connection: HttpConnection, scope: dict[str, Any], *, keep_alive: bool
    ) -> None:
        self._connection = connection
        self._scope = scope
        self.keep_alive = keep_alive
        self.request_complete = False
        self.answered = False
        self._left = False
        self._body = bytearray()
        self._changed = asyncio.Event()
        self._reading_paused = False
        self._started = False
        self._chunked = False
        self._has_body = True
        self._wants_continue = (b"expect", b"100-continue") in [
            (name, value.lower()) for name, value in scope["headers"] if name == b"expect"
        ]

    @property
    def over(self) -> bool:
        """Both ways: then the next request may begin."""
        return self.answered and self.request_complete

    async def run(self, app: App) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            log.exception("%s %s failed", self._scope["method"], self._scope["path"])
        finally:
            if not self.answered and not self._left:
                self._connection.transport.abort()  # half an answer must not look like one

    # -- the connection's side -------------------------------------------------------------------

    def body_received(self, data: bytes) -> None:
        if self.answered:
            return
        self._body += data
        if len(self._body) > HIGH_WATER_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._connection.transport.pause_reading()
        self._changed.set()

    def body_ended(self) -> None:
        self.request_complete = True
        self._changed.set()

    def client_left(self) -> None:
        self._left = True
        self._changed.set()

    # -- the application's side ------------------------------------------------------------------

    async def receive(self) -> Message:
        if self._wants_continue and not self._started:
            self._wants_continue = False
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not (self._left or self.answered):
            if self._reading_paused:
                self._reading_paused = False
                self._connection.transport.resume_reading()
            await self._changed.wait()
            self._changed.clear()
        if self._left or self.answered:
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body), bytearray()
        return {"type": "http.request", "body": body, "more_body": not self.request_complete}

    async def send(self, message: Message) -> None:
        await self._connection.drained()
        if self._left:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], list(message.get("headers", ())))
        else:
            self._write(message.get("body", b""), more=message.get("more_body", False))

    def _start(self, status: int, headers: Headers) -> None:
        self._started = True
        names = {name.lower() for name, _ in headers}
        self._has_body = self._scope["method"] != "HEAD" and status not in _NO_BODY
        if self._has_body and b"content-length" not in names:
            self._chunked = self._scope["http_version"] != "1.0"
            self.keep_alive = self.keep_alive and self._chunked
        if not self.request_complete:
            self.keep_alive = False
        if self._chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        if not self.keep_alive:
            headers.append((b"connection", b"close"))
        headers = [*self._connection.default_headers, *headers]
        self._connection.transport.write(head_bytes(status, headers))

    def _write(self, body: bytes, *, more: bool) -> None:
        transport = self._connection.transport
        if self._has_body and body:
            transport.write(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)
        if not more:
            if self._chunked:
                transport.write(b"0\r\n\r\n")
            self.answered = True
            self._changed.set()
            self._connection.answered(self)


def head_bytes(status: int, headers: Headers) -> bytes:
    """A response's head. Raises ValueError for a header that would break it."""
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {status} {phrase}".encode()]
    lines += [name + b": " + value for name, value in headers]
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(headers):
        raise ValueError("a response header holds a line break")
    return head + b"\r\n\r\n"
