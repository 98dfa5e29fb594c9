"""How long each part of a request may take, and which connection it takes.

Every wait has its own bound; a connection that went stale while it was idle costs nobody an answer;
a client that leaves, or stands still, frees its worker, with bounded buffers meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from families import CHAT, FAMILIES
from harness import eventually, gateway, pool
from paceline.edge import connection, scrape, upstream
from paceline.settings import Timeouts
from paceline.testing.scripted import (
    END,
    End,
    Script,
    ScriptedWorker,
    chunk,
    delta,
    response,
    stream,
    stream_head,
)

ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'
OK = [response(ANSWER)]


# -- timeouts, by what is waited for -----------------------------------------------------------


@contextlib.contextmanager
def full_listener():
    """An address that accepts nothing: its backlog holds one connection, further ones wait."""
    with socket.socket() as listening, socket.socket() as first:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        first.connect(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_a_connection_that_is_not_made_in_time_is_503_and_asked_of_another():
    timeouts = Timeouts(connect_s=0.1, shutdown_s=1)
    with full_listener() as full:
        async with gateway(pool("p", full), timeouts=timeouts) as g:
            answer = await g.chat()
        async with ScriptedWorker(OK).running() as well:
            async with gateway(pool("p", full, well.url), timeouts=timeouts) as g:
                assert [(await g.chat()).status_code for _ in range(2)] == [200, 200]
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "worker_unavailable")
    assert answer.headers["retry-after"] == "1"


DRIP = [*[step for byte in b"HTTP/1.1 200 OK\r\nx: y" for step in (bytes([byte]), 0.05)], End.HANG]
WAITS: dict[str, Script] = {
    "silence": [End.HANG],
    "half a head": [b"HTTP/1.1 200 OK\r\nconte", End.HANG],
    "a head in drops": DRIP,
    "100 Continue": [*[b"HTTP/1.1 100 Continue\r\n\r\n", 0.05] * 30, End.HANG],
}


@pytest.mark.parametrize("wait", WAITS)
async def test_the_headers_of_an_answer_have_one_bound_however_they_come(wait: str):
    timeouts = Timeouts(first_byte_s=0.3, shutdown_s=1)
    async with ScriptedWorker(WAITS[wait]).running() as worker:
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g:
            async with asyncio.timeout(1.2):
                answer = await g.chat()
            assert (answer.status_code, answer.json()["error"]["code"]) == (504, "worker_timeout")
            await eventually(worker.seen[0].client_left.is_set)


async def test_a_whole_answer_may_pause_for_as_long_as_between_bytes_and_no_longer():
    head, body = response(ANSWER)[: -len(ANSWER)], ANSWER
    pausing = [head, 0.15, body[:9], 0.15, body[9:20], 0.15, body[20:]]
    timeouts = Timeouts(between_bytes_s=0.3, shutdown_s=1)
    worker = ScriptedWorker(pausing, [head, body[:9], End.HANG])
    async with worker.running(), gateway(pool("p", worker.url), timeouts=timeouts) as g:
        assert (await g.chat()).content == ANSWER
        answer = await g.chat()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "worker_timeout")


async def test_a_slow_stream_is_not_a_silent_one():
    timeouts = Timeouts(between_bytes_s=0.3, hold_status_s=0.1, shutdown_s=1)
    async with ScriptedWorker([]).running() as worker:
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g:
            for family in FAMILIES:
                at = len(family.whole) // 3
                thirds = family.whole[:at], family.whole[at : 2 * at], family.whole[2 * at :]
                steps = [step for third in thirds for step in (0.12, chunk(third))]
                worker.play([stream_head(), *steps, chunk(b"")])
                answer = await g.http.post(family.path, json=family.body)
                assert answer.content == family.seen_of(family.whole)


# -- connections that went stale ---------------------------------------------------------------


async def test_a_connection_closed_while_idle_costs_nobody_an_answer():
    """The sign may be there before the request is sent, or be the answer to it: FIN, or a reset."""
    closed: list[Script] = [[response(ANSWER), end] for end in (End.CLOSE, End.RESET)]
    after_next: list[Script] = [[end] for end in (End.CLOSE, End.RESET)]
    async with ScriptedWorker(OK).running() as worker, gateway(pool("p", worker.url)) as g:
        for script in closed:
            worker.play(script)
            for _ in range(4):
                assert (await g.chat()).content == ANSWER
        for script in after_next:
            worker.play(OK, script, OK)
            for _ in range(2):
                assert (await g.chat()).content == ANSWER
        metrics = await g.metrics()
    assert metrics['paceline_requests_total{code="200",model="m",pool="p",workload="chat"}'] == 12


async def test_a_write_that_fails_is_a_stale_connection_too():
    """A body larger than the socket takes, to a worker that resets without a look at it."""
    async with ScriptedWorker(OK).running() as worker, gateway(pool("p", worker.url)) as g:
        assert (await g.chat()).content == ANSWER
        worker.play([End.RESET], OK)
        worker.num_unread = 1
        answer = await g.chat("x" * 5_000_000)
        assert (answer.status_code, answer.content) == (200, ANSWER)


async def test_a_stale_connection_is_replaced_once_and_no_more():
    async with ScriptedWorker(OK).running() as worker, gateway(pool("p", worker.url)) as g:
        assert (await g.chat()).content == ANSWER
        worker.play([End.CLOSE])
        answer = await g.chat()
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "worker_died")
    assert len(worker.seen) == 3


async def test_what_a_worker_says_unasked_is_nobodys_answer():
    """A 408 as some servers say it before they close an idle connection, or worse."""
    evil = response(b'{"evil": true}')
    async with ScriptedWorker([response(ANSWER) + evil]).running() as worker:
        async with gateway(pool("p", worker.url)) as g:
            for _ in range(4):
                assert (await g.chat()).content == ANSWER
            worker.play([response(ANSWER), 0.05, evil])
            for _ in range(2):
                assert (await g.chat()).content == ANSWER
                await asyncio.sleep(0.1)
    assert len({seen.connection for seen in worker.seen}) == len(worker.seen)


async def test_a_request_is_over_with_its_stream_and_its_connection_a_little_later():
    """What it counted as load is gone when its client has the end mark; the worker has its tenth of
    a second to end the body, and the connection serves again."""
    body = [delta("x", finish="stop"), b"data: [DONE]\n\n"]
    begins = [stream_head(), *map(chunk, body)]
    ends_soon, goes_on = [*begins, 0.04, END], [*begins, *[chunk(b": more\n\n"), 0.03] * 100]
    worker = ScriptedWorker(ends_soon, stream(*body), goes_on, stream(*body), stream(*body))
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for pause_s in (0.0, 0.1, 0.2, 0.0, 0.0):
            async with g.streaming() as answer:
                assert await answer.aread() == b"".join(body)
            assert g.in_flight == 0
            await asyncio.sleep(pause_s)
        one, another, again, after, last = (seen.connection for seen in worker.seen)
    assert one != another  # it had not ended yet
    assert again in (one, another)  # both have
    assert after == last == ({one, another} - {again}).pop()


async def test_idle_connections_are_closed_before_their_worker_does(monkeypatch):
    monkeypatch.setattr(connection, "IDLE_S", 0.3)
    monkeypatch.setattr(scrape, "PERIOD_S", 0.1)
    slow = [0.2, response(ANSWER)]
    async with ScriptedWorker(slow).running() as worker, gateway(pool("p", worker.url)) as g:
        await asyncio.gather(*(g.chat() for _ in range(20)))
        assert worker.num_open >= 20
        await eventually(lambda: worker.num_open <= 1)  # of the probes


async def test_idle_connections_have_a_bound(monkeypatch):
    monkeypatch.setattr(upstream, "MAX_IDLE", 5)
    slow = [0.2, response(ANSWER)]
    async with ScriptedWorker(slow).running() as worker, gateway(pool("p", worker.url)) as g:
        await asyncio.gather(*(g.chat() for _ in range(20)))
        await eventually(lambda: worker.num_open <= 5, within_s=1)  # not only by their age


# -- clients that leave, or stand still --------------------------------------------------------

LEFT_AT: dict[str, Script] = {
    "before headers": [End.HANG],
    "before the first event": [stream_head(), End.HANG],
    "between comments": [stream_head(), *[chunk(b": wait\n\n"), 0.02] * 100],
    "mid stream": [stream_head(), chunk(delta("one")), End.HANG],
    "after the finish": [stream_head(), chunk(delta("one", finish="stop")), End.HANG],
}


@pytest.mark.parametrize("when", LEFT_AT)
async def test_a_client_that_leaves_a_stream_frees_its_worker(when: str):
    await left(LEFT_AT[when], stream=True)


@pytest.mark.parametrize("script", [[End.HANG], [response(ANSWER)[:-5], End.HANG]])
async def test_a_client_that_leaves_a_whole_answer_frees_its_worker(script: Script):
    await left(script)


async def left(script: Script, **body: bool) -> None:
    worker = ScriptedWorker(script)
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        asking = asyncio.create_task(g.chat(**body))
        await eventually(lambda: bool(worker.seen))
        await asyncio.sleep(0.05)
        asking.cancel()
        await eventually(worker.seen[0].client_left.is_set, within_s=1)
        await eventually(lambda: g.in_flight == 0, within_s=1)
        metrics = await g.metrics()
    assert metrics['paceline_requests_total{code="499",model="m",pool="p",workload="chat"}'] == 1


async def test_a_client_that_leaves_while_connecting_is_let_go():
    with full_listener() as full:
        async with gateway(pool("p", full)) as g:
            asking = asyncio.create_task(g.chat())
            await eventually(lambda: g.in_flight == 1)
            asking.cancel()
            await eventually(lambda: g.in_flight == 0, within_s=1)


async def test_a_client_that_leaves_while_another_is_asked_is_let_go():
    first, second = ScriptedWorker([response(b"{}", status=503)]), ScriptedWorker([End.HANG])
    async with first.running(), second.running():
        async with gateway(pool("p", first.url, second.url)) as g:
            with g.fleet.workers[second.url].request():
                asking = asyncio.create_task(g.chat())
                await eventually(lambda: bool(second.seen))
                asking.cancel()
                await eventually(second.seen[0].client_left.is_set, within_s=1)
            await eventually(lambda: g.in_flight == 0, within_s=1)


EVENT = chunk(delta("x" * 60_000))
FLOOD: Script = [stream_head(), *[EVENT] * 800, End.HANG]


@contextlib.asynccontextmanager
async def standing_still(g) -> AsyncIterator[asyncio.StreamWriter]:
    """A client that asks for a stream and reads nothing of it."""
    host, port = g.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.transport.pause_reading()
    body = b'{"model":"m","stream":true}'
    head = f"POST {CHAT.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    try:
        yield writer
    finally:
        writer.transport.abort()


async def test_a_reader_that_stands_still_costs_bounded_memory_and_is_cut_off():
    timeouts = Timeouts(between_bytes_s=1.0, shutdown_s=1)
    most = 0
    async with ScriptedWorker(FLOOD).running() as worker:
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g:
            async with standing_still(g):
                await eventually(lambda: bool(worker.seen))
                while g.in_flight:
                    most = max(most, g.num_buffered_bytes)
                    await asyncio.sleep(0.01)
                await eventually(worker.seen[0].client_left.is_set)
            metrics = await g.metrics()
    assert 0 < most <= 2 * 2**20, f"{most} of {len(EVENT) * 800} bytes were held"
    assert metrics['paceline_requests_total{code="499",model="m",pool="p",workload="chat"}'] == 1


async def test_a_worker_is_not_silent_because_its_reader_is_slow():
    """Its own patience is the reader's: a pause there is none of the worker's."""
    script = [stream_head(), *[EVENT] * 200, chunk(delta("", finish="stop"))]
    timeouts = Timeouts(between_bytes_s=0.5, shutdown_s=1)
    async with ScriptedWorker([*script, *stream(b"data: [DONE]\n\n")[1:]]).running() as worker:
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g, g.streaming() as answer:
            num_bytes, pauses = 0, 0
            async for piece in answer.aiter_raw():
                num_bytes += len(piece)
                if num_bytes > (pauses + 1) * 3_000_000:
                    pauses += 1
                    await asyncio.sleep(0.3)
    assert pauses >= 3
    assert num_bytes > 200 * 60_000


async def test_a_long_whole_answer_to_a_reader_that_stands_still_is_bounded_too():
    long = response(b"x" * 30_000_000)
    timeouts = Timeouts(between_bytes_s=1.0, shutdown_s=1)
    most = 0
    async with ScriptedWorker([long]).running() as worker:
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g:
            async with standing_still(g):
                await eventually(lambda: bool(worker.seen))
                while g.in_flight:
                    most = max(most, g.num_buffered_bytes)
                    await asyncio.sleep(0.01)
    assert 0 < most <= 10 * 2**20, "8 MiB are read before a byte goes out"
