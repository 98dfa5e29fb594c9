"""A worker's answer is the same however its bytes are cut: by the parser or past it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paceline.edge.connection import Connection, Stage
from paceline.errors import WorkerDied, WorkerError, WorkerProtocolError
from paceline.testing.scripted import chunk, stream_head

HEAD = stream_head()


class Transport:
    """Takes what is written, and says so."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, pieces: list[bytes]) -> None:
        self.written += pieces

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.chunks: list[bytes | None] = []
        self.ends: list[WorkerError | None] = []

    def received(self, data: bytes, chunk: bytes | None = None) -> None:
        self.pieces.append(data)
        self.chunks.append(chunk)

    def ended(self, error: WorkerError | None) -> None:
        self.ends.append(error)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


async def asked() -> tuple[Connection, Transport]:
    """A connection on which a request was sent and the headers of its answer have come."""
    connection, transport = Connection(asyncio.get_running_loop(), lambda gone: None), Transport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    asking = asyncio.ensure_future(connection.start([b"GET / HTTP/1.1\r\n\r\n"], 5.0))
    await asyncio.sleep(0)
    connection.data_received(HEAD)
    await asking
    return connection, transport


PIECES = st.lists(st.binary(min_size=1, max_size=5000), max_size=6)
SPELLINGS = st.sampled_from(
    [
        chunk,
        lambda data: b"%X\r\n%b\r\n" % (len(data), data),
        lambda data: b"%06x\r\n%b\r\n" % (len(data), data),
        lambda data: b"%x;name=value\r\n%b\r\n" % (len(data), data),
    ]
)


@given(PIECES, SPELLINGS, st.data())
def test_every_split_of_a_chunked_body_gives_the_same(
    pieces: list[bytes], spelled: Any, data: st.DataObject
) -> None:
    framed = [spelled(piece) for piece in pieces]
    whole = b"".join(framed) + b"0\r\n\r\n"
    edges = [sum(map(len, framed[:number])) for number in range(len(framed) + 1)]
    cuts = data.draw(
        st.lists(st.one_of(st.sampled_from(edges), st.integers(0, len(whole))), max_size=8)
    )
    reads = [whole[a:b] for a, b in pairwise(sorted({0, *cuts, len(whole)}))]

    async def fed() -> tuple[Kept, Connection]:
        connection, _ = await asked()
        kept = Kept()
        connection.pipe(kept)
        for read in reads:
            connection.data_received(read)
        return kept, connection

    kept, connection = asyncio.run(fed())
    assert kept.body == b"".join(pieces)
    assert kept.ends == [None]
    assert connection.reusable()
    for piece, framing in zip(kept.pieces, kept.chunks, strict=True):
        assert framing is None or framing == chunk(piece)


WHOLE = b"HTTP/1.1 404 No\r\ncontent-type: a/b\r\nX-Own: c\r\nContent-Length: 4\r\n\r\nbody"


@given(st.lists(st.integers(0, len(WHOLE)), max_size=4), st.sampled_from(["", "Via: a \r\n"]))
def test_every_split_of_a_whole_answer_gives_the_same(cuts: list[int], more: str) -> None:
    """Those that come at once, and in the usual form, among them: they pass by the parser."""
    whole = WHOLE.replace(b"X-Own", more.encode() + b"X-Own")
    reads = [whole[a:b] for a, b in pairwise(sorted({0, *cuts, len(whole)}))]

    async def answered(times: int) -> None:
        connection = Connection(asyncio.get_running_loop(), lambda gone: None)
        connection.connection_made(Transport())  # type: ignore[arg-type]
        for _ in range(times):
            asking = asyncio.ensure_future(connection.start([b"GET / HTTP/1.1\r\n\r\n"], 5.0))
            await asyncio.sleep(0)
            for read in reads:
                connection.data_received(read)
            answer = await asking
            assert answer.status == 404
            assert [name for name, _ in answer.headers if name != b"via"] == [
                b"content-type", b"x-own", b"content-length",
            ]  # fmt: skip
            assert await connection.read(5.0) == b"body"
            assert await connection.read(5.0) == b""
            assert connection.reusable()

    asyncio.run(answered(times=2))


async def test_bytes_behind_a_whole_answer_spoil_the_connection() -> None:
    connection = Connection(asyncio.get_running_loop(), lambda gone: None)
    connection.connection_made(Transport())  # type: ignore[arg-type]
    asking = asyncio.ensure_future(connection.start([b"GET / HTTP/1.1\r\n\r\n"], 5.0))
    await asyncio.sleep(0)
    connection.data_received(WHOLE + WHOLE[:9])
    await asking
    assert await connection.read(5.0) == b"body"
    assert not connection.reusable()


async def test_a_whole_chunk_keeps_its_framing_and_several_are_one_piece() -> None:
    connection, _ = await asked()
    kept = Kept()
    connection.pipe(kept)
    connection.data_received(chunk(b"one"))  # the parser's: it is the first
    connection.data_received(chunk(b"two"))
    connection.data_received(chunk(b"three") + chunk(b"four"))
    assert kept.pieces == [b"one", b"two", b"threefour"]
    assert kept.chunks == [None, chunk(b"two"), None]


async def test_what_is_no_chunk_ends_the_answer() -> None:
    connection, transport = await asked()
    kept = Kept()
    connection.pipe(kept)
    connection.data_received(chunk(b"one"))
    connection.data_received(b"3\r\nfourth\r\n")
    assert [type(end) for end in kept.ends] == [WorkerProtocolError]
    assert transport.aborted


async def test_a_body_that_is_cut_ends_once() -> None:
    connection, _ = await asked()
    kept = Kept()
    connection.pipe(kept)
    connection.data_received(chunk(b"one"))
    connection.connection_lost(None)
    connection.connection_lost(None)
    assert [type(end) for end in kept.ends] == [WorkerDied]


async def test_what_came_before_the_sink_goes_there_first() -> None:
    connection, _ = await asked()
    connection.data_received(chunk(b"early"))
    kept = Kept()
    connection.pipe(kept)
    connection.data_received(chunk(b"late"))
    assert kept.body == b"earlylate"


async def test_bytes_behind_an_answer_spoil_the_connection() -> None:
    connection, transport = await asked()
    connection.data_received(b"0\r\n\r\n")
    assert connection.answer.stage is Stage.COMPLETE
    connection.data_received(HEAD)
    assert transport.aborted
    assert not connection.reusable()
