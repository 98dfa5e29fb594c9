"""Streams through the gateway: the bytes, the status line, the honest end."""

from __future__ import annotations

import json

import pytest

from harness import NGRAM, gateway, pool
from paceline.settings import Timeouts
from paceline.testing.scripted import (
    DONE,
    END,
    End,
    ScriptedWorker,
    chunk,
    delta,
    event,
    stream,
    stream_head,
)

USAGE = event(
    {
        "id": "chatcmpl-1",
        "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        "system_fingerprint": "vllm-x",
        "metrics": {
            "speculative_decoding": {
                "num_spec_steps": 2,
                "num_draft_tokens": 10,
                "num_accepted_draft_tokens": 3,
            }
        },
    }
)
REJECTION = {"message": "min_p is not supported", "type": "BadRequestError", "param": None}


def events_of(body: bytes) -> list[bytes]:
    return [part for part in body.split(b"\n\n") if part]


async def test_a_stream_reaches_a_client_that_asked_for_usage_byte_for_byte():
    odd = [
        b": keep-alive\n\n",
        b'data:{"choices":[{"index":0,"delta":{"content":"no space"}}]}\n\n',
        b"id: 7\r\nevent: message\r\ndata: " + b'{"x" : 1.0E+2, "choices":[{}]}' + b"\r\n\r\n",
        b"retry: 3000\n\n",
        'data: {"choices":[{"delta":{"content":"\u2028 北🌍"}}]}\n\n'.encode(),
        delta("end", finish="stop"),
        USAGE,
        DONE,
    ]
    async with (
        ScriptedWorker(stream(*odd)).running() as worker,
        gateway(pool("p", worker.url)) as g,
    ):
        async with g.streaming(stream_options={"include_usage": True}) as response:
            body = await response.aread()
    assert body == b"".join(odd)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
async def test_the_cuts_of_reads_change_no_byte(size: int):
    whole = b"".join([delta("北🌍"), b": ping\r\r", delta("x", finish="stop"), USAGE, DONE])
    pieces = [chunk(whole[at : at + size]) for at in range(0, len(whole), size)]
    script = [stream_head(), *pieces, END]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        async with g.streaming(stream_options={"include_usage": True}) as response:
            assert await response.aread() == whole


async def test_usage_is_asked_for_and_removed_for_who_did_not_ask():
    worker = ScriptedWorker(stream(delta("hel"), delta("lo", finish="stop"), USAGE, DONE))
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        async with g.streaming() as response:
            body = await response.aread()
        metrics = await g.metrics()
    assert worker.seen[0].json["stream_options"] == {"include_usage": True}
    assert b'"usage"' not in body
    first, last, done = events_of(body)
    assert first + b"\n\n" == delta("hel")
    # vLLM moves the fingerprint into the usage chunk; it comes back to where it would have been.
    assert json.loads(last[6:]) == {
        **json.loads(delta("lo", finish="stop")[6:]),
        "system_fingerprint": "vllm-x",
    }
    assert done == b"data: [DONE]"
    labels = '{model="m",pool="p",workload="chat"}'
    assert metrics[f"paceline_mean_acceptance_length{labels}"] == 2.5
    assert metrics[f"paceline_accepted_tokens_total{labels}"] == 3
    assert metrics[f"paceline_draft_tokens_total{labels}"] == 10
    assert metrics[f"paceline_wasted_verify_tokens_total{labels}"] == 7


async def test_usage_over_several_data_lines_is_removed_too():
    usage = b'data: {"choices":\ndata: [],\ndata: "usage": {"completion_tokens": 4}}\n\n'
    finish = b'data: {"choices": [{"index": 0, "delta": {},\ndata: "finish_reason": "stop"}]}\n\n'
    worker = ScriptedWorker([stream_head(), chunk(finish + usage), END])
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        assert await response.aread() == finish


async def test_with_several_choices_one_that_ended_does_not_make_a_stream_complete():
    script = [stream_head(), chunk(delta("a", finish="stop") + delta("b", index=1)), END]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        async with g.streaming(n=2) as response:
            *_, last = events_of(await response.aread())
    assert json.loads(last[6:])["error"]["code"] == "worker_died"


async def test_text_that_looks_like_a_usage_chunk_is_text():
    tricky = delta('"choices":[], "usage": {"completion_tokens": 9}, data: [DONE]')
    worker = ScriptedWorker(stream(tricky, delta("", finish="stop"), DONE))
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        body = await response.aread()
    assert body == tricky + delta("", finish="stop") + DONE


async def test_a_finishing_chunk_does_not_wait_for_a_usage_chunk_that_never_comes():
    script = [stream_head(), chunk(delta("x", finish="stop")), 1.0, chunk(DONE), END]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        async with g.streaming() as response:
            pieces = [piece async for piece in response.aiter_raw()]
    assert pieces == [delta("x", finish="stop"), DONE]


@pytest.mark.parametrize("code", [400, 404, 429, 503])
@pytest.mark.parametrize("comments", [(), (b": keep-alive\n\n",) * 3])
async def test_an_error_in_place_of_the_first_event_becomes_the_status(code, comments):
    error = {"error": {**REJECTION, "code": code}}
    worker = ScriptedWorker(stream(*comments, event(error), DONE))
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        body = await response.aread()
    assert response.status_code == code
    assert response.headers["content-type"] == "application/json"
    assert json.loads(body) == error
    assert response.headers["x-paceline-pool"] == "p"


async def test_an_error_without_a_status_of_its_own_is_a_bad_gateway():
    worker = ScriptedWorker(stream(event({"error": {"message": "?", "code": "overloaded"}})))
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        await response.aread()
    assert response.status_code == 502


async def test_the_status_is_held_no_longer_than_it_may_be():
    error = event({"error": {**REJECTION, "code": 400}})
    script = [stream_head(), chunk(b": wait\n\n"), 0.6, chunk(error), chunk(DONE), END]
    timeouts = Timeouts(hold_status_s=0.2, shutdown_s=1)
    worker = ScriptedWorker(script)
    async with worker.running(), gateway(pool("p", worker.url), timeouts=timeouts) as g:
        async with g.streaming() as response:
            body = await response.aread()
    assert response.status_code == 200
    assert body == b": wait\n\n" + error + DONE


TEXT = [delta("one "), delta("two "), delta("three")]
WHOLE = b"".join(TEXT)


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
@pytest.mark.parametrize("cut", [len(WHOLE), len(WHOLE) - 1, len(WHOLE) - 20, len(TEXT[0]) + 3])
async def test_a_worker_that_dies_ends_the_stream_with_an_error_event(end: End, cut: int):
    script = [stream_head(), chunk(WHOLE[:cut]), 0.05, end]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        async with g.streaming() as response:
            body = await response.aread()
        metrics = await g.metrics()
    *text, last = events_of(body)
    assert response.status_code == 200
    assert text, "what came whole is passed on"
    assert text == events_of(WHOLE[:cut])[: len(text)], "and nothing but whole events"
    assert json.loads(last[6:])["error"]["code"] == "worker_died"
    assert b"[DONE]" not in body
    assert b'"finish_reason": "' not in body
    labels = '{code="502",model="m",pool="p",workload="chat"}'
    assert metrics[f"paceline_requests_total{labels}"] == 1
    assert g.in_flight == 0


async def test_a_stream_that_ends_cleanly_but_early_is_an_error_too():
    worker = ScriptedWorker([stream_head(), chunk(TEXT[0]), END])
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        *_, last = events_of(await response.aread())
    assert json.loads(last[6:])["error"]["code"] == "worker_died"


@pytest.mark.parametrize("missing", [b"", b"\n", b"\n\n"])
async def test_a_finished_stream_without_done_or_its_last_blank_line_is_complete(missing: bytes):
    last = delta("x", finish="stop").removesuffix(b"\n\n") + missing
    worker = ScriptedWorker([stream_head(), chunk(last), END])
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        body = await response.aread()
    assert events_of(body.rstrip(b"\n")) == events_of(delta("x", finish="stop"))
    assert b'"error"' not in body


async def test_an_empty_finish_reason_is_none():
    worker = ScriptedWorker([stream_head(), chunk(delta("x", finish="")), END])
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        body = await response.aread()
    assert b"worker_died" in body


async def test_nothing_follows_done_and_the_connection_serves_again():
    script = stream(delta("x", finish="stop"), DONE, DONE, delta("after"))
    worker = ScriptedWorker(script)
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for _ in range(3):
            async with g.streaming() as response:
                assert await response.aread() == delta("x", finish="stop") + DONE
        # One of its own for the requests; the probes may hold another.
        assert worker.num_connections <= 2


async def test_a_silent_worker_is_given_up_in_band():
    script = [stream_head(), chunk(TEXT[0]), End.HANG]
    timeouts = Timeouts(between_bytes_s=0.2, shutdown_s=1)
    worker = ScriptedWorker(script)
    async with worker.running(), gateway(pool("p", worker.url), timeouts=timeouts) as g:
        async with g.streaming() as response:
            *_, last = events_of(await response.aread())
    assert json.loads(last[6:])["error"]["code"] == "worker_timeout"
    assert worker.seen[0].client_left.is_set()


async def test_choices_keep_their_index_and_their_order():
    mixed = [delta("a", index=0), delta("b", index=1), delta("c", index=0, finish="stop")]
    mixed += [delta("d", index=1, finish="stop"), DONE]
    worker = ScriptedWorker(stream(*mixed))
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming(n=2) as response:
        assert await response.aread() == b"".join(mixed)


async def test_an_error_event_of_the_worker_mid_stream_passes_as_it_came():
    late = event({"error": {"message": "boom", "type": "InternalServerError", "code": 500}})
    worker = ScriptedWorker(stream(TEXT[0], late, DONE))
    async with worker.running(), gateway(pool("p", worker.url)) as g, g.streaming() as response:
        assert await response.aread() == TEXT[0] + late + DONE


async def test_a_speculating_pool_is_passed_over_for_min_p():
    plain, spec = ScriptedWorker(stream(delta("x", finish="stop"), DONE)), ScriptedWorker([])
    async with plain.running(), spec.running():
        pools = (pool("ngram", spec.url, speculation=NGRAM), pool("plain", plain.url))
        async with gateway(*pools) as g, g.streaming(min_p=0.1) as response:
            await response.aread()
            assert response.headers["x-paceline-pool"] == "plain"
        async with gateway(pools[0]) as g, g.streaming(min_p=0.1) as response:
            refused = json.loads(await response.aread())["error"]
    assert (response.status_code, refused["code"]) == (400, "no_compatible_pool")
    assert "min_p" in refused["message"]
    assert not spec.seen
