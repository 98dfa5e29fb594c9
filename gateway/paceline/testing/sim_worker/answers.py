"""One request's answer, from its passes to the client: streamed or whole, with the faults in it.

A client that leaves is noticed by reading from it all along (uvicorn does not cancel a raw ASGI
application); leaving the block that `EnginePacer.serving` opens then frees its sequences.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from starlette.types import Receive, Send

from paceline.sim.generation import Generation, Pass
from paceline.testing.sim_worker.faults import Fault, FaultKind, RequestFaults
from paceline.testing.sim_worker.pacing import EnginePacer, Mailbox
from paceline.testing.sim_worker.progress import Progress
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.sending import EventStream, send_json
from paceline.testing.sim_worker.writers import AnswerWriter, Ending, Piece

KEEP_ALIVE = b": keep-alive\n\n"
FLUSH_S = 0.02  # for what was written last to reach the socket before it is cut


class CutOff(Exception):
    """The answer ends here, without an end: a fault says so, or its client has left."""


class WentDown(CutOff):
    """The worker is gone, and its connections with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request that was admitted, and the ways to its client."""

    request: GenerateRequest
    writer: AnswerWriter
    generations: Sequence[Generation]
    faults: RequestFaults
    reports_spec: bool
    reports_times: bool
    receive: Receive
    send: Send
    abort: Callable[[], object]  # cut the connection
    exit_process: Callable[[], object]

    def ending(self, mailbox: Mailbox) -> Ending:
        """What is known at the end; of drafts and times nothing when there are several sequences,
        since they would be those of one."""
        alone = len(self.generations) == 1
        return Ending(
            completion_tokens=sum(generation.emitted for generation in self.generations),
            spec=self.generations[0].spec if alone and self.reports_spec else None,
            times=mailbox.times if alone and self.reports_times else None,
        )


async def answer(exchange: Exchange, pacer: EnginePacer) -> None:
    """Serve the request to its end, or to where a fault or the client ends it.

    Raises Refusal for an answer that is to be an error and has not begun.
    """
    mailbox = Mailbox()
    respond = _stream if exchange.request.stream else _whole
    try:
        with pacer.serving(exchange.generations, mailbox):
            async with _watching(exchange.receive, mailbox):
                await respond(exchange, mailbox)
    except WentDown:
        exchange.abort()
    except CutOff:
        pass


async def _stream(exchange: Exchange, mailbox: Mailbox) -> None:
    writer = exchange.writer
    stream = EventStream(exchange.send, zipped=exchange.faults.gzip)
    await stream.begin()
    if preamble := writer.preamble():
        await stream.write(preamble)
    try:
        await _write_pieces(exchange, mailbox, stream)
        last: bytes | None = writer.closing(exchange.ending(mailbox))
    except Refusal as refusal:
        last = writer.failure(refusal)
    if last is None:
        await asyncio.sleep(FLUSH_S)
        exchange.abort()
        raise CutOff("an error for which the dialect has no event")
    await stream.write(last)
    await stream.end()


async def _write_pieces(exchange: Exchange, mailbox: Mailbox, stream: EventStream) -> None:
    writer = exchange.writer

    async def comment() -> None:
        await stream.write(KEEP_ALIVE)

    async def half_an_event(piece: Piece) -> None:
        event = writer.piece(piece)
        await stream.write(event[: len(event) // 2])

    opening = writer.opening()
    async with aclosing(_pieces(exchange, mailbox, comment, half_an_event)) as batches:
        async for pieces in batches:
            if events := opening + b"".join(map(writer.piece, pieces)):
                await stream.write(events)
            opening = b""


async def _whole(exchange: Exchange, mailbox: Mailbox) -> None:
    async def nothing(piece: Piece | None = None) -> None:
        """There is no body yet that a comment or half an event could be part of."""

    async with aclosing(_pieces(exchange, mailbox, nothing, nothing)) as batches:
        pieces = [piece async for batch in batches for piece in batch]
    body = exchange.writer.whole(_joined(pieces), exchange.ending(mailbox))
    await send_json(exchange.send, 200, body, zipped=exchange.faults.gzip)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """One piece a choice, in the order of their indices."""
    whole: dict[int, Piece] = {}
    for piece in sorted(pieces, key=lambda piece: piece.index):
        before = whole.get(piece.index)
        whole[piece.index] = before.followed_by(piece) if before else piece
    return list(whole.values())


async def _pieces(
    exchange: Exchange,
    mailbox: Mailbox,
    comment: Callable[[], Awaitable[None]],
    half_an_event: Callable[[Piece], Awaitable[None]],
) -> AsyncGenerator[list[Piece], None]:
    """What to send, batch by batch, until all choices are finished.

    Raises Refusal where an error strikes, CutOff where the answer breaks off.
    """
    if exchange.request.late_refusal is not None:
        raise exchange.request.late_refusal
    fault = exchange.faults.striking
    progress = Progress(exchange.generations, limit=fault.at_token if fault else None)
    batch = _Batch(exchange.request.stream_interval)
    while not progress.finished:
        if fault is not None and progress.at_limit:
            if fault.mid_event:
                await half_an_event(progress.next_piece())
            await _strike(fault, exchange, mailbox)
        batch.add(await _take(mailbox, exchange.faults, comment))
        if passes := batch.take():
            yield progress.advance(passes)


class _Batch:
    """vLLM's `stream_interval`: the first and the last tokens at once, else so many together."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._passes: list[Pass] = []

    def add(self, passes: Sequence[Pass]) -> None:
        self._passes += passes

    def take(self) -> list[Pass]:
        """What may be sent."""
        tokens = sum(part.end - part.start for part in self._passes)
        edge = any(part.start == 0 or part.finished for part in self._passes)
        if not edge and tokens < self._interval:
            return []
        passes, self._passes = self._passes, []
        return passes


async def _take(
    mailbox: Mailbox, faults: RequestFaults, comment: Callable[[], Awaitable[None]]
) -> list[Pass]:
    """The next passes; none, and a comment sent, when they take longer than comments may."""
    every_s = faults.comments_every_s
    if every_s is None:
        passes = await mailbox.take()
    else:
        try:
            async with asyncio.timeout(every_s):
                passes = await mailbox.take()
        except TimeoutError:
            await comment()
            return []
    if passes and faults.merged_every_s is not None:
        await asyncio.sleep(faults.merged_every_s)
        passes += mailbox.drain()
    if not passes:
        raise CutOff("the client has left")
    return passes


async def _strike(fault: Fault, exchange: Exchange, mailbox: Mailbox) -> None:
    """Let the fault happen. Always raises."""
    match fault.kind:
        case FaultKind.ERROR_EVENT:
            raise fault.refusal()
        case FaultKind.HANG:
            for generation in exchange.generations:
                generation.held = True
            while await mailbox.take():
                pass
        case FaultKind.DIE:
            await asyncio.sleep(FLUSH_S)
            if fault.exit:
                exchange.exit_process()
            exchange.abort()
    raise CutOff(fault.kind)


@asynccontextmanager
async def _watching(receive: Receive, mailbox: Mailbox) -> AsyncIterator[None]:
    """Close the mailbox when the client disconnects."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        mailbox.close()

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
