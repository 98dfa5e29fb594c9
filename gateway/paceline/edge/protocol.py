"""A client's connection: HTTP/1.1 on a socket → requests, as a protocol class for uvicorn's server.

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

There is no ASGI between a request and its handler: messages, queues and a task that waits for the
disconnect would cost as much as the rest of a request. `asgi.py` has it for the admin plane.
"""

from __future__ import annotations

import asyncio
import http
import logging
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn import Config
from uvicorn.server import ServerState

from paceline.core.error_shapes import error_body
from paceline.edge.client import Client
from paceline.edge.deadline import Deadline
from paceline.edge.heads import by_name, read_request
from paceline.edge.wire import Headers
from paceline.errors import HeadTooLarge, InvalidRequest, PacelineError, RequestTimeout

Handler = Callable[[Client], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256
HEAD_S = 30.0
"""From a connection's or a head's first moment to the head's end."""
LINGER_S = 2.0
"""How long a refused client may go on sending before its connection is closed on it."""

_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)
_PLAIN_PATH = re.compile(rb"/[\w./-]*")


class HttpConnection(asyncio.Protocol):
    """One socket; its requests in turn."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        handler: Handler,
        stalled_s: float = 120.0,
    ) -> None:
        """The first four are uvicorn's; `stalled_s` is how long a reader may stand still."""
        self._loop = loop = _loop or asyncio.get_running_loop()
        self._handler = handler
        self._keep_alive_s = config.timeout_keep_alive
        self._server_state = server_state
        self._head = bytearray()
        self._parser = httptools.HttpRequestParser(self)
        self._client: Client | None = None
        self._left: int | None = None  # of its body, in bytes; None where the parser counts
        self._patience = Deadline(loop, self._waited)  # with what is still to come from the client
        self._stalled_s = stalled_s
        self._stalled = Deadline(loop, self._reader_stands_still)
        self._writable: asyncio.Future[None] | None = None
        self._closing = False

    # -- the socket ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.write = self._transport.write
        self._server_state.connections.add(cast(Any, self))
        self._patience.within(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server_state.connections.discard(cast(Any, self))
        self._closing = True
        self._patience.close()
        self._reads_again()
        self._stalled.close()
        if self._client is not None:
            self._client.leaves()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        client = self._client
        if client is None or client.over:
            self._read_head(data)
        elif client.request_complete:
            client.keep_alive = False
        elif self._left is None:
            self._feed(data)
        else:
            self._take(client, data, self._left)

    def pause_writing(self) -> None:
        self._writable = self._writable or self._loop.create_future()
        if self._client is not None:
            self._client.writable = False
        self._stalled.within(self._stalled_s)

    def resume_writing(self) -> None:
        self._reads_again()
        if self._client is not None:
            self._client.writable = True
            if self._client.on_writable is not None:
                self._client.on_writable()

    def _reads_again(self) -> None:
        self._stalled.off()
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def _reader_stands_still(self) -> None:
        self._transport.abort()

    def shutdown(self) -> None:
        """uvicorn's word that the server is stopping."""
        if self._client is None or self._client.over:
            self._transport.close()
        else:
            self._client.keep_alive = False

    # -- heads -----------------------------------------------------------------------------------

    def _read_head(self, data: bytes) -> None:
        head = self._head
        if not head:
            if self._read_plain(data):  # as nearly always
                return
            end = data.find(b"\r\n\r\n")
            if 0 <= end <= MAX_HEAD_BYTES:  # all of it, at once
                self._begin(data, end + 4)
                return
            self._patience.within(HEAD_S)
        searched = max(0, len(head) - 3)
        head += data
        end = head.find(b"\r\n\r\n", searched)
        if end > MAX_HEAD_BYTES or (end < 0 and len(head) > MAX_HEAD_BYTES):
            self.refuse(HeadTooLarge(f"the request's head is longer than {MAX_HEAD_BYTES} bytes"))
        elif end >= 0:
            self._head = bytearray()
            self._begin(bytes(head), end + 4)

    def _read_plain(self, data: bytes) -> bool:
        """Whether it was a request with a head of the usual form: then the parser has no part in
        it."""
        plain = read_request(data)
        if plain is None:
            return False
        method, url, named, end, length = plain
        self._patience.off()
        client = self._arrives(method, url, named)
        if client is not None:
            self._take(client, data[end:], length)
        return True

    def _take(self, client: Client, data: bytes, left: int) -> None:
        """Some of a body that ends after `left` bytes."""
        beyond = len(data) - left
        if beyond > 0:
            if data[left:].strip(b"\r\n"):  # empty lines count for nothing (RFC 9112 §2.2)
                client.keep_alive = False
            data = data[:left]
        self._left = left - len(data)
        if data:
            client.body_received(data)
        if beyond >= 0:
            self.on_message_complete()

    def _begin(self, data: bytes, end: int) -> None:
        """`end` is where the head ends in `data`."""
        self._patience.off()
        self._url = b""
        self._headers: Headers = []
        self._client = self._left = None
        if b"\r\nupgrade:" in data[:end].lower():
            data = _UPGRADE.sub(b"", data[:end]) + data[end:]
        self._feed(data)
        if self._client is None:  # the parser waits for more: HTTP/2's preface goes on
            self.refuse(InvalidRequest("the request is not valid HTTP"))

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._client is not None and self._client.request_complete:
                self._client.keep_alive = False  # what stands behind it is no request
            else:
                self.refuse(InvalidRequest(f"the request is not valid HTTP ({error})"))

    def _waited(self) -> None:
        if self._head:
            self.refuse(RequestTimeout(f"the request's head did not arrive within {HEAD_S:g} s"))
        else:
            self._transport.close()

    def refuse(self, error: PacelineError) -> None:
        """Answers what is no request, once. Of a body it is its handler's to answer; within an
        answer, the connection is cut instead."""
        if self._closing:
            return
        client = self._client
        if client is not None and not client.over:
            if not client.started:
                client.breaks(error)
                return
            client.leaves()
            self._closing = True
            self._transport.abort()
            return
        body = error_body(error)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        self._transport.write(self.head(error.status, headers) + body)
        self._close_gently()

    # -- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._client is not None:  # another request, or some of it, in the same bytes
            self._client.keep_alive = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._client is None:  # else it is a trailer, which nobody reads
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._client is not None:
            return
        version = self._parser.get_http_version()
        headers = self._headers
        if len(headers) > MAX_HEADERS:
            self.refuse(HeadTooLarge(f"the request has more than {MAX_HEADERS} headers"))
            return
        if version != "1.1" and version != "1.0":
            self.refuse(InvalidRequest(f"this is a server of HTTP/1.1, not of {version}"))
            return
        named = by_name(headers)
        if version == "1.0":
            if "transfer-encoding" in named:  # which it has none of (RFC 9112 §6.1)
                self.refuse(InvalidRequest("HTTP/1.0 has no Transfer-Encoding"))
                return
        elif "host" not in named or (len(named) < len(headers) and _is_repeated(b"host", headers)):
            self.refuse(InvalidRequest("the request needs one Host"))
            return
        method = self._parser.get_method().decode("ascii")
        keep_alive = self._parser.should_keep_alive()
        self._arrives(method, self._url, named, headers, version, keep_alive)

    def on_body(self, body: bytes) -> None:
        if self._client is not None and not self._client.request_complete:
            self._client.body_received(body)

    def on_message_complete(self) -> None:
        if self._client is not None:
            self._client.body_ended()
            if self._client.answered:  # it was waited for only to be read to its end
                self._transport.close()

    def _arrives(
        self,
        method: str,
        url: bytes,
        named: dict[str, str],
        headers: Headers | None = None,
        version: str = "1.1",
        keep_alive: bool = True,
    ) -> Client | None:
        """A request, now served; or nothing, if its target is none."""
        self._client = None
        try:
            path, query = _target(url)
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
            self.refuse(InvalidRequest("the request's target is not a URL"))
            return None
        self._client = client = Client(
            self,
            method=method,
            path=path,
            query=query,
            named=named,
            headers=headers,
            http_version=version,
            keep_alive=keep_alive,
        )
        client.writable = self._writable is None
        # Not by `create_task`, which numbers its tasks and writes each number out as a name.
        client.task = asyncio.Task(self._serve(client), loop=self._loop, name="request")
        self._server_state.tasks.add(client.task)
        return client

    async def _serve(self, client: Client) -> None:
        try:
            await self._handler(client)
        except Exception:
            log.exception("%s %s failed", client.method, client.path)
        finally:
            if client.task is not None:
                self._server_state.tasks.discard(client.task)
            client.task = client.on_writable = None
            if not client.answered and not client.gone:
                self._transport.abort()  # half an answer must not look like one

    # -- what a client does ----------------------------------------------------------------------

    @property
    def num_unsent_bytes(self) -> int:
        """What was written and the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def head(self, status: int, headers: Headers) -> bytes:
        return head_bytes(status, self._server_state.default_headers + headers)

    async def drained(self) -> None:
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def read_on(self, on: bool) -> None:
        if self._transport.is_closing():
            return
        if on:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def answered(self, client: Client) -> None:
        self._server_state.total_requests += 1
        if client.keep_alive:
            self._patience.within(self._keep_alive_s)
        elif client.request_complete:
            self._transport.close()
        else:
            self._close_gently()

    def _close_gently(self) -> None:
        """Ends our side at once and the connection a little later: closing on bytes that were not
        read would reset it, and the client might lose the answer."""
        self._closing = True
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        self._head.clear()
        self._patience.within(LINGER_S)


def _is_repeated(name: bytes, headers: Headers) -> bool:
    return [key for key, _ in headers].count(name) > 1


@lru_cache(maxsize=64)
def _target(url: bytes) -> tuple[str, bytes]:
    """The path of a request, decoded once, and its query.

    Raises HttpParserInvalidURLError, UnicodeDecodeError.
    """
    if _PLAIN_PATH.fullmatch(url):
        return url.decode("ascii"), b""
    parsed = httptools.parse_url(url)
    return unquote((parsed.path or b"/").decode("ascii")), parsed.query or b""


def _status_line(status: int) -> bytes:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}".encode()


_STATUS_LINES = {status: _status_line(status) for status in range(200, 600)}


def head_bytes(status: int, headers: Headers) -> bytes:
    """A response's head. Raises ValueError for a header that would break it."""
    head = b"\r\n".join([_STATUS_LINES[status], *map(b": ".join, headers)])
    if head.count(b"\n") != len(headers):
        raise ValueError("a response header holds a line break")
    return head + b"\r\n\r\n"
