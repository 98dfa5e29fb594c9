"""`smooth`: any asynchronous stream of chunks, paced.

    stream = await client.chat.completions.create(…, stream=True)      # the openai package's
    async with smooth(stream) as chunks:
        async for chunk in chunks: …

A task of its own reads the source, so that a slow reader of ours does not slow the request and the
pace is kept whatever the consumer awaits. Leaving the block, by any way, closes the request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from paceline_client.chunks import ChunkPacer
from paceline_client.errors import IncompleteStreamError
from paceline_client.options import PacerOptions, options_for
from paceline_client.pacer import Hint, PacerStats

MAX_WAITING = 4096
"""Pieces that may wait for a slow consumer; beyond, the source waits too."""

GRACE_S = 5.0
"""After every choice has its finish, usage and the end are waited for this long in all."""
TURN = 32
CLOSE_S = 1.0
TIMER_MS = 1.0  # what event loops' timers can tell apart

T = TypeVar("T")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, and being called back; the event loop's, or a test's."""

    def now_ms(self) -> float: ...

    def call_at(self, due_ms: float, callback: Callable[[], object]) -> Timer: ...


class LoopClock:
    """The running event loop's clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now_ms(self) -> float:
        return self._loop.time() * 1000

    def call_at(self, due_ms: float, callback: Callable[[], object]) -> Timer:
        return self._loop.call_at(due_ms / 1000, callback)


@dataclass(frozen=True, slots=True)
class Arrived(Generic[T]):
    """A chunk with the server's hint, from a source that can see hints."""

    chunk: T
    hint: Hint | None


def smooth(
    source: AsyncIterable[T],
    options: PacerOptions | str | None = None,
    *,
    on_arrival: Callable[[T], object] | None = None,
    num_choices: int = 1,
    clock: Clock | None = None,
) -> SmoothStream[T]:
    """`source` paced: chunks of `openai.AsyncStream`, mappings of the same shape, or strings.

    `options` may be the name of a preset: realtime, balanced, silky, off. `on_arrival` is called
    with every chunk as it arrives and unsplit, which is the place to dispatch tool calls without
    delay. `num_choices` is the request's `n`. Raises ValueError for an unknown preset,
    TypeError for a stream that blocks, such as `openai.OpenAI`'s.
    """
    if not isinstance(source, AsyncIterable):
        given = type(source).__name__
        raise TypeError(f"smooth takes an asynchronous stream, such as AsyncOpenAI's, not {given}")
    chosen = options_for(options)
    return SmoothStream(source, chosen, on_arrival=on_arrival, num_choices=num_choices, clock=clock)


class SmoothStream(Generic[T]):
    """What `smooth` gives: an asynchronous context, and inside it an iterator.

    An error of the source is raised after the text that arrived before it. A stream that ends
    before every choice has its finish raises IncompleteStreamError, after the text as well.
    """

    def __init__(
        self,
        source: AsyncIterable[T],
        options: PacerOptions,
        *,
        on_arrival: Callable[[T], object] | None = None,
        num_choices: int = 1,
        clock: Clock | None = None,
    ) -> None:
        self._source = source
        self._pacer = ChunkPacer(options, num_choices=num_choices)
        self._on_arrival = on_arrival
        self._given_clock = clock
        self._out: deque[T] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._ended = self._aborted = self._closed = False

    async def __aenter__(self) -> Self:
        self._clock: Clock = self._given_clock or LoopClock()
        self._reader = asyncio.create_task(self._read(), name="paceline smooth")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if self._reader is None:
            raise RuntimeError("use it as: async with smooth(stream) as chunks")
        while not (self._aborted or self._closed):
            self._out.extend(self._pacer.take(self._clock.now_ms()))
            if self._out:
                self._room.set()
                return self._out.popleft()
            due_ms = self._pacer.next_due_ms
            if due_ms is None and self._ended:
                break
            await self._wait(due_ms)
        await self.aclose()
        error, self._error = self._error, None
        if error is not None and not self._aborted:
            raise error
        raise StopAsyncIteration

    @property
    def stats(self) -> PacerStats:
        """What the pacer has done so far."""
        return self._pacer.stats

    def flush(self) -> None:
        """Gives out at once all that waits."""
        self._out.extend(self._pacer.flush(self._clock.now_ms()))
        self._wake.set()

    async def abort(self) -> list[T]:
        """Ends the iteration and closes the request; what had arrived and was not given out.

        A consumer that waits for the next chunk is woken. Calling it again does nothing.
        """
        unshown = [*self._out, *self._pacer.abort(self._clock.now_ms())]
        self._out.clear()
        self._aborted = True
        self._wake.set()
        await self.aclose()
        return unshown

    async def aclose(self) -> None:
        """Closes the request, within a second, and ends the reading task.

        It is done even if the caller is cancelled while it waits; a later call waits for it too.
        """
        if self._reader is None:
            return
        if self._closing is None:
            self._closed = self._ended = True
            self._closing = asyncio.create_task(self._close(), name="paceline close")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.wait([self._reader], timeout=CLOSE_S)
        close = _closing(self._source)
        if close is not None:
            with contextlib.suppress(Exception):  # it is over, and all it said was given out
                async with asyncio.timeout(CLOSE_S):
                    await close()
        self._wake.set()

    async def _read(self) -> None:
        try:
            num_read = 0
            async for item in self._items():
                self._arrived(item)
                num_read += 1
                if num_read % TURN == 1:  # the consumer's turn, where many items come at once
                    await asyncio.sleep(0)
                if len(self._out) + self._pacer.num_waiting > MAX_WAITING:
                    self._room.clear()
                    await self._room.wait()
            if self._pacer.incomplete:
                self._error = IncompleteStreamError("the stream ended before its finish")
        except Exception as error:
            self._error = error
        except asyncio.CancelledError:
            if self._closed:
                raise
            self._error = IncompleteStreamError("the source of the stream was cancelled")
        finally:
            self._ended = True
            self._pacer.finish(self._clock.now_ms())
            self._wake.set()

    async def _items(self) -> AsyncIterator[T]:
        """The source's items; once every choice has its finish, for GRACE_S more and no longer."""
        items = aiter(self._source)
        until_s: float | None = None
        while True:
            if not self._pacer.all_finished:
                until_s = None
            elif until_s is None:
                until_s = asyncio.get_running_loop().time() + GRACE_S
            try:
                async with asyncio.timeout_at(until_s) as grace:
                    item = await anext(items)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if grace.expired():
                    return
                raise
            yield item

    def _arrived(self, item: Any) -> None:
        hint = None
        if isinstance(item, Arrived):
            item, hint = item.chunk, item.hint
        self._pacer.push(item, self._clock.now_ms(), hint=hint)
        self._wake.set()
        if self._on_arrival is not None:
            self._on_arrival(item)

    async def _wait(self, due_ms: float | None) -> None:
        """Until something arrives, or `due_ms`."""
        self._wake.clear()
        timer = None
        if due_ms is not None:
            due_ms = max(due_ms, self._clock.now_ms() + TIMER_MS)
            timer = self._clock.call_at(due_ms, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()


def _closing(source: object) -> Callable[[], Awaitable[object]] | None:
    """How `source` is closed: `openai.AsyncStream` and generators have `aclose` or `close`."""
    for name in ("aclose", "close"):
        close = getattr(source, name, None)
        if callable(close):
            return close  # type: ignore[no-any-return]
    return None
