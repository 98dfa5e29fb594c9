"""SSE from bytes: the vectors that every language passes, and the laws behind them."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline_client import SseError, SseEvent, SseParser, SseSplitter, event_data

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "sse.json").read_text("utf-8"))
CASES = {case["name"]: case for case in VECTORS["cases"]}


def bytes_of(text: str) -> bytes:
    """Vectors write one character per byte."""
    return text.encode("latin-1")


def feed(parser: SseParser, chunks: list[bytes]) -> list[SseEvent]:
    return [event for chunk in chunks for event in parser.feed(chunk)]


def parse(chunks: list[bytes]) -> tuple[list[SseEvent], bool]:
    parser = SseParser()
    return feed(parser, chunks), parser.incomplete


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


# ---- the vectors ---------------------------------------------------------------------------------


def expected(case: dict) -> tuple[list[SseEvent], bool]:
    events = [
        SseEvent(data=event["data"], event=event["event"], id=event["id"], retry_ms=event["retry"])
        for event in case["events"]
    ]
    return events, case["incomplete"]


@pytest.mark.parametrize("name", CASES)
def test_vector_as_it_was_read(name: str) -> None:
    case = CASES[name]
    assert parse([bytes_of(chunk) for chunk in case["chunks"]]) == expected(case)


@pytest.mark.parametrize("name", CASES)
def test_vector_at_every_other_split(name: str) -> None:
    case = CASES[name]
    data = bytes_of("".join(case["chunks"]))
    splits = [[data], pieces(data, 1), *(cut(data, [place]) for place in range(len(data)))]
    for chunks in splits:
        assert parse(chunks) == expected(case), chunks


# ---- the laws ------------------------------------------------------------------------------------

line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
fragments = st.sampled_from(
    [b"data", b"data:", b"data: ", b"event: e", b"id: 7", b"id: \0", b"retry: 9", b":", b" ", b"a"]
)
breaks = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"])
oddities = st.sampled_from(
    [b"\xef\xbb\xbf", b"\xef", "北🌍".encode(), "\u2028\u0085".encode(), b"\xe5\x8c", b"\0"]
)
streams = st.lists(fragments | breaks | oddities, max_size=24).map(b"".join) | st.binary(
    max_size=60
)
places = st.lists(st.integers(0, 10**6), max_size=12)


def by_the_standard(data: bytes) -> tuple[list[SseEvent], bool]:
    """The WHATWG algorithm line by line over the whole text, with no thought of reads."""
    *lines, unfinished = re.split(
        "\r\n|\r|\n", data.decode("utf-8", "replace").removeprefix("\ufeff")
    )
    events, pending, last_id = [], [], None
    fields: list[tuple[str, str]] = []
    for line in lines:
        if line:
            pending.append(line)
            name, _, value = line.partition(":")
            fields.append((name, value.removeprefix(" ")))
            if name == "id" and "\0" not in value:
                last_id = value.removeprefix(" ")
            continue
        texts = [value for name, value in fields if name == "data"]
        names = [value for name, value in fields if name == "event"]
        waits = [int(value) for name, value in fields if name == "retry" and value == "9"]
        if texts:
            kind = (names or [""])[-1] or "message"
            wait = waits[-1] if waits else None
            events.append(SseEvent(data="\n".join(texts), event=kind, id=last_id, retry_ms=wait))
        pending, fields = [], []
    return events, bool(pending or unfinished)


@given(data=streams, where=places)
@settings(deadline=None, max_examples=200)
def test_any_split_gives_what_the_standard_says(data: bytes, where: list[int]) -> None:
    assert parse(cut(data, where)) == by_the_standard(data)


@given(data=streams, where=places)
@settings(deadline=None)
def test_blocks_and_rest_are_the_stream(data: bytes, where: list[int]) -> None:
    splitter = SseSplitter()
    blocks = [block for chunk in cut(data, where) for block in splitter.feed(chunk)]
    assert b"".join(blocks) + splitter.rest == data
    assert not any(block == b"" for block in blocks)


@given(data=streams, where=places)
@settings(deadline=None)
def test_event_data_is_what_the_parser_reads(data: bytes, where: list[int]) -> None:
    blocks = [block for chunk in cut(data, where) for block in SseSplitter().feed(chunk)]
    for block in blocks:
        raw = event_data(block, first=True)
        events = SseParser().feed(block)
        assert [event.data for event in events] == (
            [] if raw is None else [raw.decode("utf-8", "replace")]
        )


@given(texts=st.lists(st.text(), max_size=8), end=line_ends, where=places)
@settings(deadline=None)
def test_json_sent_as_events_arrives_whole(texts: list[str], end: bytes, where: list[int]) -> None:
    sent = [json.dumps({"content": text}, ensure_ascii=False) for text in texts]
    sent = [text.encode("utf-8", "replace").decode() for text in sent]
    stream = b"".join(b"data: " + text.encode() + end + end for text in sent)
    events, incomplete = parse(cut(stream, where))
    assert [event.data for event in events] == sent
    assert not incomplete


# ---- bounds --------------------------------------------------------------------------------------


def test_a_mebibyte_in_one_event_in_small_pieces() -> None:
    body = b"data: " + b"x\r\ndata: y\n" * (2**20 // 11) + b"\n"
    splitter = SseSplitter()
    blocks = [block for piece in pieces(body, 3) for block in splitter.feed(piece)]
    assert blocks == [body]


def test_a_mebibyte_of_small_events_in_small_pieces() -> None:
    body = b'data: {"a":1}\n\n' * (2**20 // 15)
    events, incomplete = parse(pieces(body, 7))
    assert len(events) == 2**20 // 15
    assert not incomplete


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_event_past_the_bound_is_refused_however_it_comes(size: int) -> None:
    body = b"data: fits\n\ndata: does not fit\n\n"
    parser = SseParser(max_event_bytes=16)
    with pytest.raises(SseError, match="longer than 16 bytes"):
        feed(parser, pieces(body, size))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_up_to_the_bound_pass_however_many_come_together(size: int) -> None:
    body = b"data: just it\n\n" * 5
    events = feed(SseParser(max_event_bytes=15), pieces(body, size))
    assert [event.data for event in events] == ["just it"] * 5


def test_a_stream_that_never_ends_an_event_is_refused() -> None:
    parser = SseParser(max_event_bytes=1000)
    with pytest.raises(SseError):
        feed(parser, [b": ping\n" * 10] * 100)


def test_a_retry_time_of_thousands_of_digits_is_passed_over() -> None:
    assert SseParser().feed(b"retry: " + b"9" * 5000 + b"\ndata: a\n\n") == [SseEvent(data="a")]


def test_the_mark_that_opens_a_stream_is_taken_off_where_asked() -> None:
    assert event_data(b"\xef\xbb\xbfdata: a\n\n", first=True) == b"a"
    assert event_data(b"\xef\xbb\xbfdata: a\n\n") is None
    assert event_data(b": ping\n\n") is None
    assert event_data(b"data\n\n") == b""
    assert event_data(b"\ndata: a\rdata: b\r\n\r\n") == b"a\nb"


def test_comments_are_told_before_the_event_they_stand_with() -> None:
    told: list[str] = []
    parser = SseParser(on_comment=told.append)
    assert parser.feed(b"\xef\xbb\xbf: pace n=3\ndata: a\n\n:bare\r\n\r\n") == [SseEvent(data="a")]
    assert told == ["pace n=3", "bare"]
