"""The main job on a real engine: a real model, real n-gram speculation, real bursts.

What is true at any speed is tested here: text, bytes, counters, errors, cancellation. No times.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError

from harness import NGRAM, Served, eventually, gateway, pool, prefer
from paceline.core.exposition import SPECULATION, samples
from paceline.core.types import Workload
from paceline.edge.scrape import discover

pytestmark = pytest.mark.vllm

DOCUMENT = (
    "The quick brown fox jumped over the lazy dog. The dog did not notice, becuase it was sleeping "
    "under the old tree near the river. In the morning the farmer came to the river and saw the "
    "fox, but the fox ran away into the forest before the farmer could call the dog."
)
EDIT = f"Correct the spelling in this text and return it in full:\n\n{DOCUMENT}"
CHAT = "Why is the sky blue? Explain it to a child."
GREEDY: Mapping[str, Any] = {"temperature": 0, "max_tokens": 64, "seed": 7}


@contextlib.asynccontextmanager
async def both(workers: Any, **more: Any) -> AsyncIterator[Served]:
    pools = (
        pool("ngram", workers.ngram.url, speculation=NGRAM),
        pool("plain", workers.plain.url),
    )
    rules = [prefer(Workload.EDIT, "ngram")]
    async with gateway(*pools, rules=rules, upstream_name="smollm2", **more) as served:
        yield served


def body_of(prompt: str, model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": prompt}], **GREEDY, **more}


async def post(url: str, body: dict[str, Any], path: str = "/v1/chat/completions") -> bytes:
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        answer = await http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.content


def timeless(body: bytes) -> bytes:
    """Bytes without what differs between any two answers: ids and the second of creation."""
    return re.sub(rb'"(id|created)":(?:"[^"]*"|\d+)', rb'"\1":"-"', body)


async def worker_metrics(url: str) -> dict[str, float]:
    """Sums over label sets, by name."""
    async with httpx.AsyncClient(timeout=30) as http:
        text = (await http.get(f"{url}/metrics")).text
    totals: dict[str, float] = {}
    for sample in samples(text):
        totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    return totals


@pytest.mark.parametrize(("prompt", "name"), [(EDIT, "ngram"), (CHAT, "plain")])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": {"include_usage": False}},
        {"stream": True, "stream_options": {"continuous_usage_stats": True}},
        {
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_token_ids": True,
            "n": 2,
            "temperature": 0.7,
        },
    ],
)
async def test_the_same_answer_as_from_the_worker(workers, prompt, name, more):
    """Not streamed: the same JSON. Streamed: the same text, and the same chunks where the engine
    itself cuts them the same way."""
    worker = getattr(workers, name)
    async with both(workers) as g:
        through = timeless(await post(g.url, body_of(prompt, "m", **more)))
    direct = timeless(await post(worker.url, body_of(prompt, "smollm2", **more)))
    if not more.get("stream"):
        assert json.loads(through) == json.loads(direct)
        return
    if more.get("temperature"):  # what is sampled beside drafts is another text each time
        assert text_of(through).keys() == text_of(direct).keys()
    else:
        assert text_of(through) == text_of(direct)
    assert through.count(b"data: [DONE]\n\n") == 1
    # A busy front end merges passes into one chunk; where it did so alike, every byte is the same.
    if through.count(b"\n\n") == direct.count(b"\n\n"):
        assert shape(through) == shape(direct)


def chunks_of(body: bytes) -> list[dict[str, Any]]:
    events = [part.removeprefix(b"data: ") for part in body.split(b"\n\n") if part]
    return [json.loads(data) for data in events if data != b"[DONE]"]


def text_of(body: bytes) -> dict[int, str]:
    texts: dict[int, str] = {}
    for chunk in chunks_of(body):
        for choice in chunk["choices"]:
            piece = choice["delta"].get("content") or ""
            texts[choice["index"]] = texts.get(choice["index"], "") + piece
    return texts


def shape(body: bytes) -> list[bytes]:
    """The stream's events without their text, in the order of choices and kinds: all their keys."""
    no_text = re.sub(rb'"content":"(?:[^"\\]|\\.)*"|"token_ids":\[[\d,]*\]', b"-", body)
    no_text = re.sub(rb'"(?:completion|total)_tokens":\d+', b"-", no_text)
    return sorted(re.sub(rb'"index":\d', b"-", no_text).split(b"\n\n"))


async def test_completions_are_served_alike(workers):
    body = {"prompt": "The river ran", "max_tokens": 24, "temperature": 0, "model": "m"}
    async with both(workers) as g:
        through = await post(g.url, body, "/v1/completions")
        streamed = await post(g.url, {**body, "stream": True}, "/v1/completions")
    direct = await post(workers.plain.url, {**body, "model": "smollm2"}, "/v1/completions")
    assert json.loads(timeless(through)) == json.loads(timeless(direct))
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks_of(streamed))
    assert text == json.loads(direct)["choices"][0]["text"]


TURN = {"role": "user", "content": CHAT}
NAMED_FAMILIES: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": CHAT, "max_output_tokens": 24, "temperature": 0},
    "/v1/messages": {"messages": [TURN], "max_tokens": 24, "temperature": 0, "system": "Be kind."},
}
_ITS_OWN = re.compile(rb'"(id|item_id|created_at|completed_at)":(?:"[^"]*"|[\d.]+)')


@pytest.mark.parametrize("path", NAMED_FAMILIES)
@pytest.mark.parametrize("name", ["ngram", "plain"])
async def test_responses_and_messages_are_the_workers_own(workers, path, name):
    body, url = NAMED_FAMILIES[path], getattr(workers, name).url
    # Asked once before, so that as much of the prompt is cached for the one as for the other.
    await post(url, {**body, "model": "smollm2"}, path)
    async with gateway(pool("p", url), upstream_name="smollm2") as g:
        whole, streamed = [
            _ITS_OWN.sub(b'"\\1":"-"', await post(g.url, {**body, "model": "m", **more}, path))
            for more in ({}, {"stream": True})
        ]
    direct, direct_streamed = [
        _ITS_OWN.sub(b'"\\1":"-"', await post(url, {**body, "model": "smollm2", **more}, path))
        for more in ({}, {"stream": True})
    ]
    assert json.loads(whole) == json.loads(direct)
    events, theirs = events_of(streamed), events_of(direct_streamed)
    assert pieces_of(events) == pieces_of(theirs) != ""
    assert [e for e in events if not is_piece(e)] == [e for e in theirs if not is_piece(e)]
    # A busy front end merges passes into one event; where it did so alike, every byte is the same.
    if len(events) == len(theirs):
        assert streamed == direct_streamed


def events_of(body: bytes) -> list[dict[str, Any]]:
    """Without the numbers of the Responses API, which count merged events too."""
    events = [json.loads(data) for data in re.findall(rb"(?m)^data: (.*)$", body)]
    for event in events:
        event.pop("sequence_number", None)
    return events


def is_piece(event: dict[str, Any]) -> bool:
    return event["type"] in ("response.output_text.delta", "content_block_delta")


def pieces_of(events: list[dict[str, Any]]) -> str:
    deltas = [event["delta"] for event in events if is_piece(event)]
    return "".join(delta if isinstance(delta, str) else delta["text"] for delta in deltas)


async def test_tokens_of_messages_are_counted_as_the_worker_counts_them(workers):
    body, path = {"messages": [TURN], "system": "Be kind."}, "/v1/messages/count_tokens"
    async with both(workers) as g:
        through = await post(g.url, {**body, "model": "m"}, path)
    direct = await post(workers.plain.url, {**body, "model": "smollm2"}, path)
    assert through == direct
    assert json.loads(through)["input_tokens"] > 10


async def test_edits_draft_on_the_ngram_pool_and_chat_goes_plain(workers):
    async with both(workers) as g:
        async with AsyncOpenAI(base_url=f"{g.url}/v1", api_key="none", max_retries=0) as client:
            for prompt, name, workload in ((EDIT, "ngram", "edit"), (CHAT, "plain", "chat")):
                raw = await client.chat.completions.with_raw_response.create(
                    **body_of(prompt, "m"), stream=True
                )
                text = [c.choices[0].delta.content or "" async for c in raw.parse() if c.choices]
                assert raw.headers["x-paceline-pool"] == name
                assert raw.headers["x-paceline-workload"] == workload
                assert "".join(text)
        metrics = await g.metrics()
    length = metrics['paceline_mean_acceptance_length{model="m",pool="ngram",workload="edit"}']
    print(f"mean acceptance length of the edit: {length:.2f}")  # noqa: T201
    assert length > 2


async def test_our_counters_agree_with_the_workers(workers):
    before = await worker_metrics(workers.ngram.url)
    async with both(workers) as g:
        for stream in (True, False):
            await post(g.url, body_of(EDIT, "m", stream=stream))
        ours = await g.metrics()
    after = await worker_metrics(workers.ngram.url)
    labels = '{model="m",pool="ngram",workload="edit"}'
    for name, theirs in (
        ("paceline_draft_tokens_total", f"{SPECULATION}num_draft_tokens_total"),
        ("paceline_accepted_tokens_total", f"{SPECULATION}num_accepted_tokens_total"),
    ):
        assert ours[name + labels] == after[theirs] - before[theirs] > 0
    drafts = f"{SPECULATION}num_drafts_total"
    accepted = f"{SPECULATION}num_accepted_tokens_total"
    length = 1 + (after[accepted] - before[accepted]) / (after[drafts] - before[drafts])
    assert ours[f"paceline_mean_acceptance_length{labels}"] == pytest.approx(length)


async def test_late_validation_keeps_its_true_status(workers):
    """vLLM answers 200 and then an error event; a pool that hides its speculation shows it."""
    hidden = pool("hidden", workers.ngram.url)
    async with gateway(hidden, upstream_name="smollm2") as g:
        for stream in (True, False):
            body = body_of(CHAT, "m", min_p=0.1, stream=stream, temperature=0.7)
            answer = await g.http.post("/v1/chat/completions", json=body)
            assert answer.status_code == 400
            assert "min_p" in answer.json()["error"]["message"]
        async with AsyncOpenAI(base_url=f"{g.url}/v1", api_key="none", max_retries=0) as client:
            with pytest.raises(BadRequestError):
                await client.chat.completions.create(
                    **body_of(CHAT, "m"), stream=True, extra_body={"logit_bias": {"5": 1}}
                )


async def test_min_p_goes_to_the_plain_pool_or_is_refused(workers):
    async with both(workers) as g:
        async with g.streaming(EDIT, min_p=0.05, max_tokens=4, temperature=0.7) as answer:
            assert (answer.status_code, answer.headers["x-paceline-pool"]) == (200, "plain")
            await answer.aread()
    alone = pool("ngram", workers.ngram.url, speculation=NGRAM)
    async with gateway(alone, upstream_name="smollm2") as g:
        greedy = await g.chat(EDIT, min_p=0.05, temperature=0, max_tokens=4)
        answer = await g.chat(EDIT, min_p=0.05)
    assert greedy.status_code == 200, "greedy sampling ignores min_p, and so does vLLM's check"
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no_compatible_pool")


NEVER_ENDING = {"max_tokens": 400, "ignore_eos": True}


@pytest.mark.parametrize("window", ["before the first token", "mid-stream", "not streaming"])
async def test_a_client_that_leaves_frees_the_engine(workers, window):
    """The gateway lets go at once; the engine does so when its pass ends, however slow the machine
    is, and long before it has written what was asked for."""

    async def metric(name: str) -> float:
        return (await worker_metrics(workers.plain.url)).get(f"vllm:{name}", 0.0)

    async def running_is(expected: bool) -> None:
        async with asyncio.timeout(60):
            while (await metric("num_requests_running") > 0) != expected:  # noqa: ASYNC110 (a gauge)
                await asyncio.sleep(0.05)

    await running_is(False)
    written = await metric("generation_tokens_total")
    # A long prompt holds the engine in prefill for some seconds: time to leave before a token.
    words = "river tree dog fox farmer " * (300 if window == "before the first token" else 5)
    body = body_of(f"Why do rivers bend? {words}", "m", stream=window != "not streaming")
    async with both(workers) as g:
        async with asked_on_a_socket(g, body | NEVER_ENDING) as answer:
            if window == "mid-stream":
                for _ in range(4):
                    await answer.readuntil(b"data: ")
            else:
                await running_is(True)
        await eventually(lambda: g.in_flight == 0, within_s=60)
        await running_is(False)
    assert await metric("generation_tokens_total") - written < NEVER_ENDING["max_tokens"]


@contextlib.asynccontextmanager
async def asked_on_a_socket(g: Served, body: dict[str, Any]) -> AsyncIterator[asyncio.StreamReader]:
    """The answer as it comes; the socket is closed with the context, whatever came so far."""
    address = httpx.URL(g.url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        written = json.dumps(body).encode()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(written), written)
        )
        yield reader
    finally:
        writer.close()


async def test_a_worker_tells_its_model_and_its_k(workers):
    ngram, plain = await discover(workers.ngram.url), await discover(workers.plain.url)
    assert (ngram.model, ngram.num_speculative_tokens) == ("smollm2", 5)
    assert (plain.model, plain.num_speculative_tokens) == ("smollm2", None)


async def test_load_comes_from_the_workers_own_metrics(workers):
    async with both(workers) as g:
        # Longer than several scrapes: what ends between two of them is never seen running.
        asking = asyncio.create_task(g.chat(CHAT, max_tokens=1500, ignore_eos=True, temperature=0))
        plain = g.fleet.workers[workers.plain.url]
        await eventually(lambda: plain.load(g.fleet.now_s()).running == 1, within_s=20)
        asking.cancel()
        assert plain.load(g.fleet.now_s()).kv_cache_usage is not None
        models = (await g.http.get("/v1/models")).json()["data"]
    assert models[0]["max_model_len"] == 2048


@dataclass
class Seen:
    text: str = ""
    finishes: list[str] = field(default_factory=list)


async def read(stream: Any, seen: Seen, *, kill_after: int, worker: Any) -> None:
    num_chunks = 0
    async for chunk in stream:
        num_chunks += 1
        seen.text += chunk.choices[0].delta.content or ""
        seen.finishes += filter(None, [chunk.choices[0].finish_reason])
        if num_chunks == kill_after:
            worker.kill()


@pytest.mark.ends_a_worker
async def test_killing_a_worker_mid_stream_gives_the_error_event(workers):
    async with both(workers) as g:
        async with AsyncOpenAI(base_url=f"{g.url}/v1", api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(
                **{**body_of(CHAT, "m"), "max_tokens": 400}, stream=True
            )
            seen = Seen()
            with pytest.raises(APIError) as failure:
                await read(stream, seen, kill_after=5, worker=workers.plain)
        # The other pool serves on; what was meant for the dead one spills there.
        answer = await g.chat(CHAT, max_tokens=4, headers={"x-paceline-explain": "1"})
    assert seen.text
    assert not seen.finishes
    assert failure.value.body["code"] == "worker_died"
    assert (answer.status_code, answer.headers["x-paceline-pool"]) == (200, "ngram")
