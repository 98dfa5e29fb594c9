"""The Python SDK on sockets: against workers made of bytes, and through a gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest

from harness import eventually, gateway, pool
from paceline.testing.scripted import (
    DONE,
    END,
    End,
    ScriptedWorker,
    Step,
    chunk,
    delta,
    event,
    response,
    stream,
    stream_head,
)
from paceline.testing.sim_worker import SimWorkerOptions, parse_speculation, running_sim_worker
from paceline_client import (
    AsyncClient,
    BadRequestError,
    BadStreamError,
    Client,
    ConnectError,
    ConnectionCutError,
    IncompleteStreamError,
    OverloadedError,
    Retries,
    StreamError,
    StreamErrorEvent,
    chunk_text,
    client,
    smooth,
)

BODY = {"model": "up", "messages": [{"role": "user", "content": "hi"}]}
QUICK = Retries(first_s=0.001)
NGRAM = '{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_max":4}'


async def text_from(api: AsyncClient, **more: Any) -> str:
    async with api.stream(**BODY, **more) as chunks:
        return "".join([chunk_text(one) async for one in chunks])


async def drain(chunks: AsyncIterator[Any], shown: list[str]) -> None:
    """Keeps the text of every chunk, up to an error."""
    async for one in chunks:
        shown.append(chunk_text(one if isinstance(one, dict) else one.model_dump()))


def api_of(worker: ScriptedWorker) -> AsyncClient:
    return AsyncClient(f"{worker.url}/v1", retries=QUICK)


GOOD = stream(delta("Hello"), b": pace n=2 t=40 next=40\n" + delta(" world", finish="stop"), DONE)


async def test_a_stream_comes_whole_and_asks_for_hints() -> None:
    async with ScriptedWorker(GOOD).running() as worker, api_of(worker) as api:
        assert await text_from(api, temperature=0.5) == "Hello world"
    seen = worker.seen[0]
    assert seen.json == {**BODY, "temperature": 0.5, "stream": True}
    assert seen.header("x-paceline-hints") == ["1"]


async def test_a_whole_answer() -> None:
    answer = response(json.dumps({"choices": []}).encode())
    async with ScriptedWorker([answer]).running() as worker, api_of(worker) as api:
        assert await api.chat(**BODY) == {"choices": []}


HEAD = stream_head()
BROKEN: list[tuple[list[Step], type[StreamError]]] = [
    ([HEAD, chunk(delta("Hello world")), End.RESET], ConnectionCutError),
    ([HEAD, chunk(delta("Hello world")), End.CLOSE], ConnectionCutError),
    (stream(delta("Hello world")), IncompleteStreamError),
    (stream(delta("Hello world"), b'data: {"half":'), IncompleteStreamError),
    (stream(delta("Hello world"), event({"error": {"message": "m"}})), StreamErrorEvent),
    (stream(delta("Hello world"), b"data: {not json\n\n"), BadStreamError),
]


@pytest.mark.parametrize(("script", "kind"), BROKEN)
async def test_what_goes_wrong_is_raised_after_the_text(
    script: list[Step], kind: type[StreamError]
) -> None:
    async with ScriptedWorker(script).running() as worker, api_of(worker) as api:
        shown: list[str] = []
        async with api.stream(**BODY) as chunks:
            with pytest.raises(kind):
                await drain(chunks, shown)
        assert "".join(shown) == "Hello world"
        assert len(worker.seen) == 1  # never a second try after the first byte


@pytest.mark.parametrize(("script", "kind"), BROKEN)
async def test_the_same_without_asyncio(script: list[Step], kind: type[StreamError]) -> None:
    def read(url: str) -> str:
        shown: list[str] = []
        with Client(f"{url}/v1") as api, api.stream(**BODY) as chunks, pytest.raises(kind):
            shown.extend(map(chunk_text, chunks))
        return "".join(shown)

    async with ScriptedWorker(script).running() as worker:
        assert await asyncio.to_thread(read, worker.url) == "Hello world"


async def test_overload_is_asked_again_and_refusals_are_not() -> None:
    busy = response(b"{}", status=503, extra=["retry-after: 0", "connection: close"])
    wrong = response(b'{"error":{"message":"bad"}}', status=400)
    scripts = [[busy, End.CLOSE], [busy, End.CLOSE], [*GOOD, End.CLOSE], [wrong]]
    async with ScriptedWorker(*scripts).running() as worker, api_of(worker) as api:
        assert await text_from(api) == "Hello world"
        with pytest.raises(BadRequestError, match="bad"):
            await text_from(api)
    assert len(worker.seen) == 4


async def test_the_client_without_asyncio_tries_again_too() -> None:
    busy = response(b"{}", status=503, extra=["retry-after: 0", "connection: close"])
    answer = response(b'{"choices":[]}')

    def ask(url: str) -> dict[str, Any]:
        with Client(f"{url}/v1", retries=QUICK) as api:
            return api.chat(**BODY)

    async with ScriptedWorker([busy, End.CLOSE], [answer]).running() as worker:
        assert await asyncio.to_thread(ask, worker.url) == {"choices": []}


async def test_patience_has_an_end() -> None:
    busy = response(b'{"error":{"message":"full"}}', status=503, extra=["retry-after: 3600"])
    async with ScriptedWorker([busy]).running() as worker, api_of(worker) as api:
        with pytest.raises(OverloadedError, match="full") as caught:
            await text_from(api)
    assert caught.value.retry_after_s == 3600
    assert len(worker.seen) == 1


async def test_nobody_there() -> None:
    async with AsyncClient("http://127.0.0.1:9/v1", retries=QUICK) as api:
        with pytest.raises(ConnectError):
            await api.chat(**BODY)


async def test_an_address_without_its_scheme_is_named() -> None:
    async with AsyncClient("127.0.0.1:9/v1", retries=QUICK) as api:
        with pytest.raises(ConnectError, match=r"no answer from 127\.0\.0\.1:9/v1.* 'http://'"):
            await api.chat(**BODY)


async def test_an_answer_that_is_no_stream() -> None:
    async with ScriptedWorker([response(b"{}")]).running() as worker, api_of(worker) as api:
        with pytest.raises(BadStreamError, match="application/json"):
            await text_from(api)


async def test_leaving_early_closes_the_connection() -> None:
    silent: list[Step] = [HEAD, chunk(delta("first")), End.HANG]
    async with ScriptedWorker(silent).running() as worker, api_of(worker) as api:
        async with api.stream(**BODY) as chunks:
            async for _ in chunks:
                break
        await eventually(worker.seen[0].client_left.is_set, within_s=1)


async def test_abort_closes_the_connection() -> None:
    silent: list[Step] = [HEAD, chunk(delta("first")), End.HANG]
    async with ScriptedWorker(silent).running() as worker, api_of(worker) as api:
        async with api.stream(**BODY) as chunks:
            await anext(chunks)
            asyncio.get_running_loop().call_soon(asyncio.create_task, chunks.abort())
            after = [one["choices"][0]["delta"]["content"] async for one in chunks]
        assert "irst".startswith("".join(after)), "what was due before it was heard, and no more"
        await eventually(worker.seen[0].client_left.is_set, within_s=1)


async def test_after_the_finish_it_waits_a_little_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "GRACE_S", 0.05)
    no_end: list[Step] = [HEAD, chunk(delta("all", finish="stop")), End.HANG]
    async with ScriptedWorker(no_end).running() as worker, api_of(worker) as api:
        assert await text_from(api) == "all"


async def test_a_read_that_ends_within_a_character() -> None:
    data = delta("北🌍", finish="stop") + DONE
    place = data.index("🌍".encode()) + 2
    script = [HEAD, chunk(data[:place]), chunk(data[place:]), END]
    async with ScriptedWorker(script).running() as worker, api_of(worker) as api:
        assert await text_from(api) == "北🌍"


# ---- the openai package's streams ----------------------------------------------------------------


def openai_of(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


async def test_a_stream_of_the_openai_package() -> None:
    async with ScriptedWorker(GOOD).running() as worker, openai_of(worker.url) as api:
        source = await api.chat.completions.create(**BODY, stream=True)
        async with smooth(source) as chunks:
            text = "".join([one.choices[0].delta.content or "" async for one in chunks])
    assert text == "Hello world"


async def test_leaving_a_stream_of_the_openai_package_closes_it() -> None:
    silent: list[Step] = [HEAD, chunk(delta("first")), End.HANG]
    async with ScriptedWorker(silent).running() as worker, openai_of(worker.url) as api:
        source = await api.chat.completions.create(**BODY, stream=True)
        async with smooth(source) as chunks:
            async for _ in chunks:
                break
        await eventually(worker.seen[0].client_left.is_set, within_s=1)


async def test_an_error_event_through_the_openai_package_comes_after_the_text() -> None:
    script = stream(delta("Hello"), event({"error": {"message": "worker died"}}))
    async with ScriptedWorker(script).running() as worker, openai_of(worker.url) as api:
        source = await api.chat.completions.create(**BODY, stream=True)
        shown: list[str] = []
        async with smooth(source) as chunks:
            with pytest.raises(openai.APIError, match="worker died"):
                await drain(chunks, shown)
    assert "".join(shown) == "Hello"


# ---- through a gateway ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2])
async def test_what_a_simulated_worker_says_comes_through_smooth_and_whole(n: int) -> None:
    options = SimWorkerOptions(model="up", speculation=parse_speculation(NGRAM), step_s=0.004)
    request = {"model": "m", "messages": [{"role": "user", "content": "Repeat: a b c d e f g"}]}
    more = {"n": n, "logprobs": True, "max_tokens": 60, "seed": 3, "temperature": 0.5}
    async with running_sim_worker(options) as url, gateway(pool("ngram", url)) as served:
        whole = await served.http.post("/v1/chat/completions", json={**request, **more})
        async with (
            AsyncClient(f"{served.url}/v1") as api,
            api.stream(**request, **more, stream_options={"include_usage": True}) as chunks,
        ):
            got = [one async for one in chunks]
            route, stats = chunks.route, chunks.stats
    assert route.pool == "ngram"
    assert route.request_id
    assert stats.max_added_delay_ms <= 400
    assert got[-1]["usage"]["completion_tokens"] == whole.json()["usage"]["completion_tokens"]
    for index in range(n):
        own = [c for one in got for c in one["choices"] if c["index"] == index]
        expected = whole.json()["choices"][index]
        assert (
            "".join(c["delta"].get("content") or "" for c in own) == expected["message"]["content"]
        )
        tokens = [e["token"] for c in own if c.get("logprobs") for e in c["logprobs"]["content"]]
        assert tokens == [e["token"] for e in expected["logprobs"]["content"]]
        assert [c["finish_reason"] for c in own][-1] == expected["finish_reason"]


async def test_a_client_of_ones_own() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"authorization": request.headers["authorization"]})

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    async with AsyncClient("http://x/v1/", api_key="k", http=http) as api:
        assert await api.chat(**BODY) == {"authorization": "Bearer k"}
