"""What clients do to a connection: raw bytes in, and what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from harness import Served, eventually, gateway, pool
from paceline.edge import protocol, server
from paceline.edge.protocol import MAX_HEAD_BYTES
from paceline.settings import Limits, Timeouts
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
STREAM = stream(delta("x", finish="stop"), DONE)
HANGING = [stream_head(), chunk(delta("one")), End.HANG]


def request(body: bytes = b'{"model":"m"}', *headers: str, version: str = "1.1") -> bytes:
    lines = [f"POST /v1/chat/completions HTTP/{version}", "Host: x"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


STREAMED = b'{"model":"m","stream":true}'
VERSION = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


class Raw:
    """A socket to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def until_closed(self) -> bytes:
        async with asyncio.timeout(5):
            return await self.reader.read()

    async def until(self, end: bytes) -> bytes:
        async with asyncio.timeout(5):
            return await self.reader.readuntil(end)


@contextlib.asynccontextmanager
async def connected(g: Served) -> AsyncIterator[Raw]:
    host, port = g.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


@contextlib.asynccontextmanager
async def before(*scripts, **more) -> AsyncIterator[tuple[Raw, Served, ScriptedWorker]]:
    """A connection to a gateway before a worker that plays these scripts."""
    worker = ScriptedWorker(*scripts)
    async with worker.running(), gateway(pool("p", worker.url), **more) as g, connected(g) as raw:
        yield raw, g, worker


TOO_LONG = [
    b"GET /" + b"x" * MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /version HTTP/1.1\r\nHost: x\r\nx: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n",
    b"GET /version HTTP/1.1\r\nHost: x\r\nx: " + b"y" * MAX_HEAD_BYTES,
    b"GET /version HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 300 + b"\r\n",
]


@pytest.mark.parametrize("head", TOO_LONG)
async def test_a_head_has_a_bound(head: bytes):
    async with before([response(ANSWER)]) as (raw, _, _):
        raw.writer.write(head)
        answer = await raw.until_closed()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "head_too_large"


NOT_HTTP = [
    b"hello\r\n\r\n",
    b"GET /version HTTP/1.1\r\n\r\n",  # no Host
    b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
]


@pytest.mark.parametrize("head", NOT_HTTP)
async def test_what_is_not_http_is_told_so_in_our_shape(head: bytes):
    async with before([response(ANSWER)]) as (raw, _, _):
        raw.writer.write(head)
        answer = await raw.until_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


async def test_a_head_may_come_byte_by_byte():
    async with before([response(ANSWER)]) as (raw, _, worker):
        for byte in request():
            raw.writer.write(bytes([byte]))
            await raw.writer.drain()
        assert (await raw.until(ANSWER)).startswith(b"HTTP/1.1 200 ")
    assert worker.seen[0].json == {"model": "up"}


@pytest.mark.parametrize("apart", [False, True])
async def test_an_upgrade_to_http2_is_ignored_and_the_body_read(apart: bool):
    """What every JDK client sends over plain HTTP."""
    hidden = VERSION
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    whole = request(b'{"model":"m","x":"%s"}' % hidden.replace(b"\r\n", b"|"), *upgrade)
    head, _, body = whole.partition(b"\r\n\r\n")
    async with before([response(ANSWER)]) as (raw, _, worker):
        raw.writer.write(head + b"\r\n\r\n" + (b"" if apart else body))
        if apart:
            await asyncio.sleep(0.05)
            raw.writer.write(body)
        answer = await raw.until(ANSWER)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert len(worker.seen) == 1


@pytest.mark.parametrize("ending", ["close", "reset"])
@pytest.mark.parametrize("body", [STREAMED, b'{"model":"m"}'])
async def test_a_client_that_pipelines_and_leaves_frees_its_worker(ending: str, body: bytes):
    script = HANGING if body is STREAMED else [End.HANG]
    async with before(script) as (raw, g, worker):
        raw.writer.write(request(body) + VERSION)
        await eventually(lambda: bool(worker.seen))
        raw.writer.write(VERSION)
        await asyncio.sleep(0.05)
        raw.writer.close() if ending == "close" else raw.writer.transport.abort()
        await eventually(worker.seen[0].client_left.is_set, within_s=1)
        await eventually(lambda: g.in_flight == 0, within_s=1)


async def test_bytes_behind_a_request_change_nothing_in_its_answer():
    async with before(STREAM) as (raw, _, worker):
        raw.writer.write(request(STREAMED) + b"garbage\r\n\r\n" + VERSION)
        answer = await raw.until_closed()
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer
    assert len(worker.seen) == 1


async def test_requests_in_turn_share_a_connection():
    async with before([response(ANSWER)]) as (raw, _, worker):
        for _ in range(3):
            raw.writer.write(request())
            assert b"connection: close" not in await raw.until(ANSWER)
    assert len(worker.seen) == 3


@pytest.mark.parametrize("more", [(), ("TE: trailers",)])
@pytest.mark.parametrize("lines", [b"\r\n", b"\n", b"\r\n\r\n"])
async def test_empty_lines_behind_a_body_do_not_end_the_connection(
    more: tuple[str, ...], lines: bytes
):
    async with before([response(ANSWER)]) as (raw, _, worker):
        for _ in range(3):
            raw.writer.write(request(b'{"model":"m"}', *more) + lines)
            assert b"connection: close" not in await raw.until(ANSWER)
    assert len(worker.seen) == 3


async def test_heads_of_all_kinds_share_a_connection():
    """Some are the parser's to read, and some are read without it."""
    chunked = request().replace(b"Content-Length: 13", b"Transfer-Encoding: chunked")
    chunked = chunked.replace(b'{"model":"m"}', b'd\r\n{"model":"m"}\r\n0\r\n\r\n')
    kinds = [request(), chunked, request(b'{"model":"m"}', "TE: trailers"), request()]
    async with before([response(ANSWER)]) as (raw, _, worker):
        for each in [*kinds, *kinds[::-1]]:
            raw.writer.write(each)
            assert b"connection: close" not in await raw.until(ANSWER)
    assert [seen.json for seen in worker.seen] == [{"model": "up"}] * 8


@pytest.mark.parametrize("more", [(), ("TE: trailers",)])
@pytest.mark.parametrize("behind", [b"", b"G", VERSION[:-7], VERSION])
async def test_a_body_ends_where_its_head_says_however_it_comes(
    more: tuple[str, ...], behind: bytes
):
    """Were some of a request left in the parser, what comes next would be read as its rest."""
    body = b'{"model":"m","x":"%s"}' % (b"y" * 200)
    head, _, _ = request(body, *more).partition(b"{")
    async with before([response(ANSWER)]) as (raw, _, worker):
        raw.writer.write(head)
        for size in range(0, len(body), 50):
            await asyncio.sleep(0.01)
            last = behind if size + 50 >= len(body) else b""
            raw.writer.write(body[size : size + 50] + last)
        answer = await raw.until(ANSWER)
        assert (b"connection: close" in answer) is bool(behind)
    assert len(worker.seen) == 1
    assert worker.seen[0].json == {"model": "up", "x": "y" * 200}


async def test_http_1_0_gets_plain_bytes_and_then_the_end():
    async with before(STREAM) as (raw, _, _):
        raw.writer.write(request(STREAMED, version="1.0"))
        head, _, body = (await raw.until_closed()).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    assert body == delta("x", finish="stop") + DONE


async def test_an_answer_before_the_body_was_read_arrives_and_ends_the_connection():
    limits = Limits(body_bytes=1000)
    async with before([response(ANSWER)], limits=limits) as (raw, _, worker):
        head = request(b"x" * 2_000_000)[:200]
        raw.writer.write(head)
        answer = await raw.until_closed()
        raw.writer.write(b"x" * 100_000)  # still taken for a while, so that nothing is reset
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer
    assert not worker.seen


async def test_continue_is_said_only_to_who_waits_for_it_and_is_welcome():
    async with before([response(ANSWER)], limits=Limits(body_bytes=100)) as (raw, _, _):
        whole = request(b'{"model":"m"}', "Expect: 100-continue")
        head, _, body = whole.partition(b"\r\n\r\n")
        raw.writer.write(head + b"\r\n\r\n")
        assert await raw.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.writer.write(body)
        await raw.until(ANSWER)
        raw.writer.write(request(b"x" * 101, "Expect: 100-continue").partition(b"x" * 101)[0])
        assert (await raw.until_closed()).startswith(b"HTTP/1.1 413 ")


async def test_a_reader_that_stands_still_is_cut_off():
    flood = [stream_head(), *[chunk(delta("x" * 60_000))] * 400, End.HANG]
    timeouts = Timeouts(between_bytes_s=1, shutdown_s=1)
    async with before(flood, timeouts=timeouts) as (raw, g, worker):
        raw.writer.transport.pause_reading()
        raw.writer.write(request(STREAMED))
        await eventually(lambda: bool(worker.seen))
        await eventually(lambda: g.in_flight == 0, within_s=8)


async def test_a_worker_that_goes_on_after_done_holds_nothing():
    after = [chunk(b": still here\n\n"), 0.03] * 100
    script = [stream_head(), chunk(delta("x", finish="stop")), chunk(DONE), *after]
    async with before(script) as (raw, g, _):
        raw.writer.write(request(STREAMED))
        await raw.until(b"0\r\n\r\n")
        await eventually(lambda: g.in_flight == 0, within_s=1)


async def test_a_flood_of_comments_does_not_hold_the_status():
    comments = chunk(b": wait\n\n" * 1000)
    script = [stream_head(), *[comments] * 300, chunk(delta("x", finish="stop")), chunk(DONE)]
    async with before(script) as (raw, _, _):
        raw.writer.write(request(STREAMED, "Connection: close"))
        answer = await raw.until_closed()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b": wait") == 300_000
    assert b"[DONE]" in answer


# -- two readings of one request ---------------------------------------------------------------

LENGTHS = [
    "Content-Length: 6\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 6",
    "Content-Length: 6\r\nContent-Length: 7",
    "Content-Length: 6\r\nContent-Length: 6",
    "Content-Length: 6, 7",
    "Content-Length: +6",
    "Content-Length: -6",
    "Content-Length: 0x6",
    "Content-Length: 6 6",
    "Content-Length:",
    "Content-Length: 18446744073709551617",
    "Content-Length : 6",
    " Content-Length: 6",
    "Content-Length\t: 6",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding:\x0bchunked",
    "X: y\r\n Transfer-Encoding: chunked",
    "X: y\r\n\tContent-Length: 6",
    "X: a\nContent-Length: 6",
    "X: a\rContent-Length: 6",
    "X: a\x00b",
    "X\x00: a",
    "X y: a",
    "Upgrade: x\r\n Content-Length: 6",
    "Content-Length: 6\r\nUpgrade: x\r\n 7: y",
    "(: a",
    ": a",
    "X",
]
"""Heads that two servers could read in two ways: a length, or where a header ends."""
HIDDEN = b"0\r\n\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("version", ["1.1", "1.0"])
async def test_a_head_that_can_be_read_in_two_ways_is_refused_once_and_closed(version: str):
    head = f"POST /v1/chat/completions HTTP/{version}\r\nHost: x\r\nConnection: keep-alive\r\n"
    async with before([response(ANSWER)]) as (_, g, worker):
        for lines in LENGTHS:
            sent = f"{head}Content-Type: application/json\r\n{lines}\r\n\r\n".encode("latin-1")
            answers = await all_answers(g, sent + HIDDEN)
            assert answers.startswith(b"HTTP/1.1 400 "), lines
            assert b"connection: close" in answers, lines
            assert answers.count(b"HTTP/1.1 ") == 1, lines
        assert not worker.seen


async def test_http_1_0_knows_no_chunks():
    """Where a server before us read it as HTTP/1.0, the body would be the next request."""
    chunked = request(b"", version="1.0").replace(
        b"Content-Length: 0", b"Transfer-Encoding: chunked"
    )
    async with before([response(ANSWER)]) as (_, g, worker):
        answers = await all_answers(g, chunked + chunk(b'{"model":"m"}') + chunk(b""))
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert not worker.seen


CHUNKS = [
    b"zz\r\n{}\r\n0\r\n\r\n",
    b"-2\r\n{}\r\n0\r\n\r\n",
    b"0x2\r\n{}\r\n0\r\n\r\n",
    b"2 \r\n{}\r\n0\r\n\r\n",
    b"\r\n2\r\n{}\r\n0\r\n\r\n",
    b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    b"2\n{}\n0\n\n",
    b"2\r\n{}xx0\r\n\r\n",
    b"1\r\n{}\r\n0\r\n\r\n",
    b"2;a\n=\r\n{}\r\n0\r\n\r\n",
    b"2\r\n{}\r\n0\r\nContent-Length: 3\r\n\r\n",
]


async def test_a_body_whose_chunks_can_be_read_in_two_ways_is_no_request():
    head = request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    async with before([response(ANSWER)]) as (_, g, worker):
        for chunks in CHUNKS:
            answers = await all_answers(g, head + chunks + VERSION)
            assert answers.startswith(b"HTTP/1.1 400 "), chunks
            assert b"connection: close" in answers, chunks
            assert answers.count(b"HTTP/1.1 ") == 1, chunks
        await eventually(lambda: g.in_flight == 0)
        assert not worker.seen


LINES = [
    b"GET /version HTTP/1.1\nHost: x\n\n",
    b"GET /version HTTP/1.1\r\nHost: x\n\r\n\r\n",
    b"GET /version HTTP/1.1\rHost: x\r\r\r\n\r\n",
    b"GET /ver\x00sion HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /ver sion HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /version HTTP/1.1 \r\nHost: x\r\n\r\n",
    b"GET /version\r\nHost: x\r\n\r\n",
    b"GET /version HTTP/2.0\r\nHost: x\r\n\r\n",
    b"GET /version HTTP/1.12\r\nHost: x\r\n\r\n",
    b"GET version HTTP/1.1\r\nHost: x\r\n\r\n",
    b"get /version HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT other.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
]


async def test_a_request_line_that_is_none_is_refused_once_and_closed():
    async with before([response(ANSWER)]) as (_, g, worker):
        for line in LINES:
            answers = await all_answers(g, line + VERSION)
            assert answers.startswith(b"HTTP/1.1 400 "), line
            assert answers.count(b"HTTP/1.1 ") == 1, line
        assert not worker.seen


async def test_a_worker_gets_one_length_which_is_ours_however_the_body_came():
    body = b'{"model":"m","messages":[]}'
    chunked = request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    pieces = b"".join(chunk(body[at : at + 5]) for at in range(0, len(body), 5))
    sendings = [
        request(body),
        request(body, "Expect: 100-continue"),
        chunked + pieces + b"0\r\n\r\n",
        chunked
        + chunk(body).replace(b"\r\n", b";ext=1\r\n", 1)
        + b"0\r\nTrailer: Content-Length: 3\r\n\r\n",
        chunked.replace(b"Host", b"TE: trailers\r\nHost")
        + pieces
        + b"0\r\nHost: other.example\r\n\r\n",
    ]
    async with before([response(ANSWER)]) as (_, g, worker):
        for sent in sendings:
            closing = sent.replace(b"Host: x", b"Host: x\r\nConnection: close", 1)
            assert ANSWER in await all_answers(g, closing)
    assert len(worker.seen) == len(sendings)
    for seen in worker.seen:
        assert seen.body == body.replace(b'"m"', b'"up"')
        assert seen.header("content-length") == [str(len(seen.body))]
        assert not seen.header("transfer-encoding") + seen.header("trailer") + seen.header("te")


async def all_answers(g: Served, sent: bytes) -> bytes:
    """What comes back until the connection ends, of which we end our side only after an answer."""
    async with connected(g) as raw:
        raw.writer.write(sent)
        answer = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(0.3):
                while data := await raw.reader.read(65536):
                    answer += data
        return answer


# -- clients that take their time --------------------------------------------------------------


async def test_a_head_has_a_bound_in_time(monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    async with before([response(ANSWER)]) as (raw, g, _):
        raw.writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\nx-")
        answer = await raw.until_closed()
        async with connected(g) as silent:
            assert await silent.until_closed() == b""
        async with connected(g) as dripping:
            writing = asyncio.create_task(
                drip(dripping, b"GET /version HTTP/1.1\r\nx: " + b"y" * 99)
            )
            assert (await dripping.until_closed()).startswith(b"HTTP/1.1 408 ")
            await writing
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"request_timeout"' in answer


async def drip(raw: Raw, data: bytes) -> None:
    for byte in data:
        if raw.reader.at_eof():
            return
        raw.writer.write(bytes([byte]))
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("sent", [b"", b'{"model"'])
async def test_a_body_may_pause_for_as_long_as_between_bytes_and_no_longer(sent: bytes):
    timeouts = Timeouts(between_bytes_s=0.2, shutdown_s=1)
    async with before([response(ANSWER)], timeouts=timeouts) as (raw, _, worker):
        head = request(b"x" * 100).removesuffix(b"x" * 100)
        raw.writer.write(head + sent)
        answer = await raw.until_closed()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"request_timeout"' in answer
    assert not worker.seen


@pytest.mark.parametrize("encoding", [(), ("Transfer-Encoding: chunked",)])
async def test_a_client_that_leaves_within_its_body_asks_no_worker(encoding: tuple[str, ...]):
    async with before([response(ANSWER)]) as (raw, g, worker):
        whole = request(b"x" * 100, *encoding)
        if encoding:
            whole = whole.replace(b"Content-Length: 100\r\n", b"").replace(b"x" * 100, b"64\r\nxx")
        raw.writer.write(whole[:-2])
        await asyncio.sleep(0.05)
        raw.writer.close()
        await eventually(lambda: len(g.running.connections) == 0)
        metrics = await g.metrics()
    assert not worker.seen
    assert metrics['paceline_requests_total{code="499",model="",pool="",workload=""}'] == 1


async def test_an_idle_connection_is_kept_for_the_next_request_and_then_let_go(monkeypatch):
    monkeypatch.setattr(server, "KEEP_ALIVE_S", 0.3)
    async with before([response(ANSWER)]) as (raw, _, _):
        for _ in range(2):
            raw.writer.write(VERSION)
            await raw.until(b"}")
            await asyncio.sleep(0.1)
        assert await raw.until_closed() == b""
