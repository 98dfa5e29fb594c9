"""Workers that refuse, encode, answer nonsense or serve something else, and what probes find."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket

import pytest

from harness import eventually, gateway, pool
from paceline.edge import scrape
from paceline.testing.scripted import (
    DONE,
    End,
    ScriptedWorker,
    chunk,
    delta,
    response,
    stream,
    stream_head,
)

ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'


def refusing_url() -> str:
    """An address where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"


async def test_a_worker_that_refuses_is_passed_over_and_marked_down():
    worker = ScriptedWorker([response(ANSWER)])
    gone = refusing_url()
    async with worker.running(), gateway(pool("p", gone, worker.url)) as g:
        for _ in range(4):
            answer = await g.chat()
            assert (answer.status_code, answer.content) == (200, ANSWER)
        metrics = await g.metrics()
    assert metrics[f'paceline_worker_up{{model="m",pool="p",worker="{gone}"}}'] == 0


async def test_with_no_worker_up_the_last_is_still_tried_and_the_error_is_ours():
    async with gateway(pool("p", refusing_url())) as g:
        for _ in range(2):
            answer = await g.chat()
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "worker_unavailable"
        ready = await g.http.get("/ready")
    assert ready.status_code == 503


async def test_a_pinned_pool_that_is_down_spills():
    worker = ScriptedWorker([response(ANSWER)])
    async with worker.running():
        async with gateway(pool("spare", worker.url), pool("usual", refusing_url())) as g:
            await g.chat()
            answer = await g.chat(headers={"x-paceline-explain": "1"})
    explained = json.loads(answer.headers["x-paceline-explain"])
    assert (explained["pool"], explained["reason"]) == ("spare", "spill")
    assert explained["pools"]["usual"] == "all its workers are down"


async def test_a_long_answer_is_passed_on_as_it_comes_and_whole():
    long = json.dumps({"choices": [], "padding": "x" * (9 * 2**20)}).encode()
    worker = ScriptedWorker([response(long)])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        assert (await g.chat()).content == long


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"nonsense\r\n\r\n", "worker_protocol_error"),
        (
            response(b"{}", status=302, extra=["location: http://10.0.0.7:9/"]),
            "worker_protocol_error",
        ),
        (response(b'{"error":"Unauthorized"}', status=401), "worker_protocol_error"),
        (response(ANSWER, extra=["content-encoding: br"]), "worker_protocol_error"),
        (response(b"{}", status=600), "worker_protocol_error"),
        (b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "worker_protocol_error"),
        (
            stream_head() + chunk(b'data: {"error": {"message": "key", "code": 401}}\n\n'),
            "worker_protocol_error",
        ),
        (response(ANSWER, extra=["content-encoding: gzip"]), "worker_protocol_error"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, "worker_protocol_error"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
            "worker_protocol_error",
        ),
    ],
)
async def test_nonsense_from_a_worker_is_a_bad_gateway(answer: bytes, code: str):
    worker = ScriptedWorker([answer])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        got = await g.chat()
    assert (got.status_code, got.json()["error"]["code"]) == (502, code)


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429, 500, 503])
@pytest.mark.parametrize("stream_it", [True, False])
async def test_a_workers_own_error_keeps_status_body_and_retry_after(status: int, stream_it: bool):
    body = b'{"error":{"message":"too long","type":"BadRequestError","param":null,"code":1}}'
    extra = ["Retry-After: 7", "x-ratelimit-remaining: 0", "x-vendor: kept", "Server: uvicorn"]
    worker = ScriptedWorker([response(body, status=status, extra=extra)])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        answer = await g.chat(stream=stream_it)
    assert (answer.status_code, answer.content) == (status, body)
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["x-ratelimit-remaining"] == "0"
    assert answer.headers["x-vendor"] == "kept"
    assert "server" not in answer.headers


@pytest.mark.parametrize("size", [1, 5, 1000])
async def test_an_encoded_stream_is_sent_plain(size: int):
    plain = b"".join([delta("北🌍 " * 50), delta("x", finish="stop"), DONE])
    packed = gzip.compress(plain)
    pieces = [chunk(packed[at : at + size]) for at in range(0, len(packed), size)]
    script = [stream_head("content-encoding: gzip"), *pieces, chunk(b"")]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        async with g.streaming(stream_options={"include_usage": True}) as answer:
            body = await answer.aread()
    assert body == plain
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("missing", [1, 8, 30])
async def test_an_encoded_stream_that_is_cut_is_not_whole_because_http_is(missing: int):
    packed = gzip.compress(delta("x", finish="stop"))[:-missing]
    script = [stream_head("content-encoding: gzip"), chunk(packed), chunk(b"")]
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        answer = await g.chat(stream=True, stream_options={"include_usage": True})
    assert b'"worker_died"' in answer.content


async def test_hop_by_hop_headers_and_lengths_are_the_workers_own():
    extra = ["Connection: x-private, keep-alive", "x-private: 1", "Keep-Alive: timeout=5"]
    worker = ScriptedWorker([response(ANSWER, extra=extra)])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        answer = await g.chat()
    assert answer.headers["content-length"] == str(len(ANSWER))
    assert not {"connection", "x-private", "keep-alive"} & set(answer.headers)


ODD_HEADERS = [
    "x-folded: a\r\n b",
    "x-nul: a\x00b",
    "x-cr: a\rb",
    "x-lf: a\nb",
    "x y: a",
    "x-latin: \xe9",
    "x\xe9: a",
    ": a",
    "x-long: " + "y" * 60_000,
    "content-length: 60",
    "content-length: 61",
    "content-length: +60",
    "transfer-encoding: identity",
    "transfer-encoding: gzip",
    "upgrade: h2c",
    "connection: close, upgrade\r\nupgrade: h2c",
    "trailer: x",
    "content-encoding: identity",
    "content-encoding: GZIP",
    "content-type: text/html",
]


@pytest.mark.parametrize("odd", ODD_HEADERS)
async def test_an_odd_header_is_a_bad_gateway_or_no_matter_and_never_half_an_answer(odd: str):
    """Nor does one header of a worker become two of ours."""
    answer = response(ANSWER, extra=[odd]).replace(odd.encode(), odd.encode("latin-1"))
    worker = ScriptedWorker([answer])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        for _ in range(2):
            got = await g.chat()
            if got.status_code == 200:
                assert got.content == ANSWER
                assert got.headers["content-length"] == str(len(ANSWER))
                assert not {"b", "transfer-encoding", "upgrade", "trailer"} & set(got.headers)
            else:
                assert got.status_code == 502
                assert got.json()["error"]["code"] in ("worker_protocol_error", "worker_died")


@pytest.mark.parametrize("kind", ["text/event-stream", "Text/Event-Stream; charset=utf-8"])
async def test_a_stream_is_one_by_its_type_however_that_is_written(kind: str):
    head = stream_head().replace(b"text/event-stream; charset=utf-8", kind.encode())
    worker = ScriptedWorker([head, chunk(delta("one")), End.CLOSE])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        got = await g.chat(stream=True)
    assert got.status_code == 200
    assert got.content.startswith(delta("one"))
    assert b"worker_died" in got.content


@pytest.mark.parametrize("stream_it", [False, True])
async def test_an_answer_of_the_other_kind_than_asked_for_passes(stream_it: bool):
    script = [response(ANSWER)] if stream_it else stream(delta("x", finish="stop"), DONE)
    wanted = ANSWER if stream_it else delta("x", finish="stop") + DONE
    async with ScriptedWorker(script).running() as worker, gateway(pool("p", worker.url)) as g:
        got = await g.chat(stream=stream_it)
    assert (got.status_code, got.content) == (200, wanted)


# -- what probes find --------------------------------------------------------------------------


async def test_a_worker_that_comes_back_is_used_again(monkeypatch):
    monkeypatch.setattr(scrape, "PERIOD_S", 0.1)
    first = ScriptedWorker([response(ANSWER)])
    async with first.running(), gateway(pool("p", first.url)) as g:
        worker = g.fleet.workers[first.url]
        first.stop()
        await eventually(lambda: not worker.up)
        await first.listen()
        await eventually(lambda: worker.up)
        assert (await g.chat()).content == ANSWER


async def test_load_is_read_from_all_engines_and_unknown_is_not_zero():
    worker = ScriptedWorker([response(ANSWER)])
    worker.metrics = b"""# TYPE vllm:num_requests_waiting mystery
vllm:num_requests_running{engine="0"} 2.0
vllm:num_requests_running{engine="1"} 3.0
vllm:num_requests_waiting{engine="0"} NaN
vllm:kv_cache_usage_perc{engine="0"} 0.5
a bad line {{{
vllm:kv_cache_usage_perc{engine="1"} 0.7
"""

    async with worker.running(), gateway(pool("p", worker.url)) as g:

        async def state():
            answer = (await g.http.get(f"{g.admin_url}/admin/state")).json()
            return answer["models"][0]["pools"][0]["workers"][0]

        await eventually(lambda: g.fleet.workers[worker.url].card is not None)
        seen = await state()
    assert (seen["running"], seen["waiting"]) == (5.0, None)
    assert seen["kv_cache_usage"] == pytest.approx(0.6)


# -- what operators read -----------------------------------------------------------------------


async def test_a_failed_request_is_logged_with_its_worker(caplog):
    worker = ScriptedWorker([stream_head(), chunk(delta("one")), 0.05, End.CLOSE])
    async with worker.running(), gateway(pool("p", worker.url)) as g:
        async with g.streaming(headers={"x-request-id": "abc"}) as answer:
            await answer.aread()
        async with g.streaming(model="nope") as refused:
            await refused.aread()
    [line] = [record.getMessage() for record in caplog.records if "abc" in record.getMessage()]
    assert worker.url in line
    assert "worker_died" in line
    assert "nope" not in caplog.text, "callers' own mistakes are theirs"


async def test_a_worker_that_serves_another_model_or_refuses_our_key_is_named_once(
    caplog, monkeypatch
):
    monkeypatch.setattr(scrape, "PERIOD_S", 0.1)
    other = ScriptedWorker([response(ANSWER)])
    other.models = b'{"object":"list","data":[{"id":"other","object":"model"}]}'
    locked = ScriptedWorker([response(ANSWER)])
    locked.models_status = 401
    async with other.running(), locked.running(), gateway(pool("p", other.url, locked.url)):
        await eventually(lambda: len(caplog.records) >= 2)
        await asyncio.sleep(0.3)  # probes later
    said = sorted(record.getMessage() for record in caplog.records)
    assert (
        sorted(
            [
                f"worker {other.url}: it serves other, not up",
                f"worker {locked.url}: /v1/models answered 401: is its key right?",
            ]
        )
        == said
    )
