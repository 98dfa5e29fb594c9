"""What a gateway says for itself: to pages of other origins, to readers of metrics, about pace."""

from __future__ import annotations

import asyncio
import re

import pytest

from families import CHAT, COMPLETIONS, FAMILIES
from harness import gateway, pool
from paceline.edge import scrape
from paceline.settings import ApiKey, Auth, Listen, Timeouts
from paceline.testing.scripted import (
    DONE,
    END,
    End,
    ScriptedWorker,
    chunk,
    event,
    response,
    stream,
    stream_head,
)
from paceline_client.hints import parse_hint

ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'
PAGE = "https://app.example"
KEYS = Auth(keys=(ApiKey(name="a", sha256=ApiKey.digest("a")),))
KEY = {"authorization": "Bearer a"}

# -- pages of other origins --------------------------------------------------------------------

OTHERS = [
    "https://app.example.evil.example",
    "https://evil-app.example",
    "https://app.example:444",
    "http://app.example",
    "https://APP.example",
    "https://app.example/",
    "null",
    "*",
    "",
]


def cors(answer) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.startswith("access-control-")}


async def test_a_page_of_a_named_origin_may_call_and_no_other():
    listen = Listen(port=0, cors_origins=(PAGE,))
    worker = ScriptedWorker([response(ANSWER, extra=["Access-Control-Allow-Origin: *"])])
    async with worker.running(), gateway(pool("p", worker.url), listen=listen, auth=KEYS) as g:
        answers = [await g.chat(headers={**KEY, "origin": origin}) for origin in (PAGE, *OTHERS)]
        refused = await g.chat(headers={"origin": PAGE})
        nowhere = await g.http.get("/nowhere", headers={**KEY, "origin": PAGE})
        worker.play(stream(CHAT.whole))
        streamed = await g.chat(stream=True, headers={**KEY, "origin": PAGE})
        without = await g.chat(headers=KEY)
    for answer in (answers[0], refused, nowhere, streamed):
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        assert answer.headers["vary"] == "origin"
    assert (refused.status_code, nowhere.status_code) == (401, 404), "a page can read why"
    for answer in (*answers[1:], without):
        assert not cors(answer)
        assert answer.headers["vary"] == "origin"


async def test_a_preflight_is_answered_without_a_key_for_a_named_origin_alone():
    listen = Listen(port=0, cors_origins=(PAGE,))
    wants = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type, x-paceline-hints",
    }
    async with ScriptedWorker([]).running() as worker:
        async with gateway(pool("p", worker.url), listen=listen, auth=KEYS) as g:
            allowed = await g.http.options(CHAT.path, headers={"origin": PAGE, **wants})
            others = [
                await g.http.options(CHAT.path, headers={"origin": origin, **wants})
                for origin in OTHERS
            ]
    assert (allowed.status_code, allowed.content) == (204, b"")
    assert allowed.headers["access-control-allow-origin"] == PAGE
    assert allowed.headers["access-control-allow-methods"] == "POST, OPTIONS"
    assert (
        allowed.headers["access-control-allow-headers"] == wants["access-control-request-headers"]
    )
    assert all(other.status_code == 204 and not cors(other) for other in others)
    assert not worker.seen


async def test_without_origins_nothing_is_said_of_them():
    async with ScriptedWorker([response(ANSWER)]).running() as worker:
        async with gateway(pool("p", worker.url)) as g:
            answer = await g.chat(headers={"origin": PAGE})
    assert not cors(answer)
    assert "vary" not in answer.headers


# -- metrics -----------------------------------------------------------------------------------

COUNTERS = b"""# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="up"} 12.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="up"} 30.0
vllm:num_requests_running{engine="0"} 2.0
a bad line {{{
vllm:spec_decode_odd{ 3
"""


async def test_metrics_hold_ours_and_the_workers_counters_of_speculation():
    first, second = ScriptedWorker([response(ANSWER)]), ScriptedWorker([response(ANSWER)])
    first.metrics, second.metrics = COUNTERS, COUNTERS.replace(b"12.0", b"13.0")
    async with first.running(), second.running():
        pools = pool("p", first.url, second.url)
        async with gateway(pools, listen=Listen(port=0, metrics=True), auth=KEYS) as g:
            await g.chat(headers=KEY)
            metrics = await g.http.get("/metrics", headers=KEY)
            assert (await g.http.get("/metrics")).status_code == 401
            assert (await g.http.post("/metrics", headers=KEY)).status_code == 405
    text = metrics.text
    assert metrics.headers["content-type"].startswith("text/plain")
    assert text.count("# TYPE vllm:spec_decode_num_drafts_total counter") == 1
    for worker, drafts in ((first, 12.0), (second, 13.0)):
        labels = f'engine="0",model_name="up",worker="{worker.url}"'
        assert f"vllm:spec_decode_num_drafts_total{{{labels}}} {drafts}" in text
    assert "vllm:num_requests_running" not in text
    assert "bad line" not in text
    assert 'paceline_requests_total{code="200",model="m"' in text


async def test_without_listen_metrics_there_are_none():
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        assert (await g.http.get("/metrics")).status_code == 404


@pytest.mark.parametrize("how", ["says nothing", "drips", "is gone", "says nonsense"])
async def test_a_worker_at_fault_holds_up_no_reader_of_metrics(how: str, monkeypatch):
    monkeypatch.setattr(scrape, "ANSWER_S", 0.2)
    bad, well = ScriptedWorker([]), ScriptedWorker([])
    well.metrics = COUNTERS
    async with bad.running(), well.running():
        listen = Listen(port=0, metrics=True)
        async with gateway(pool("p", bad.url, well.url), listen=listen) as g:
            if how == "is gone":
                bad.stop()
            bad.routine = {
                "says nothing": [End.HANG],
                "drips": [stream_head(), *[chunk(b"#"), 0.1] * 50, END],
                "says nonsense": [b"zz\r\n\r\n", End.CLOSE],
            }.get(how)
            async with asyncio.timeout(2):
                metrics = await g.http.get("/metrics")
    assert metrics.status_code == 200
    assert f'worker="{well.url}"}} 12.0' in metrics.text


# -- hints -------------------------------------------------------------------------------------


def counted(text: str, num_tokens: int, **more) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **more}
    return event({"choices": [choice], "usage": {"completion_tokens": num_tokens}})


async def test_hints_stand_before_events_and_all_else_is_as_without():
    sent = [counted("a", 1), counted("bcd", 4), counted("", 4, finish_reason="stop")]
    usage = event({"choices": [], "usage": {"completion_tokens": 4}})
    script = [stream_head(), *[step for one in sent for step in (0.05, chunk(one))]]
    worker = ScriptedWorker([*script, chunk(usage), chunk(DONE), END])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        hinted = await g.chat(stream=True, headers={"x-paceline-hints": "1"})
    assert worker.seen[0].json["stream_options"] == {
        "include_usage": True,
        "continuous_usage_stats": True,
    }
    comments = re.findall(rb"^: (pace [^\n]*)\n", hinted.content, re.M)
    hints = [parse_hint(comment.decode()) for comment in comments]
    assert [hint.num_tokens for hint in hints if hint][:3] == [1, 3, 0]
    plain = re.sub(rb"^: pace [^\n]*\n", b"", hinted.content, flags=re.M)
    without = [re.sub(rb', "usage": \{[^}]*\}', b"", one) for one in sent]
    assert plain == b"".join(without) + DONE


async def test_hints_in_every_family_change_nothing_but_comments():
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            worker.play(stream(b": wait\n\n" + family.whole))
            headers = {"x-paceline-hints": "1"}
            answer = await g.http.post(family.path, json=family.body, headers=headers)
            assert answer.content.count(b": pace ") >= len(family.text)
            plain = re.sub(rb"^: pace [^\n]*\n", b"", answer.content, flags=re.M)
            assert plain == family.seen_of(b": wait\n\n" + family.whole)
            worker.play([stream_head(), chunk(family.text[0]), End.CLOSE])
            cut = await g.http.post(family.path, json=family.body, headers=headers)
            plain = re.sub(rb"^: pace [^\n]*\n", b"", cut.content, flags=re.M)
            assert plain.startswith(family.text[0])
            assert b'"error"' in plain
            g.fleet.workers[worker.url].succeeded()


async def test_a_client_without_hints_gets_none():
    async with ScriptedWorker(stream(COMPLETIONS.whole)).running() as worker:
        timeouts = Timeouts(shutdown_s=1)
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g:
            for headers in ({}, {"x-paceline-hints": "0"}):
                got = await g.http.post(COMPLETIONS.path, json=COMPLETIONS.body, headers=headers)
                assert got.content == COMPLETIONS.whole
