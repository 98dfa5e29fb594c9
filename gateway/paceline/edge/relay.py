"""A worker's answer → the client, byte for byte, and what it tells us on the way.

What answers of all kinds have in common, and those that are no streams; `stream.py` has those.
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.edge.client import Client
from paceline.edge.encoding import Inflater, TooLong
from paceline.edge.teacher import Kept
from paceline.edge.telemetry import RequestRecord
from paceline.edge.upstream import Exchange
from paceline.edge.wire import Headers
from paceline.errors import WorkerDied, WorkerProtocolError, WorkerTimeout
from paceline.settings import Timeouts

WHOLE_BYTES = 8 * 2**20
"""An answer up to this size is read to its end before a byte of it goes out, so that a worker's
death within it is a clean 502; a longer one is passed on as it comes."""


class Answer:
    """One exchange on its way to one client."""

    def __init__(
        self,
        exchange: Exchange,
        client: Client,
        record: RequestRecord,
        *,
        headers: Callable[[], Headers],
        timeouts: Timeouts,
        now_s: Callable[[], float],
        kept: Kept | None = None,
    ) -> None:
        """`headers` are the client's, asked for when the status line goes out; `kept` gets what the
        worker wrote, made plain.

        Raises WorkerProtocolError if the worker encodes in a way that we did not offer to read.
        """
        self.exchange = exchange
        self.client = client
        self.record = record
        self.headers = headers
        self.timeouts = timeouts
        self.now_s = now_s
        self.kept = kept
        encoding = exchange.named.get(b"content-encoding")
        try:
            self._inflater = None if encoding is None else Inflater(encoding)
        except LookupError:
            raise WorkerProtocolError("a worker's answer has an unknown encoding") from None

    @property
    def is_plain(self) -> bool:
        return self._inflater is None

    async def read(self, timeout_s: float) -> bytes:
        """The next plain bytes; empty at the end. Raises TimeoutError, WorkerError."""
        while data := await self.exchange.read(timeout_s):
            if plain := self.plain(data):
                return plain
        self.check_complete()
        return b""

    def whole(self) -> bytes | None:
        """All of it, if it came with its headers and is not encoded, as most short answers."""
        if self._inflater is not None or self.kept is not None:
            return None
        return self.exchange.whole()

    def plain(self, data: bytes) -> bytes:
        """What the worker wrote, whatever it did to it on the way. Raises WorkerProtocolError."""
        if self._inflater is not None:
            try:
                data = self._inflater.feed(data)
            except (ValueError, TooLong):
                raise WorkerProtocolError("a worker's answer is not encoded as it says") from None
        if self.kept is not None:
            self.kept.add(data)
        return data

    def check_complete(self) -> None:
        """Raises WorkerDied if an encoded answer, ended here, would be cut short."""
        if self._inflater is not None and not self._inflater.complete:
            raise WorkerDied("a worker's compressed answer is cut short")


def check_status(status: int) -> None:
    """Raises WorkerProtocolError for answers that must not reach a client as they are."""
    if status in (401, 403, 407):
        raise WorkerProtocolError("a worker refused the gateway's own key")
    if not (200 <= status < 300 or 400 <= status < 600):
        raise WorkerProtocolError(f"a worker answered with status {status}")


class Whole:
    """An answer that is not a stream."""

    def __init__(self, answer: Answer, *, learns: bool) -> None:
        """`learns` from what it says of its usage."""
        self._answer = answer
        self._learns = learns

    async def begin(self) -> int:
        """Its status."""
        self._answer.record.answered_s = self._answer.now_s()
        return self._answer.exchange.status

    async def relay(self) -> None:
        """Raises WorkerError, with nothing gone out if the answer is not long."""
        answer, client, status = self._answer, self._answer.client, self._answer.exchange.status
        body = answer.whole()
        if body is None:
            body = await _read_whole(answer)
        if body is None:
            client.finish()
            return
        client.answer(status, answer.headers(), body)
        if status == 200 and self._learns:
            answer.record.learn_later(body)


async def _read_whole(answer: Answer) -> bytes | None:
    """The body; or None once it proved long and was passed on in pieces instead."""
    client = answer.client
    pieces: list[bytes] = []
    size = 0
    between_s = answer.timeouts.between_bytes_s
    try:
        while data := await answer.read(between_s):
            if client.started:
                client.write(data)
                await client.drained()
                continue
            pieces.append(data)
            size += len(data)
            if size > WHOLE_BYTES:
                client.start(answer.exchange.status, answer.headers())
                client.write(b"".join(pieces))
    except TimeoutError:
        raise WorkerTimeout(f"a worker sent nothing for {between_s:g} s") from None
    return None if client.started else b"".join(pieces)
