"""Workers that end an answer where it does not end: every way, at every point, in every family.

Before the first event another worker is asked, once. From then on nobody is: what came whole is the
client's, and behind it one error event in its family's words; no finish reason that the worker did
not send, no end mark. The connection is not used again, and every counter comes back to zero.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from families import CHAT, FAMILIES, Family
from harness import Served, eventually, gateway, pool
from paceline.settings import Timeouts
from paceline.testing.scripted import (
    END,
    End,
    Script,
    ScriptedWorker,
    Step,
    chunk,
    event,
    response,
    stream,
    stream_head,
)

QUICK = Timeouts(hold_status_s=0.02, first_byte_s=0.1, between_bytes_s=0.05, shutdown_s=1)
"""For silence alone: elsewhere a busy machine must not make one."""
FAULTS: dict[str, tuple[tuple[Step, ...], str]] = {
    "FIN": ((End.CLOSE,), "worker_died"),
    "RST": ((End.RESET,), "worker_died"),
    "silence": ((End.HANG,), "worker_timeout"),
    "no size of a chunk": ((b"zz\r\n", End.HANG), "worker_protocol_error"),
    "half a chunk": ((b"fff\r\n: cut", End.CLOSE), "worker_died"),
}
"""How it ends, and our name for it."""
STATUS = {"worker_died": 502, "worker_protocol_error": 502, "worker_timeout": 504}
HALF_HEAD = b"HTTP/1.1 200 OK\r\nconte"
ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'

every_fault = pytest.mark.parametrize("fault", FAULTS)


@dataclass(frozen=True)
class Two:
    """A gateway before a worker that fails, which is asked first, and one that is well."""

    g: Served
    failing: ScriptedWorker
    well: ScriptedWorker

    async def ask(self, family: Family, *script: Step) -> httpx.Response:
        self.failing.play(script)
        answer = await self.g.http.post(family.path, json=family.body)
        self.g.fleet.workers[self.failing.url].succeeded()  # or its breaker would open
        return answer

    @property
    def num_asked(self) -> tuple[int, int]:
        return len(self.failing.seen), len(self.well.seen)


@contextlib.asynccontextmanager
async def two_workers(*good: Step, fault: str = "") -> AsyncIterator[Two]:
    failing, well = ScriptedWorker([]), ScriptedWorker(good)
    timeouts = QUICK if fault == "silence" else None
    async with failing.running(), well.running():
        async with gateway(pool("p", failing.url, well.url), timeouts=timeouts) as g:
            with g.fleet.workers[well.url].request():  # it is busy, so the other comes first
                yield Two(g, failing, well)
            await eventually(lambda: g.in_flight == 0)
    connections = [seen.connection for seen in failing.seen]
    assert len(set(connections)) == len(connections), "what failed is not used again"


def every(
    cases: Callable[[Family], Iterable[Any]],
) -> Iterator[tuple[Family, int, Any]]:
    """One after the other before one gateway: to start one for each would take a minute."""
    return ((family, n, case) for family in FAMILIES for n, case in enumerate(cases(family)))


def before_the_first_event(family: Family) -> Iterator[tuple[Step, ...]]:
    head = stream_head()
    yield ()
    yield (HALF_HEAD,)
    yield (head,)
    yield (head, chunk(b": com"))
    yield (head, chunk(b": comment\n\n"))
    yield (head, chunk(family.opening + family.text[0][:9]))


@every_fault
async def test_before_the_first_event_another_worker_is_asked_once(fault: str):
    ending, code = FAULTS[fault]
    async with two_workers(fault=fault) as two:
        for family, number, begun in every(before_the_first_event):
            if fault == "half a chunk" and number < 2:  # without a head there are no chunks
                continue
            _, retries = two.num_asked
            two.well.play(stream(family.whole))
            answer = await two.ask(family, *begun, *ending)
            if code == "worker_died":
                assert (answer.status_code, answer.content) == (200, family.seen_of(family.whole))
                assert two.num_asked[1] == retries + 1
                assert two.failing.seen[-1].body == two.well.seen[-1].body
                continue
            assert two.num_asked[1] == retries, "what cost its time, or was understood by nobody"
            if code == "worker_timeout" and number >= 2:  # its status was held long enough
                assert answer.status_code == 200
                assert family.error_of(answer.content) == family.code(code)
            else:
                assert answer.status_code == STATUS[code]


def after_the_first_event(family: Family) -> Iterator[bytes]:
    first, second, *_ = family.text
    text = family.opening + b"".join(family.text)
    yield family.opening + first
    yield family.opening + first + b": comment\n\n"
    yield family.opening + first + second[:-20]
    yield family.opening + first + second[:-1]
    yield text
    yield text + family.finish
    yield text + family.finish + family.usage[:-9]
    yield text + family.finish + family.usage
    yield text + family.finish + family.usage + family.done[:-4]


@every_fault
async def test_after_the_first_event_the_end_is_an_error_in_the_familys_words(fault: str):
    ending, code = FAULTS[fault]
    async with two_workers(fault=fault) as two:
        for family, _, sent in every(after_the_first_event):
            answer = await two.ask(family, stream_head(), chunk(sent), *ending)
            check_cut(family, answer, sent, code)
        num_asked = two.num_asked
        metrics = await two.g.metrics()
    failures = sum(
        value
        for name, value in metrics.items()
        if name.startswith(f'paceline_requests_total{{code="{STATUS[code]}"')
    )
    assert num_asked == (failures, 0), "never a second worker"


def check_cut(family: Family, answer: httpx.Response, sent: bytes, code: str) -> None:
    whole = family.seen_of(sent)
    assert answer.status_code == 200
    assert answer.content.startswith(whole)
    assert answer.content.removeprefix(whole).count(b"\n\n") == 1, "one error event and no more"
    assert family.error_of(answer.content) == family.code(code)


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
async def test_a_stream_shorter_than_its_length_is_cut_too(end: End):
    async with two_workers() as two:
        for family, _, sent in every(after_the_first_event):
            head = response(b"x" * (len(sent) + 1), kind="text/event-stream")[: -len(sent) - 1]
            check_cut(family, await two.ask(family, head, sent, 0.02, end), sent, "worker_died")
        assert two.num_asked[1] == 0


async def test_a_stream_that_ends_as_http_is_whole_once_it_said_why_it_stopped():
    async with two_workers() as two:
        for family, _, sent in every(after_the_first_event):
            finished = family.opening + b"".join(family.text) + family.finish
            says_why = family.path != "/v1/responses"  # whose last event alone does
            answer = await two.ask(family, stream_head(), chunk(sent), END, End.CLOSE)
            if says_why and len(sent) >= len(finished):
                assert answer.content == family.seen_of(sent)
            elif sent == family.opening + b"".join(family.text[:2])[:-1]:
                assert answer.content.startswith(sent), "an event whole but for its blank line"
                assert family.error_of(answer.content) == family.code("worker_died")
            else:
                check_cut(family, answer, sent, "worker_died")


@every_fault
async def test_after_the_end_mark_nothing_matters_to_the_client(fault: str):
    ending, _ = FAULTS[fault]
    async with two_workers(fault=fault) as two:
        for family, _, more in every(lambda family: (b": more\n\n", family.text[0] + family.done)):
            script = [stream_head(), chunk(family.whole), chunk(more)]
            answer = await two.ask(family, *script, *ending)
            assert (answer.status_code, answer.content) == (200, family.seen_of(family.whole))
            await eventually(lambda: two.g.in_flight == 1)
        assert two.num_asked == (2 * len(FAMILIES), 0)


def with_own_error(family: Family) -> Iterator[bytes]:
    """As vLLM writes them: chunks go on to `[DONE]`, the others end there."""
    error = {"error": {"message": "boom", "type": "InternalServerError", "code": 500}}
    last = event(error) + family.done
    if family.path in ("/v1/responses", "/v1/messages"):
        last = b"event: error\n" + event({"type": "error", **error})
    yield family.opening + family.text[0] + last


async def test_a_workers_own_error_mid_stream_passes_and_nothing_is_put_behind_it():
    async with two_workers() as two:
        for family, _, sent in every(with_own_error):
            answer = await two.ask(family, stream_head(), chunk(sent), END, End.CLOSE)
            assert (answer.content, two.num_asked[1]) == (sent, 0)


# -- whole answers -----------------------------------------------------------------------------

LENGTH_HEAD = response(ANSWER)[: -len(ANSWER)]
CHUNKED_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
)
CUT_ANSWERS: list[Script] = [
    (),
    (HALF_HEAD,),
    (LENGTH_HEAD,),
    (LENGTH_HEAD, ANSWER[:-1]),
    (CHUNKED_HEAD,),
    (CHUNKED_HEAD, chunk(ANSWER[:9])),
    (CHUNKED_HEAD, chunk(ANSWER)),
]
WHOLE = Family(
    name="whole", path=CHAT.path, asks={"messages": [], "stream": False}, text=(), done=b""
)


@pytest.mark.parametrize("fault", ["FIN", "RST", "silence"])
async def test_a_whole_answer_is_whole_or_another_workers(fault: str):
    ending, code = FAULTS[fault]
    async with two_workers(response(ANSWER), fault=fault) as two:
        for begun in CUT_ANSWERS:
            answer = await two.ask(WHOLE, *begun, *ending)
            if code == "worker_died":
                assert (answer.status_code, answer.content) == (200, ANSWER)
            else:
                assert (answer.status_code, answer.json()["error"]["code"]) == (504, code)
        assert two.num_asked[1] == (len(CUT_ANSWERS) if code == "worker_died" else 0)


async def test_a_chunk_that_is_none_makes_a_whole_answer_a_bad_gateway():
    async with two_workers(response(ANSWER)) as two:
        for sizes in (
            b"zz\r\n",
            b"-1\r\n",
            b"ffffffffffffffffff\r\n",
            b"5\r\nhello!!\r\n0\r\n\r\n",
        ):
            answer = await two.ask(WHOLE, CHUNKED_HEAD, sizes, End.HANG)
            assert answer.status_code == 502
            assert answer.json()["error"]["code"] == "worker_protocol_error"
        assert two.num_asked[1] == 0


@pytest.mark.parametrize("fault", ["FIN", "RST", "silence", "no size of a chunk"])
async def test_a_long_answer_under_way_is_cut_where_its_worker_cut_it(fault: str):
    """Past what is read before a byte goes out, the client must see that half is missing."""
    ending, _ = FAULTS[fault]
    async with two_workers(response(ANSWER), fault=fault) as two:
        long = chunk(b"x" * 9 * 2**20)
        with pytest.raises(httpx.RemoteProtocolError):
            await two.ask(WHOLE, CHUNKED_HEAD, long, 0.05, *ending)
        assert two.num_asked[1] == 0


async def test_nobody_is_asked_a_third_time():
    workers = [ScriptedWorker([End.CLOSE]) for _ in range(3)]
    async with workers[0].running(), workers[1].running(), workers[2].running():
        async with gateway(pool("p", *(worker.url for worker in workers))) as g:
            answer = await g.chat()
            assert (answer.status_code, answer.json()["error"]["code"]) == (502, "worker_died")
            assert g.in_flight == 0
    asked = [len({seen.header("x-request-id")[0] for seen in w.seen}) for w in workers]
    assert sum(asked) == 2
