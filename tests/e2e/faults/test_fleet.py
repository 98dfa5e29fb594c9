"""Workers that fail, rest and come back: breakers, trials, slow starts; and never none at all."""

from __future__ import annotations

import asyncio

import pytest

from harness import Served, eventually, gateway, pool
from paceline.core import health
from paceline.edge import scrape, workers
from paceline.settings import Timeouts
from paceline.testing.scripted import (
    DONE,
    END,
    End,
    Script,
    ScriptedWorker,
    chunk,
    delta,
    event,
    response,
    stream_head,
)

ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'
OK: Script = [response(ANSWER)]
LAW = health.HealthLaw(
    failed_probes_to_go_down=3,
    failed_requests_to_open=3,
    open_s=0.3,
    max_open_s=0.6,
    slow_start_s=1.5,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """The law of the fleet with its times shortened."""
    monkeypatch.setattr(workers, "Health", lambda: health.Health(LAW))
    monkeypatch.setattr(scrape, "PERIOD_S", 0.05)


def up(g: Served, worker: ScriptedWorker) -> bool:
    return g.fleet.workers[worker.url].up


def failure(status: int) -> Script:
    return [response(b'{"error":{}}', status=status)]


AT_FAULT: dict[str, Script] = {
    "500": failure(500),
    "502": failure(502),
    "a cut": [response(ANSWER)[:-5], End.CLOSE],
    "no answer": [End.CLOSE],
    "nonsense": [b"zz\r\n\r\n"],
    "an early error": [stream_head(), chunk(event({"error": {"code": 500}})), END],
    "a late cut": [stream_head(), chunk(delta("x")), 0.01, End.RESET],
}
NOT_AT_FAULT: dict[str, Script] = {
    **{str(status): failure(status) for status in (400, 404, 413, 422, 429, 503)},
    "an early 429": [stream_head(), chunk(event({"error": {"code": 429}})), END],
    "an early 400": [stream_head(), chunk(event({"error": {"code": 400}})), END],
}


@pytest.mark.parametrize("fault", AT_FAULT)
async def test_failures_in_a_row_open_a_breaker_and_the_rest_goes_elsewhere(fault: str):
    failing, well = ScriptedWorker(AT_FAULT[fault]), ScriptedWorker(OK)
    async with failing.running(), well.running():
        async with gateway(pool("p", failing.url, well.url)) as g:
            with g.fleet.workers[well.url].request():
                for _ in range(LAW.failed_requests_to_open):
                    await g.chat(stream=True)
                assert not up(g, failing)
                asked = len(failing.seen)
                for _ in range(5):
                    assert (await g.chat()).content == ANSWER
                assert len(failing.seen) == asked


@pytest.mark.parametrize("answer", NOT_AT_FAULT)
async def test_clients_errors_and_back_pressure_open_none(answer: str):
    worker = ScriptedWorker(NOT_AT_FAULT[answer])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for _ in range(LAW.failed_requests_to_open * 2):
            assert 400 <= (await g.chat()).status_code <= 503
            assert up(g, worker)


async def test_clients_that_leave_open_none():
    worker = ScriptedWorker([End.HANG])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for number in range(LAW.failed_requests_to_open * 2):
            asking = asyncio.create_task(g.chat())
            await eventually(lambda number=number: len(worker.seen) > number)
            asking.cancel()
            await eventually(lambda: g.in_flight == 0)
            assert up(g, worker)


async def test_after_a_rest_one_request_tries_it_and_brings_it_back():
    failing, well = ScriptedWorker(failure(500)), ScriptedWorker(OK)
    async with failing.running(), well.running():
        async with gateway(pool("p", failing.url, well.url)) as g:
            with g.fleet.workers[well.url].request():
                for _ in range(LAW.failed_requests_to_open):
                    await g.chat()
            asked = len(failing.seen)
            failing.play([0.2, response(ANSWER)])
            await eventually(lambda: up(g, failing))
            answers = await asyncio.gather(*(g.chat() for _ in range(10)))
            assert [answer.status_code for answer in answers] == [200] * 10
            assert len(failing.seen) == asked + 1, "a single one, until it was answered"
            assert up(g, failing)


async def test_a_trial_that_fails_is_followed_by_a_longer_rest():
    failing, well = ScriptedWorker(failure(500)), ScriptedWorker(OK)
    async with failing.running(), well.running():
        async with gateway(pool("p", failing.url, well.url)) as g:
            now = asyncio.get_running_loop().time
            with g.fleet.workers[well.url].request():
                for _ in range(LAW.failed_requests_to_open):
                    await g.chat()
                await eventually(lambda: up(g, failing))
                asked, failed_s = len(failing.seen), now()
                assert (await g.chat()).status_code == 500
                assert not up(g, failing)
                await eventually(lambda: up(g, failing))
            assert now() - failed_s >= 2 * LAW.open_s - 0.01
            assert len(failing.seen) == asked + 1


@pytest.mark.parametrize("left", [failure(429), [End.HANG]])
async def test_a_trial_that_says_nothing_of_it_is_tried_again(left: Script):
    worker, well = ScriptedWorker(failure(500)), ScriptedWorker(OK)
    async with worker.running(), well.running():
        async with gateway(pool("p", worker.url, well.url)) as g:
            with g.fleet.workers[well.url].request():
                for _ in range(LAW.failed_requests_to_open):
                    await g.chat()
            worker.play(left)
            await eventually(lambda: up(g, worker))
            asking = asyncio.create_task(g.chat())
            asked = len(worker.seen)
            await eventually(lambda: len(worker.seen) > asked)
            await asyncio.sleep(0.02)
            asking.cancel()
            worker.play(OK)
            await eventually(lambda: up(g, worker))
            with g.fleet.workers[well.url].request():
                assert (await g.chat()).content == ANSWER
            assert len(worker.seen) == asked + 2


async def test_the_last_worker_is_asked_whatever_is_known_of_it():
    workers_ = [ScriptedWorker(failure(500)) for _ in range(2)]
    async with workers_[0].running(), workers_[1].running():
        async with gateway(pool("p", *(worker.url for worker in workers_))) as g:
            for _ in range(8):
                assert (await g.chat()).status_code == 500
            assert not any(up(g, worker) for worker in workers_)
            for worker in workers_:
                worker.play(OK)
            assert (await g.chat()).content == ANSWER


async def test_one_slow_probe_among_good_ones_is_no_reason(monkeypatch):
    monkeypatch.setattr(scrape, "ANSWER_S", 0.1)
    worker = ScriptedWorker(OK)
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        probed = g.fleet.workers[worker.url]
        for _ in range(4):
            for _ in range(LAW.failed_probes_to_go_down - 1):
                probed.probe_failed("slow")
            assert probed.up
            await scrape.probe(probed)
        assert probed.up


async def test_who_comes_back_gets_a_growing_share_and_loses_nothing():
    first, second = ScriptedWorker([0.02, *OK]), ScriptedWorker([0.02, *OK])
    async with first.running(), second.running():
        async with gateway(pool("p", first.url, second.url)) as g:

            async def load(seconds: float) -> tuple[int, int]:
                """Requests at eight at a time, and who got them."""
                before, loop = (len(first.seen), len(second.seen)), asyncio.get_running_loop()
                until_s = loop.time() + seconds

                async def one() -> None:
                    while loop.time() < until_s:
                        assert (await g.chat()).status_code == 200

                await asyncio.gather(*(one() for _ in range(8)))
                return len(first.seen) - before[0], len(second.seen) - before[1]

            first.stop()
            await eventually(lambda: not up(g, first))
            await first.listen()
            await eventually(lambda: up(g, first))
            early = await load(0.4)
            await asyncio.sleep(LAW.slow_start_s)
            late = await load(0.4)
    assert early[0] < 0.6 * early[1], early
    assert late[0] > 0.75 * late[1], late


async def test_a_worker_that_died_takes_only_its_own_streams_along():
    dying = ScriptedWorker([stream_head(), chunk(delta("one")), 0.2, End.RESET])
    rest = [0.4, chunk(delta("", finish="stop")), chunk(DONE), END]
    well = ScriptedWorker([stream_head(), chunk(delta("x")), *rest])
    async with dying.running(), well.running():
        async with gateway(pool("p", dying.url, well.url)) as g:
            answers = await asyncio.gather(*(g.chat(stream=True) for _ in range(8)))
            assert g.in_flight == 0
    ended = [answer.content.endswith(DONE) for answer in answers]
    cut = [b'"worker_died"' in answer.content for answer in answers]
    assert (sum(ended), sum(cut)) == (4, 4)


async def test_a_silent_worker_holds_up_neither_others_nor_the_metrics(monkeypatch):
    """Its probes wait; those of others do not, and what is asked of all workers has a bound."""
    silent, well = ScriptedWorker(OK), ScriptedWorker(OK)
    silent.routine = [End.HANG]
    async with silent.running(), well.running():
        timeouts = Timeouts(first_byte_s=0.1, shutdown_s=1)
        async with gateway(pool("p", silent.url, well.url), timeouts=timeouts) as g:
            await eventually(lambda: g.fleet.workers[well.url].card is not None, within_s=1)
            ready = await g.http.get("/ready")
            models = await g.http.get("/v1/models")
    assert (ready.status_code, models.status_code) == (200, 200)
