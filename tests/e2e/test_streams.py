"""Streams through the gateway: usage that was asked for by us alone, and gates."""

from __future__ import annotations

import json

from harness import NGRAM, gateway, pool
from paceline.testing.scripted import (
    DONE,
    END,
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


def events_of(body: bytes) -> list[bytes]:
    return [part for part in body.split(b"\n\n") if part]


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


async def test_a_finishing_chunk_does_not_wait_for_a_usage_chunk_that_never_comes():
    script = [stream_head(), chunk(delta("x", finish="stop")), 1.0, chunk(DONE), END]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        async with g.streaming() as response:
            pieces = [piece async for piece in response.aiter_raw()]
    assert pieces == [delta("x", finish="stop"), DONE]


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
