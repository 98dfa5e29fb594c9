"""`smooth`: pieces at their times, errors after the text, and the request closed however it ends.

Time is moved by hand; nothing here waits for a clock.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from paceline_client import Hint, IncompleteStreamError, PacerOptions, smooth
from paceline_client.cutting import MAX_PIECES
from paceline_client.stream import MAX_WAITING, Arrived


class HandClock:
    """A clock that moves when it is told to, and calls back then."""

    def __init__(self) -> None:
        self._now_ms = 0.0
        self._due: list[tuple[float, int, _Timer]] = []
        self._count = 0

    def now_ms(self) -> float:
        return self._now_ms

    def call_at(self, due_ms: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)
        self._count += 1
        heapq.heappush(self._due, (due_ms, self._count, timer))
        return timer

    async def advance(self, by_ms: float) -> None:
        await settle()
        until_ms = self._now_ms + by_ms
        while self._due and self._due[0][0] <= until_ms:
            self._now_ms, _, timer = heapq.heappop(self._due)
            timer.fire()
            await settle()
        self._now_ms = until_ms
        await settle()


class _Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()


async def settle() -> None:
    """Lets every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Source:
    """A stream that is fed by hand, and knows whether it was closed."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = 0
        self.num_read = 0

    def send(self, *items: Any) -> None:
        for item in items:
            self._items.put_nowait(item)

    def end(self, error: BaseException | None = None) -> None:
        self._items.put_nowait(error or StopAsyncIteration())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        item = await self._items.get()
        if isinstance(item, BaseException):
            raise item
        self.num_read += 1
        return item

    async def close(self) -> None:
        self.closed += 1


def delta(text: str, tokens: int = 1, *, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"choices": [{**choice, "token_ids": [0] * tokens}]}


def text_of(chunks: list[Any]) -> str:
    return "".join(c["choices"][0]["delta"]["content"] for c in chunks)


class Reading:
    """A task that reads a smoothed stream to its end, and when each chunk came."""

    def __init__(self, stream: Any, clock: HandClock) -> None:
        self._stream, self._clock = stream, clock
        self.chunks: list[Any] = []
        self.times_ms: list[float] = []
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for chunk in self._stream:
            self.chunks.append(chunk)
            self.times_ms.append(self._clock.now_ms())


async def test_the_first_token_is_out_at_once_and_bursts_are_spread() -> None:
    clock, source = HandClock(), Source()
    async with smooth(source, clock=clock) as stream:
        reading = Reading(stream, clock)
        source.send(delta("One"))
        await settle()
        assert (text_of(reading.chunks), reading.times_ms) == ("One", [0.0])
        await clock.advance(45)
        source.send(delta(" two three four", 3))
        await clock.advance(44)
        assert reading.times_ms[1] == 45.0
        assert len(reading.chunks) >= 3
        source.send(delta(".", finish="stop"))
        source.end()
        await clock.advance(150)
        await reading.task
    assert text_of(reading.chunks) == "One two three four."
    assert source.closed == 1


async def test_an_error_comes_after_the_text() -> None:
    clock, source = HandClock(), Source()
    async with smooth(source, clock=clock) as stream:
        reading = Reading(stream, clock)
        source.send(delta("x"), delta(" one two three", 3))
        source.end(ConnectionResetError("cut"))
        await clock.advance(150)
        with pytest.raises(ConnectionResetError, match="cut"):
            await reading.task
    assert text_of(reading.chunks) == "x one two three"
    assert source.closed == 1


async def test_an_end_without_a_finish_is_an_error_after_the_text() -> None:
    clock, source = HandClock(), Source()
    async with smooth(source, clock=clock) as stream:
        reading = Reading(stream, clock)
        source.send(delta("half an ans", 3))
        source.end()
        await clock.advance(150)
        with pytest.raises(IncompleteStreamError):
            await reading.task
    assert text_of(reading.chunks) == "half an ans"


async def test_leaving_early_closes_the_request_while_the_source_is_silent() -> None:
    source = Source()
    source.send(delta("first"))
    async with smooth(source) as stream:
        async for _ in stream:
            break
    assert source.closed == 1


async def test_an_error_of_the_consumer_closes_the_request() -> None:
    source = Source()
    source.send(delta("first"))

    async def consume() -> None:
        async with smooth(source) as stream:
            async for _ in stream:
                raise KeyError

    with pytest.raises(KeyError):
        await consume()
    assert source.closed == 1


async def test_cancelling_the_consumer_closes_the_request() -> None:
    source = Source()

    async def consume() -> None:
        async with smooth(source) as stream:
            async for _ in stream:
                pass

    task = asyncio.create_task(consume())
    source.send(delta("first"))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.closed == 1


async def test_abort_wakes_the_reader_and_gives_back_what_was_not_shown() -> None:
    clock, source = HandClock(), Source()
    async with smooth(source, clock=clock) as stream:
        reading = Reading(stream, clock)
        source.send(delta("x"), delta(" one two three", 3))
        await settle()
        shown = text_of(reading.chunks)
        unshown = await stream.abort()
        assert await stream.abort() == []
        await reading.task
        assert shown + text_of(unshown) == "x one two three"
        source.send(delta("more"))
        await clock.advance(1000)
    assert text_of(reading.chunks) == shown
    assert source.closed == 1


async def test_abort_while_draining() -> None:
    clock, source = HandClock(), Source()
    async with smooth(source, clock=clock) as stream:
        reading = Reading(stream, clock)
        source.send(delta("x"), delta(" a b c d e f", 6, finish="stop"))
        source.end()
        await clock.advance(20)
        num_shown = len(reading.chunks)
        await stream.abort()
        await reading.task
        await clock.advance(1000)
    assert 0 < num_shown == len(reading.chunks) < 7


async def test_flush_gives_all_that_waits() -> None:
    clock, source = HandClock(), Source()
    async with smooth(source, clock=clock) as stream:
        reading = Reading(stream, clock)
        source.send(delta("x"), delta(" one two three", 3))
        await settle()
        stream.flush()
        await settle()
        assert text_of(reading.chunks) == "x one two three"


async def test_arrivals_are_told_of_at_once_and_whole() -> None:
    source, arrived = Source(), []
    sent = [delta("x"), delta(" one two three", 3)]
    async with smooth(source, on_arrival=arrived.append, clock=HandClock()):
        source.send(*sent)
        await settle()
    assert [id(one) for one in arrived] == [id(one) for one in sent]


async def test_hints_are_taken_and_not_passed_on() -> None:
    source = Source()
    chunk = delta("x", finish="stop")
    source.send(Arrived(chunk, Hint(num_tokens=1, next_ms=45)))
    source.end()
    async with smooth(source) as stream:
        assert [one async for one in stream] == [chunk]


async def test_a_generator_is_closed() -> None:
    closed = asyncio.Event()

    async def words() -> AsyncIterator[str]:
        try:
            yield "Hello"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with smooth(words()) as stream:
        async for _ in stream:
            break
    assert closed.is_set()


async def test_the_source_waits_for_a_consumer_that_is_far_behind() -> None:
    source = Source()
    async with smooth(source, "off", clock=HandClock()) as stream:
        source.send(*(delta("x") for _ in range(MAX_WAITING + 500)))
        for _ in range(MAX_WAITING // 10):
            await settle()
        assert source.num_read == MAX_WAITING + 1
        await anext(aiter(stream))
        await settle()
        assert source.num_read > MAX_WAITING + 1


async def test_it_is_used_as_a_context() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await anext(aiter(smooth(Source())))


def test_a_stream_that_blocks_is_refused_with_what_would_do() -> None:
    blocking: Any = iter(["word "])
    with pytest.raises(TypeError, match="such as AsyncOpenAI's, not list_iterator"):
        smooth(blocking)


def test_an_unknown_unit_is_refused() -> None:
    wrong: Any = "letter"
    with pytest.raises(ValueError, match="no unit 'letter'; there are grapheme, token, word"):
        PacerOptions(unit=wrong)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ValueError, match="no preset 'slow'; there are realtime"):
        smooth(Source(), "slow")


# -- sources that do not behave ----------------------------------------------------------------


def finishing(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}


async def test_a_source_that_never_ends_after_its_finish_is_waited_for_no_longer_than_a_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paceline_client.stream.GRACE_S", 0.05)
    source = Source()
    source.send(finishing("all"))
    async with asyncio.timeout(5), smooth(source, "off") as chunks:
        texts = [chunk["choices"][0]["delta"].get("content", "") async for chunk in chunks]
    assert "".join(texts) == "all"
    assert source.closed == 1


async def test_no_grace_begins_before_every_choice_that_was_asked_for_has_its_finish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paceline_client.stream.GRACE_S", 0)
    source = Source()
    second = {"choices": [{"index": 1, "delta": {"content": "two"}, "finish_reason": "stop"}]}
    async with asyncio.timeout(5), smooth(source, "off", num_choices=2) as chunks:
        source.send(finishing("one"))
        assert text_of([await anext(chunks)]) == "one"
        await settle()
        source.send(second)
        source.end()
        assert [chunk async for chunk in chunks] == [second]


async def test_a_source_whose_own_task_was_cancelled_is_an_error_and_no_end() -> None:
    source = Source()
    source.send("half an ans")
    source.end(asyncio.CancelledError())
    with pytest.raises(IncompleteStreamError, match="cancelled"):
        async with smooth(source, "off") as chunks:
            assert [chunk async for chunk in chunks] == ["half an ans"]


async def test_a_close_that_is_cancelled_is_done_all_the_same() -> None:
    class Slow(Source):
        async def close(self) -> None:
            await asyncio.sleep(0.02)
            await super().close()

    source = Slow()
    async with smooth(source) as chunks:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(chunks.aclose(), 0.001)
        await chunks.aclose()
    assert source.closed == 1


async def test_many_items_at_once_leave_the_first_its_turn() -> None:
    shown = asyncio.Event()
    read_before_first = 0

    async def flood() -> AsyncIterator[str]:
        nonlocal read_before_first
        for _ in range(1000):
            read_before_first += not shown.is_set()
            yield "word "

    async with smooth(flood()) as chunks:
        async for _ in chunks:
            shown.set()
            break
    assert read_before_first <= 3


async def test_one_huge_delta_comes_out_in_a_bounded_number_of_pieces() -> None:
    source = Source()
    source.send("x" * 100_000)
    source.end()
    async with smooth(source) as chunks:
        pieces = [chunk async for chunk in chunks]
    assert "".join(pieces) == "x" * 100_000
    assert len(pieces) <= MAX_PIECES
