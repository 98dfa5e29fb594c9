"""Streams that are over, however they ended, leave nothing behind: the short form of
`make bench-leaks`."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

from families import FAMILIES
from harness import eventually, gateway, pool
from paceline.edge.client import Client
from paceline.edge.connection import Answer as WorkersAnswer
from paceline.edge.connection import Connection
from paceline.edge.decisions import REMEMBERED
from paceline.edge.lessons import Lesson
from paceline.edge.protocol import HttpConnection
from paceline.edge.relay import Answer, Whole
from paceline.edge.request import Request
from paceline.edge.stream import Stream
from paceline.edge.telemetry import BATCH, RequestRecord
from paceline.edge.upstream import MAX_IDLE, Exchange
from paceline.settings import Learning, Mode
from paceline.testing.aborted_streams import AbortedStreams
from paceline.testing.scripted import End, ScriptedWorker, chunk, stream_head

OF_ONE_REQUEST = (
    Answer, Client, Exchange, HttpConnection, Lesson, Request, Stream, Whole,
)  # fmt: skip
"""Their records, which are small, are remembered: the last `REMEMBERED` of them."""
OF_ONE_WORKER = (Connection, WorkersAnswer)


def alive(*kinds: type) -> Counter[str]:
    gc.collect()
    found = (type(one) for one in gc.get_objects() if isinstance(one, kinds))
    return Counter(kind.__name__ for kind in found)


def adaptive(url: str) -> Any:
    """A gateway that keeps the most that one can: it decides by cost, and learns."""
    return gateway(pool("p", url), mode=Mode.ADAPTIVE, learning=Learning())


async def test_hundreds_of_aborted_and_whole_streams_leave_nothing_behind():
    streams, were, records = AbortedStreams(), alive(*OF_ONE_REQUEST), alive(RequestRecord).total()
    async with streams.worker.running() as worker, adaptive(worker.url) as g:
        await streams.many(g.url, num_aborted=300, num_whole=300, at_once=30, model="m")
        await eventually(lambda: g.in_flight == 0)
        await eventually(lambda: not g.running.connections)
        metrics = await g.metrics()
        await g.http.aclose()
        g.running.gateway.learner.take_in()
        await eventually(lambda: not alive(*OF_ONE_REQUEST) - were)
        assert alive(RequestRecord).total() - records <= REMEMBERED + BATCH
        assert worker.num_open <= MAX_IDLE
    labels = 'model="m",pool="p",workload="chat"'
    assert metrics[f'paceline_requests_total{{code="499",{labels}}}'] == 300
    assert metrics[f'paceline_requests_total{{code="200",{labels}}}'] == 300
    assert all(value == 0 for name, value in metrics.items() if "in_flight" in name)


async def test_workers_that_fail_leave_nothing_behind_either():
    were = alive(*OF_ONE_REQUEST), alive(*OF_ONE_WORKER)
    async with ScriptedWorker([]).running() as worker, adaptive(worker.url) as g:
        for family in FAMILIES:
            for at in range(0, len(family.whole), 97):
                cut = [chunk(family.whole[:at])] if at else []
                worker.play([stream_head(), *cut, End.CLOSE])
                await g.http.post(family.path, json=family.body)
            await g.http.post(family.path, json={"model": "nope"})
        await eventually(lambda: g.in_flight == 0)
        await g.http.aclose()
        g.running.gateway.learner.take_in()
        await eventually(lambda: not alive(*OF_ONE_REQUEST) - were[0])
        assert (alive(*OF_ONE_WORKER) - were[1]).total() <= 2, "the connection of the probes"
