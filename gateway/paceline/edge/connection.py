"""One socket to a worker: HTTP/1.1 over asyncio, parsed by httptools, one answer at a time.

A body is either pulled (`read`), or pushed piece by piece into a `Sink` (`pipe`), which is how a
stream passes without a task waking for every event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, cast

import httptools

from paceline.edge.deadline import Deadline
from paceline.edge.heads import read_response
from paceline.edge.wire import Headers
from paceline.errors import WorkerDied, WorkerError, WorkerProtocolError, WorkerTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_S = 4.0
"""An idle connection is not used again after this: vLLM's server closes its own after 5 s."""
HIGH_WATER_BYTES = 256 * 1024
"""Unread body at which reading from the worker pauses."""
MAX_HEADER_BYTES = 64 * 1024


_CHUNK_SIZES = {b"%x\r\n" % size: size for size in range(1, 4096)}
"""What chunks of usual sizes begin with; any other spelling is the parser's to read."""


class StaleConnection(WorkerError):
    """A reused connection ended before the worker sent a byte: it was closed while idle."""


class Sink(Protocol):
    """Takes a body as it arrives. Neither method may raise."""

    def received(self, data: bytes, chunk: bytes | None = None) -> None:
        """What one read brought. If that was one chunk of a chunked body, here is the chunk too, as
        it can go on to the next connection."""

    def ended(self, error: WorkerError | None) -> None:
        """The body's end, or why there is none. The last call."""


class _Rest:
    """What nobody wants of a body: it is read to its end for the connection's sake."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def received(self, data: bytes, chunk: bytes | None = None) -> None:
        pass

    def ended(self, error: WorkerError | None) -> None:
        self._then()


class Stage(IntEnum):
    """How far an answer has come."""

    ASKED = 0
    BEGUN = 1  # its first byte is here
    BODY = 2  # its headers are complete
    COMPLETE = 3


ASKED, BEGUN, BODY, COMPLETE = Stage  # to look one up in its class costs as much as a call


class Answer:
    """One answer as it arrives. Header names are in lower case, in the order in which they came."""

    __slots__ = (
        "chunks", "ends_with_connection", "error", "headers", "keep_alive", "num_buffered_bytes",
        "num_head_bytes", "sink", "stage", "status",
    )  # fmt: skip

    def __init__(self) -> None:
        self.stage = ASKED
        self.status = 0
        self.headers: Headers = []
        self.num_head_bytes = 0
        self.chunks: list[bytes] = []
        self.num_buffered_bytes = 0
        self.ends_with_connection = True  # until a header says where it ends
        self.keep_alive = False
        self.error: WorkerError | None = None
        self.sink: Sink | None = None

    def take(self) -> bytes:
        """What was buffered of its body."""
        data = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks = []
        self.num_buffered_bytes = 0
        return data


class Connection(asyncio.Protocol):
    """The socket and, from the first request on, the answer under way or read last."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, forget: Callable[[Connection], None]
    ) -> None:
        """`forget` is called when it can no longer be used."""
        self._loop = loop
        self._forget = forget
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: Answer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._patience = Deadline(loop, self._time_is_up)
        self._reading_paused = False
        self._spoilt = False  # it said something unasked: not to be trusted with another request
        self._closed = False
        self._between_chunks = False  # of a chunked body: the parser waits for the next one's size
        self._idle_since_s = loop.time()

    # -- what an exchange does -------------------------------------------------------------------

    @property
    def answer(self) -> Answer:
        assert self._answer is not None, "nothing was asked yet"
        return self._answer

    async def start(self, message: Sequence[bytes], timeout_s: float) -> Answer:
        """Sends a request and waits for the headers of the answer, `timeout_s` for all of them.

        Raises StaleConnection, WorkerDied, WorkerTimeout, WorkerProtocolError.
        """
        is_first = self._answer is None
        self._answer = answer = Answer()
        if self._closed:
            answer.error = _died()
        else:
            assert self._transport is not None
            self._transport.writelines(message)
        due_s = self._loop.time() + timeout_s
        try:
            while answer.stage < BODY and answer.error is None:
                await self._wait(due_s)
        except TimeoutError:
            raise WorkerTimeout(f"a worker did not answer within {timeout_s:g} s") from None
        if answer.stage < BODY and answer.error is not None:
            if not is_first and answer.stage is ASKED:
                raise StaleConnection(answer.error.message)
            raise answer.error
        return answer

    async def read(self, timeout_s: float) -> bytes:
        answer = self.answer
        while not answer.chunks and answer.stage < COMPLETE:
            if answer.error is not None:
                raise answer.error
            await self._wait(self._loop.time() + timeout_s)
        data = answer.take()
        self.read_on(True)
        return data

    def pipe(self, sink: Sink) -> None:
        """What is here already goes to `sink` before this returns."""
        self.answer.sink = sink
        self.read_on(True)
        self._changed()

    def read_on(self, on: bool) -> None:
        """Whether more may come from the worker."""
        if on is self._reading_paused and self._transport is not None and not self._closed:
            self._reading_paused = not on
            if on:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def linger(self, seconds: float, then: Callable[[Connection], None]) -> None:
        """Drops what is still to come of the body; `then` is called at its end, or after `seconds`,
        when the connection is closed."""

        def over() -> None:
            self._patience.off()
            then(self)

        self._patience.within(seconds)
        self.pipe(_Rest(over))

    def reusable(self) -> bool:
        answer = self._answer
        return (
            answer is not None
            and answer.stage is COMPLETE
            and not answer.chunks
            and answer.keep_alive
            and not self._spoilt
            and self._transport is not None
            and not self._transport.get_write_buffer_size()
            and self.is_fresh()
        )

    def is_fresh(self) -> bool:
        """Whether it may be used again, of one that was reusable and has been idle since."""
        return not self._closed and self._loop.time() - self._idle_since_s < IDLE_S

    def abort(self) -> None:
        self._closed = True
        self._patience.close()
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self, due_s: float) -> None:
        """Until something happens. Raises TimeoutError at `due_s`, by the loop's clock."""
        self._waiter = waiter = self._loop.create_future()
        self._patience.at(due_s)
        try:
            await waiter
        finally:
            self._patience.off()
            self._waiter = None

    def _time_is_up(self) -> None:
        if self._waiter is None:
            self.abort()
        elif not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def _changed(self) -> None:
        """Tells whoever waits for the answer, or takes it."""
        answer = self._answer
        if answer is None:
            return
        if answer.sink is None:
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            return
        if answer.chunks:
            answer.sink.received(answer.take())
        if answer.sink is not None and (answer.stage is COMPLETE or answer.error is not None):
            sink, answer.sink = answer.sink, None
            sink.ended(None if answer.stage is COMPLETE else answer.error)

    def _fail(self, error: WorkerError) -> None:
        answer = self._answer
        if answer is not None and answer.error is None and answer.stage < COMPLETE:
            answer.error = error
        self._changed()

    # -- what the socket does --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if self._between_chunks and answer is not None and answer.sink is not None:
            start = data.find(b"\r\n", 0, 6) + 2
            size = _CHUNK_SIZES.get(data[:start])
            if size is not None and start + size + 2 == len(data) and data.endswith(b"\r\n"):
                answer.sink.received(data[start:-2], data)  # as nearly always: one whole chunk
                return
        if answer is None or answer.stage is COMPLETE:  # bytes that nobody asked for
            self._forget(self)
            self.abort()
            return
        if answer.stage is ASKED and self._read_plain(answer, data):
            return  # as nearly always, where an answer is no stream
        if answer.stage < BODY:
            answer.stage = BEGUN
            answer.num_head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._break_off(f"a worker's answer is not HTTP ({error})")
        else:
            sink = answer.sink
            if sink is not None and answer.stage is BODY:
                chunks, answer.chunks = answer.chunks, []
                if chunks:
                    sink.received(chunks[0] if len(chunks) == 1 else b"".join(chunks))
            elif answer.stage < BODY and answer.num_head_bytes > MAX_HEADER_BYTES:
                self._break_off("a worker's headers are too long")
            else:
                self._changed()

    def _read_plain(self, answer: Answer, data: bytes) -> bool:
        """Whether it was a whole answer of the usual form: then the parser has no part in it."""
        plain = read_response(data)
        if plain is None:
            return False
        answer.status, answer.headers, body = plain
        answer.ends_with_connection = False
        answer.stage = BODY
        if body:
            self.on_body(body)
        self._completes(answer, keep_alive=True)
        self._changed()
        return True

    def _break_off(self, why: str) -> None:
        self._spoilt = True
        self._fail(WorkerProtocolError(why))
        self.abort()

    def eof_received(self) -> bool:
        answer = self._answer
        if answer is not None and answer.stage is BODY and answer.ends_with_connection:
            answer.stage = COMPLETE
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._forget(self)
        self._fail(_died())
        self._patience.close()

    # -- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._answer is None or self._answer.stage is COMPLETE:  # nobody asked for it
            self._spoilt = True

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        if answer is not None and not self._spoilt and answer.stage < BODY:  # no trailer
            name = name.lower()
            answer.headers.append((name, value))
            if name == b"content-length" or name == b"transfer-encoding":
                answer.ends_with_connection = False

    def on_headers_complete(self) -> None:
        if self._spoilt:
            return
        answer = self.answer
        answer.status = self._parser.get_status_code()
        if 100 <= answer.status < 200:  # 100 Continue and its kind: the answer is still to come
            answer.headers = []
            answer.ends_with_connection = True
            return
        answer.stage = BODY

    def on_chunk_header(self) -> None:
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        self._between_chunks = True

    def on_body(self, body: bytes) -> None:
        answer = self._answer
        if self._spoilt or answer is None:
            return
        answer.chunks.append(body)
        if answer.sink is None:
            answer.num_buffered_bytes += len(body)
            if answer.num_buffered_bytes > HIGH_WATER_BYTES:
                self.read_on(False)

    def on_message_complete(self) -> None:
        answer = self.answer
        if self._spoilt or answer.stage < BODY:
            return
        self._between_chunks = False
        self._completes(answer, keep_alive=self._parser.should_keep_alive())

    def _completes(self, answer: Answer, *, keep_alive: bool) -> None:
        answer.stage = COMPLETE
        answer.keep_alive = keep_alive
        self._idle_since_s = self._loop.time()


def _died() -> WorkerDied:
    return WorkerDied("a worker closed its connection before its answer was complete")
