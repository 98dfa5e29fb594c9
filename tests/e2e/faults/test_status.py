"""The status line of a stream: held for the first event, no longer than it may be, then kept alive.

A worker that answers 200 and then refuses in its first event has refused: that is the status. An
error behind text, or after the hold, is told in the stream. Comments are not events.
"""

from __future__ import annotations

import pytest

from families import CHAT, FAMILIES, MESSAGES, RESPONSES, Family
from harness import eventually, gateway, pool
from paceline.edge import scrape
from paceline.edge import stream as edge_stream
from paceline.settings import Timeouts
from paceline.testing.scripted import (
    DONE,
    END,
    ScriptedWorker,
    chunk,
    delta,
    event,
    response,
    stream,
    stream_head,
)

COMMENTS = b": keep-alive\n\n: \n\n"
SHORT_HOLD = Timeouts(hold_status_s=0.1, shutdown_s=1)


def refusal(family: Family, code: int) -> bytes:
    error = {"message": "no", "type": "BadRequestError", "param": None, "code": code}
    if family.path in (RESPONSES.path, MESSAGES.path):
        return b"event: error\n" + event({"type": "error", "error": error})
    return event({"error": error})


@pytest.mark.parametrize("code", [400, 404, 422, 429, 500, 503])
async def test_an_error_in_place_of_the_first_event_is_the_status_in_every_family(code: int):
    worker = ScriptedWorker([])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            for before in (b"", COMMENTS, family.opening):
                worker.play(stream(before + refusal(family, code), family.done))
                answer = await g.http.post(family.path, json=family.body)
                assert answer.status_code == code
                assert answer.headers["content-type"] == "application/json"
                assert answer.json()["error"]["message"] == "no"
                assert answer.headers["x-paceline-pool"] == "p"


@pytest.mark.parametrize("error", [{"message": "?", "code": "overloaded"}, "just text"])
async def test_an_error_without_a_status_of_its_own_is_a_bad_gateway(error: object):
    worker = ScriptedWorker([stream_head(), chunk(event({"error": error})), END])
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as answer:
        await answer.aread()
    assert answer.status_code == 502


async def test_after_the_first_text_an_error_is_told_in_the_stream():
    worker = ScriptedWorker([])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            sent = family.opening + family.text[0] + refusal(family, 400) + DONE
            worker.play([stream_head(), chunk(sent), END])
            answer = await g.http.post(family.path, json=family.body)
            assert answer.status_code == 200
            assert answer.content == (sent if family.done == DONE else sent.removesuffix(DONE))


@pytest.mark.parametrize("before", [b"", COMMENTS])
async def test_after_the_hold_200_has_gone_out_and_an_error_is_told_in_the_stream(before: bytes):
    held = [chunk(before)] if before else []
    worker = ScriptedWorker([])
    async with (
        worker.running(),
        gateway(pool("p", worker.url), timeouts=SHORT_HOLD) as g,
    ):
        for family in FAMILIES:
            error = refusal(family, 400)
            worker.play([stream_head(), *held, 0.2, chunk(error), chunk(family.done), END])
            answer = await g.http.post(family.path, json=family.body)
            assert answer.status_code == 200
            assert answer.content.removesuffix(DONE) == before + error


async def test_comments_alone_commit_no_status_but_reach_the_client():
    waits = [stream_head(), *[chunk(COMMENTS), 0.05] * 4]
    refuses = [*waits, chunk(event({"error": {"code": 429}})), END]
    begins = [*waits, chunk(delta("x", finish="stop")), chunk(DONE), END]
    worker = ScriptedWorker(refuses, begins)
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        assert (await g.chat(stream=True)).status_code == 429
        answer = await g.chat(stream=True)
    assert answer.content == COMMENTS * 4 + delta("x", finish="stop") + DONE


async def test_comments_that_go_on_renew_no_hold():
    error = refusal(CHAT, 400)
    worker = ScriptedWorker([stream_head(), *[chunk(COMMENTS), 0.03] * 12, chunk(error), END])
    async with worker.running(), gateway(pool("p", worker.url), timeouts=SHORT_HOLD) as g:
        answer = await g.chat(stream=True)
    assert answer.status_code == 200
    assert answer.content.startswith(COMMENTS * 12 + error)


async def test_a_stream_that_waits_is_kept_alive_with_comments(monkeypatch):
    monkeypatch.setattr(edge_stream, "KEEP_ALIVE_S", 0.05)
    worker = ScriptedWorker([])
    async with worker.running(), gateway(pool("p", worker.url), timeouts=SHORT_HOLD) as g:
        for family in FAMILIES:
            worker.play([stream_head(), 0.25, chunk(family.whole), END])
            answer = await g.http.post(family.path, json=family.body)
            waited, whole = answer.content, family.seen_of(family.whole)
            assert waited.endswith(whole)
            alive = waited.removesuffix(whole)
            assert alive.count(edge_stream.KEEP_ALIVE) >= 1
            assert alive.replace(edge_stream.KEEP_ALIVE, b"") == b""


async def test_once_text_has_come_no_comment_is_put_into_a_pause(monkeypatch):
    monkeypatch.setattr(edge_stream, "KEEP_ALIVE_S", 0.02)
    script = [stream_head(), 0.15, chunk(CHAT.text[0]), 0.1, chunk(CHAT.text[1]), 0.1]
    worker = ScriptedWorker([*script, chunk(CHAT.finish + CHAT.usage + CHAT.done), END])
    async with worker.running(), gateway(pool("p", worker.url), timeouts=SHORT_HOLD) as g:
        answer = await g.http.post(CHAT.path, json=CHAT.body)
    _, _, behind = answer.content.partition(CHAT.text[0])
    assert behind == CHAT.text[1] + CHAT.finish + CHAT.usage + CHAT.done


# -- asked of another --------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("how", ["whole", "in the stream"])
async def test_too_busy_is_told_unchanged_where_nobody_else_can_take_it(
    status: int, how: str, monkeypatch
):
    body = event({"error": {"message": "busy", "code": status}})
    said = body.removeprefix(b"data: ").strip()
    extra = ["retry-after: 7", "x-ratelimit-remaining-requests: 0"]
    script = [response(said, status=status, extra=extra)]
    if how == "in the stream":
        script = [stream_head(*extra), chunk(body), chunk(DONE), END]
    monkeypatch.setattr(scrape, "PERIOD_S", 0.05)
    busy, gone = ScriptedWorker(script), ScriptedWorker([])
    async with busy.running(), gone.running():
        async with gateway(pool("p", busy.url, gone.url)) as g:
            gone.stop()
            await eventually(lambda: not g.fleet.workers[gone.url].up)
            for _ in range(3):
                answer = await g.chat(stream=True)
                assert (answer.status_code, answer.content) == (status, said)
                assert answer.headers["retry-after"] == "7"
                assert answer.headers["x-ratelimit-remaining-requests"] == "0"
            assert g.fleet.workers[busy.url].up, "who is busy is well"
    assert len(busy.seen) == 3


@pytest.mark.parametrize("how", ["whole", "in the stream"])
async def test_too_busy_is_asked_of_one_other_who_may_be_as_late_as_any(how: str, monkeypatch):
    """What is remembered of the first answer must not pass for the second's."""
    monkeypatch.setattr(edge_stream, "KEEP_ALIVE_S", 0.05)
    body = event({"error": {"message": "busy", "code": 503}})
    script = [response(body, status=503)]
    if how == "in the stream":
        script = [stream_head(), chunk(body), chunk(DONE), END]
    busy = ScriptedWorker(script)
    late = ScriptedWorker([stream_head(), 0.4, chunk(CHAT.whole), END])
    timeouts = Timeouts(hold_status_s=0.1, between_bytes_s=0.2, shutdown_s=1)
    async with busy.running(), late.running():
        async with gateway(pool("p", busy.url, late.url), timeouts=timeouts) as g:
            with g.fleet.workers[late.url].request():
                answer = await g.http.post(CHAT.path, json=CHAT.body)
            metrics = await g.metrics()
    assert answer.status_code == 200
    assert answer.content.replace(edge_stream.KEEP_ALIVE, b"") == CHAT.whole
    assert edge_stream.KEEP_ALIVE in answer.content
    assert "worker;" not in answer.headers["server-timing"], "not known when the status went out"
    labels = 'model="m",pool="p",workload="chat"'
    assert metrics[f"paceline_ttft_seconds_sum{{{labels}}}"] >= 0.4
    assert (len(busy.seen), len(late.seen)) == (1, 1)


async def test_two_busy_workers_are_asked_once_each_and_the_second_answers():
    first = ScriptedWorker([response(b"{}", status=429, extra=["retry-after: 7"])])
    second = ScriptedWorker([response(b"{}", status=503, extra=["retry-after: 9"])])
    async with first.running(), second.running():
        async with gateway(pool("p", first.url, second.url)) as g:
            with g.fleet.workers[second.url].request():
                answer = await g.chat()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "9")
    assert (len(first.seen), len(second.seen)) == (1, 1)
