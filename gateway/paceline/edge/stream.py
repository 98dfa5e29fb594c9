"""A worker's stream of events → the client, as it comes.

Whole events go out, as many as one read brings, in one write. The status line waits for the
worker's first event: vLLM answers 200 and then an error event where it validates late, and such an
error becomes its true status. After that 200 is committed: a worker that fails from then on ends
the stream with an error event, without a finish reason and without an end mark.

From the first event on no task wakes for an event: the worker's connection hands each read to
`Stream.received`, which writes to the client's. The request's task waits for the end of it all.
A client that reads too slowly stops the reading from its worker until it has caught up.

The last chunk of a stream carries its usage and what was accepted. For a client that did not ask
for usage it is read and taken out, and what vLLM then moves there is moved back (`UsageRemover`).
"""

from __future__ import annotations

import asyncio

from paceline.core.chunks import DONE, Kind, UsageRemover, json_or_none
from paceline.core.dialects import Dialect
from paceline.core.hints import Hints
from paceline.edge.deadline import Deadline
from paceline.edge.relay import Answer, check_status
from paceline.edge.wire import JSON, Headers
from paceline.errors import (
    PacelineError,
    ShuttingDown,
    WorkerDied,
    WorkerError,
    WorkerProtocolError,
    WorkerTimeout,
)
from paceline_client.sse import SseError, SseSplitter, event_data

HELD_BYTES = 2**20
"""Comments before the first event beyond which the status is not held any longer."""
HOLD_S = 0.1
"""How long a chunk that is held back for the one behind it waits for that."""
LOOKS = 8
"""A stream's silence is noticed when this many looks in a row found nothing, so an eighth late at
most; a deadline that every event puts off would cost a tenth of the event."""
KEEP_ALIVE_S = 15.0
"""Between comments of ours to a client whose stream has begun and has no event yet: proxies cut
what is silent for a minute."""
KEEP_ALIVE = b": waiting for the worker\n\n"


class Stream:
    """A stream of server-sent events, and the sink of its bytes."""

    def __init__(
        self, answer: Answer, dialect: Dialect, *, remove_usage: bool, hints: Hints | None
    ) -> None:
        self._answer = answer
        self._client = answer.client
        self._dialect = dialect
        self._splitter = SseSplitter()
        self._usage_remover = UsageRemover() if remove_usage else None
        self._hints = hints
        self._straight = False  # between two events, with nothing to do but pass the next
        self._passes = dialect.passes
        self._done = False
        self._held: list[bytes] = []  # until the status line has gone out
        self._rejection: tuple[int, bytes] | None = None  # an error in the first event's place
        loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = loop.create_future()
        self._silence_s = answer.timeouts.between_bytes_s
        self._silence = Deadline(loop, self._is_it_silent)
        self._quiet_looks = 0  # since the last read
        self._pause = Deadline(loop, self._paused)  # what waits for it depends on how far we are

    async def begin(self) -> int:
        """The status that its first event stands for, once that is here; 200 if it is late.

        Raises WorkerError.
        """
        data = await self._first_event()
        self._rejection = self._dialect.rejection(data)
        if self._rejection is None:
            return 200
        status, _ = self._rejection
        check_status(status)
        return status

    async def relay(self) -> None:
        """The rest of it. A worker's failure from here on is told to the client in the stream."""
        if self._rejection is not None:
            status, body = self._rejection
            self._client.answer(status, self._json_headers(), body)
            return
        self._client.start(200, self._answer.headers())
        try:
            self._begin(self._held)
            await self._over
        except WorkerError as error:
            self._end_badly(error)
        except asyncio.CancelledError:
            if not (self._client.gone or self._client.answered):
                self._end_badly(ShuttingDown("the gateway is shutting down"))
            raise
        finally:
            self._client.on_writable = None
            self._silence.close()
            self._pause.close()

    # -- before the status line ------------------------------------------------------------------

    async def _first_event(self) -> bytes | None:
        """The data of the first event. It is kept with the blocks before it, comments mostly.

        None if the worker leaves us waiting for longer than the status may be held.
        """
        now_s, timeouts = self._answer.now_s, self._answer.timeouts
        deadline_s = now_s() + timeouts.hold_status_s
        num_held_bytes = 0
        while True:
            left_s = deadline_s - now_s()
            if left_s <= 0 or num_held_bytes > HELD_BYTES:
                return None
            try:
                data = await self._answer.read(left_s)
            except TimeoutError:
                return None
            num_held_bytes += len(data)
            blocks = self._split(data) if data else self._unterminated()
            self._held += blocks
            first = self._dialect.first_event(blocks)
            if first is not None:
                self._answer.record.first_event_s = self._answer.record.answered_s = now_s()
                return first
            if not data:
                raise WorkerDied("a worker ended its stream before the first event")

    def _json_headers(self) -> Headers:
        kept = [(name, value) for name, value in self._answer.headers() if name != b"content-type"]
        return [JSON, *kept]

    # -- after it --------------------------------------------------------------------------------

    def _begin(self, held: list[bytes]) -> None:
        """Raises WorkerProtocolError."""
        if self._answer.record.first_event_s is None:
            self._silence_s = max(self._silence_s, self._answer.timeouts.first_byte_s)
            self._pause.within(KEEP_ALIVE_S)
        self._listen_for_silence()
        self._client.on_writable = self._reads_again
        self._forward(held)
        if not held:
            self._client.write(b"")
        self._answer.exchange.pipe(self)

    def received(self, data: bytes, chunk: bytes | None = None) -> None:
        if self._straight and self._passes(data):
            self._client.write(data, chunk)
        elif not self._done:  # what comes behind the end is not the client's
            self._look_into(data)
        self._quiet_looks = 0
        if not self._client.writable:
            self._silence.off()
            self._answer.exchange.read_on(False)

    def _look_into(self, data: bytes) -> None:
        try:
            self._forward(self._split(self._answer.plain(data)))
        except WorkerError as error:
            self._ends(error)
        self._straight = (
            self._answer.is_plain
            and self._answer.kept is None
            and self._answer.record.first_event_s is not None
            and self._hints is None
            and self._splitter.is_empty
            and not (self._holding or self._done)
        )

    def ended(self, error: WorkerError | None) -> None:
        try:
            if not self._done:
                if error is not None:
                    raise error
                self._answer.check_complete()
                self._end_without_done()
        except WorkerError as why:
            self._ends(why)
        else:
            self._ends(None)

    def _ends(self, error: WorkerError | None) -> None:
        if self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    def _reads_again(self) -> None:
        self._listen_for_silence()
        self._answer.exchange.read_on(True)

    def _listen_for_silence(self) -> None:
        self._quiet_looks = 0
        self._silence.within(self._silence_s / LOOKS)

    def _is_it_silent(self) -> None:
        self._quiet_looks += 1
        if self._quiet_looks > LOOKS:
            self._ends(WorkerTimeout(f"a worker sent nothing for {self._silence_s:g} s"))
        else:
            self._silence.within(self._silence_s / LOOKS)

    def _paused(self) -> None:
        """Nothing came for a while: for what we wait for now, that was long enough."""
        if self._holding:
            self._client.write(self._released())
        elif self._answer.record.first_event_s is None:
            self._client.write(KEEP_ALIVE)
            self._pause.within(KEEP_ALIVE_S)

    def _look_for_first_event(self, blocks: list[bytes]) -> None:
        if self._dialect.first_event(blocks) is None:
            return
        self._answer.record.first_event_s = self._answer.now_s()
        self._silence_s = self._answer.timeouts.between_bytes_s
        self._listen_for_silence()
        self._pause.off()

    def _forward(self, blocks: list[bytes]) -> None:
        if self._answer.record.first_event_s is None:
            self._look_for_first_event(blocks)
        passed: list[bytes] = []
        for block in blocks:
            passed.append(self._passed(block))
            if self._done:  # nothing may follow it
                break
        data = b"".join(passed)
        if self._done:
            self._answer.record.ended_s = self._answer.now_s()
            self._client.finish(data)
            self._answer.exchange.lets_end()
            self._ends(None)
            return
        if data:
            self._client.write(data)
        if self._holding:
            self._pause.within(HOLD_S)

    def _passed(self, block: bytes) -> bytes:
        """What the client gets for one block, now; a finishing one may be held back."""
        kind, event = self._dialect.read(block)
        if kind is Kind.DONE:
            self._done = True
        if event and kind is not Kind.FINISH:
            self._answer.record.learn(event)
        remover = self._usage_remover
        if remover is not None and kind is Kind.USAGE:
            return remover.usage(event)
        if self._hints is not None:
            block = self._hints.hinted(block, self._answer.now_s())
        if remover is None:
            return block
        if kind is Kind.FINISH:
            return remover.finishing(block)
        return remover.release() + block

    def _end_without_done(self) -> None:
        """The body ended without an end mark: complete if the worker had said why it stopped."""
        self._forward(self._unterminated())
        if self._done:
            return
        if not self._dialect.complete:
            raise WorkerDied("a worker ended its stream before the answer was complete")
        self._client.finish(self._released())

    def _unterminated(self) -> list[bytes]:
        """An event whole but for its blank line, at the end of a body; half of one is nothing."""
        rest, self._splitter = self._splitter.rest, SseSplitter()
        data = event_data(rest)
        is_whole = data == DONE or (data is not None and json_or_none(data) is not None)
        return [rest.rstrip(b"\r\n") + b"\n\n"] if is_whole else []

    def _end_badly(self, error: PacelineError) -> None:
        self._answer.record.code, self._answer.record.failure = error.status, error
        self._client.finish(self._released() + self._dialect.error_event(error))

    @property
    def _holding(self) -> bool:
        return self._usage_remover is not None and self._usage_remover.holding

    def _released(self) -> bytes:
        return self._usage_remover.release() if self._usage_remover is not None else b""

    def _split(self, data: bytes) -> list[bytes]:
        try:
            return self._splitter.feed(data)
        except SseError as error:
            raise WorkerProtocolError(f"a worker's stream cannot be read: {error}") from error
