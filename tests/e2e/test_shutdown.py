"""Going away: running streams may end, new requests are refused, the rest ends with an error."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from harness import eventually, gateway, pool
from paceline.settings import Timeouts
from paceline.testing.scripted import (
    DONE,
    END,
    End,
    ScriptedWorker,
    chunk,
    delta,
    stream_head,
)


async def test_a_running_stream_may_end_and_nothing_new_begins():
    rest = [chunk(delta("two", finish="stop")), chunk(DONE), END]
    worker = ScriptedWorker([stream_head(), chunk(delta("one")), 0.5, *rest])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        async with g.streaming() as answer:
            pieces = answer.aiter_raw()
            assert await anext(pieces) == delta("one")
            g.running.stop()
            await asyncio.sleep(0.2)
            with pytest.raises(httpx.ConnectError):
                await httpx.AsyncClient().get(f"{g.url}/health")
            assert b"".join([piece async for piece in pieces]) == delta("two", finish="stop") + DONE
        await g.running.ended()


async def test_a_stream_that_outlasts_the_grace_ends_with_an_error_event():
    worker = ScriptedWorker([stream_head(), chunk(delta("one")), End.HANG])
    timeouts = Timeouts(shutdown_s=1)
    async with worker.running(), gateway(pool("p", worker.url), timeouts=timeouts) as g:
        async with g.streaming() as answer:
            pieces = answer.aiter_raw()
            assert await anext(pieces) == delta("one")
            g.running.stop()
            last = b"".join([piece async for piece in pieces])
        await eventually(worker.seen[0].client_left.is_set)
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "shutting_down"


async def test_a_whole_answer_that_outlasts_the_grace_is_refused_without_a_traceback(caplog):
    worker = ScriptedWorker([End.HANG])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        asking = asyncio.create_task(g.chat())
        await eventually(lambda: bool(worker.seen))
        g.running.stop()
        answer = await asking
        await eventually(worker.seen[0].client_left.is_set)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")
    assert "Traceback" not in caplog.text
