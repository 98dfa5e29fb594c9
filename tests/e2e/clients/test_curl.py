"""curl against the gateway: the bytes of its answers, and the corners of HTTP that it knows."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from families import CHAT, FAMILIES, Family
from harness import Served, eventually, gateway, pool
from official import MODEL, recording
from paceline.core.types import Endpoint
from paceline.edge.endpoints import ENDPOINTS
from paceline.settings import Listen
from paceline.testing.scripted import (
    End,
    ScriptedWorker,
    chunk,
    delta,
    response,
    stream,
    stream_head,
)
from through import AUTH, KEY, program, through

WHOLE = b'{"choices": [ {"index":0,"message":{"content":"\\u00e9 \xe5\x8c\x97"}} ], "new": [1.0]}'
PAGE = "https://app.example"
JSON = ("-H", "content-type: application/json")


@contextlib.asynccontextmanager
async def running_curl(url: str, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(program("curl"), "--disable", "-sS", "--max-time", "20", "--noproxy", "*"),
        *("-H", f"authorization: Bearer {KEY}", *args, url),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def curl(url: str, *args: str) -> tuple[bytes, bytes, str]:
    """The last head of the answer and its body, and what else curl said (with -v: the talk)."""
    async with running_curl(url, "-i", *args) as process:
        out, err = await process.communicate()
    assert process.returncode == 0, err
    while out.startswith(b"HTTP/1.1 100"):
        out = out.partition(b"\r\n\r\n")[2]
    head, _, body = out.partition(b"\r\n\r\n")
    return head.lower(), body, err.decode()


@contextlib.asynccontextmanager
async def before(*steps: object) -> AsyncIterator[tuple[Served, ScriptedWorker]]:
    """A gateway before a worker that plays these steps."""
    listen = Listen(port=0, cors_origins=(PAGE,))
    async with ScriptedWorker(list(steps)).running() as worker:
        async with gateway(pool("p", worker.url), auth=AUTH, listen=listen) as served:
            yield served, worker


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("version", ["--http1.0", "--http1.1"])
async def test_a_streams_bytes_are_the_workers(family: Family, version: str):
    async with before(*stream(family.whole)) as (served, _):
        body = json.dumps(family.body)
        url = served.url + family.path
        head, received, _ = await curl(url, "-N", version, *JSON, "-d", body)
    assert received == family.seen_of(family.whole)
    assert head.startswith(b"http/1.1 200 ok")
    assert b"\r\ncontent-type: text/event-stream" in head
    assert (b"\r\ntransfer-encoding: chunked" in head) == (version == "--http1.1")
    assert (b"\r\nconnection: close" in head) == (version == "--http1.0")


async def test_events_come_as_they_are_written_and_leaving_frees_the_worker():
    first = delta("one ")
    async with before(stream_head(), chunk(first), End.HANG) as (served, worker):
        ask = json.dumps(CHAT.body)
        async with running_curl(served.url + CHAT.path, "-N", *JSON, "-d", ask) as process:
            assert process.stdout is not None
            async with asyncio.timeout(5):
                assert await process.stdout.readexactly(len(first)) == first
            assert not worker.seen[0].client_left.is_set()
            process.terminate()
            async with asyncio.timeout(1):
                await worker.seen[0].client_left.wait()
        await eventually(lambda: served.in_flight == 0)


@pytest.mark.parametrize("version", ["--http1.0", "--http1.1"])
async def test_a_whole_answers_bytes_are_the_workers(version: str):
    async with before(response(WHOLE)) as (served, worker):
        ask = '{"model":"m", "messages":[], "unheard_of": {"of": 1.50}}'
        for more in ((), ("--compressed",)):
            head, body, _ = await curl(served.url + CHAT.path, version, *more, *JSON, "-d", ask)
            assert body == WHOLE
            assert b"content-length: %d" % len(WHOLE) in head
            assert b"content-encoding" not in head
    for seen in worker.seen:
        assert seen.body == ask.replace('"m"', '"up"').encode()
        assert seen.header("authorization") == []


async def test_a_large_body_waits_for_its_continue_and_arrives_whole(tmp_path: Path):
    ask = b'{"model":"m","messages":[{"role":"user","content":"' + b"words " * 350_000 + b'"}]}'
    file = tmp_path / "ask.json"
    file.write_bytes(ask)
    # curl waits far longer for the continue than for its whole request.
    waits = ("-v", "-H", "expect: 100-continue", "--expect100-timeout", "60")
    async with before(response(WHOLE)) as (served, worker):
        data = ("--data-binary", f"@{file}")
        _, body, talk = await curl(served.url + CHAT.path, *waits, *JSON, *data)
    assert len(ask) > 2_000_000
    assert "< HTTP/1.1 100 Continue" in talk
    assert body == WHOLE
    assert worker.seen[0].body == ask.replace(b'"m"', b'"up"')
    assert worker.seen[0].header("expect") == []


async def test_a_compressed_body_is_understood(tmp_path: Path):
    file = tmp_path / "ask.json.gz"
    file.write_bytes(gzip.compress(json.dumps(CHAT.body).encode()))
    async with before(*stream(CHAT.whole)) as (served, worker):
        zipped = ("-H", "content-encoding: gzip", "--data-binary", f"@{file}")
        _, body, _ = await curl(served.url + CHAT.path, "--compressed", *JSON, *zipped)
    assert body == CHAT.whole
    assert worker.seen[0].json == {**CHAT.body, "model": "up"}


async def test_a_wrong_method_is_told_the_right_one():
    async with before(response(WHOLE)) as (served, worker):
        for path, endpoint in ENDPOINTS.items():
            for method in ("GET", "PUT", "DELETE"):
                head, body, _ = await curl(served.url + path, "-X", method)
                assert head.startswith(b"http/1.1 405 ")
                assert b"\r\nallow: post" in head
                error = json.loads(body)["error"]
                assert "takes POST" in error["message"]
                anthropics = endpoint in (Endpoint.MESSAGES, Endpoint.COUNT_TOKENS)
                assert (error["type"] == "invalid_request_error") or not anthropics
        head, body, _ = await curl(f"{served.url}/v1/models", "--head")
        assert head.startswith(b"http/1.1 200 ")
        assert not body
    assert not worker.seen


async def test_a_pages_preflight_is_answered():
    async with before(response(WHOLE)) as (served, _):
        wants = (
            *("-X", "OPTIONS", "-H", f"origin: {PAGE}"),
            *("-H", "access-control-request-method: POST"),
            *("-H", "access-control-request-headers: authorization,content-type"),
        )
        head, body, _ = await curl(served.url + CHAT.path, *wants)
    assert head.startswith(b"http/1.1 204 ")
    assert not body
    assert f"\r\naccess-control-allow-origin: {PAGE}".encode() in head
    assert b"\r\naccess-control-allow-methods: post" in head
    assert b"\r\naccess-control-allow-headers: authorization,content-type" in head


def timeless(body: bytes) -> bytes:
    return re.sub(rb'"(id|created)":(?:"[^"]*"|\d+)', rb"", body)


async def test_a_recording_is_uploaded_as_a_form(tmp_path: Path):
    file = tmp_path / "speech.wav"
    file.write_bytes(recording(5)[1])
    path = "/v1/audio/transcriptions"
    form = ("-F", f"file=@{file};type=audio/wav", "-F", "language=en")
    async with through() as it:
        worker = str(it.plain.http.base_url).rstrip("/")
        for more in ((), ("-F", "stream=true"), ("-F", "response_format=text")):
            _, ours, _ = await curl(it.served.url + path, *form, "-F", "model=m", *more)
            _, direct, _ = await curl(worker + path, *form, "-F", f"model={MODEL}", *more)
            if "stream=true" in more:  # passes may be put together in other ways
                assert text_of(ours) == text_of(direct) != ""
                assert ours.endswith(b"data: [DONE]\n\n")
            else:
                assert timeless(ours) == timeless(direct)
                assert json.loads(ours)["text"]


def text_of(body: bytes) -> str:
    *events, done = body.decode().split("\n\n")[:-1]
    assert done == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    return "".join(choice["delta"].get("content") or "" for c in chunks for choice in c["choices"])
