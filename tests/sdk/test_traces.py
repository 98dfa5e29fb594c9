"""Streams of a real vLLM through the parser: nothing lost, nothing doubled, at any reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from paceline_client import SseParser, SseSplitter

FOLDER = Path(__file__).parents[1] / "data" / "traces"
STREAMS = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))
BYTE_BY_BYTE_UP_TO = 20_000


def recorded_reads(name: str) -> list[bytes]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        _request, *reads = map(json.loads, file)
    return [read["data"].encode("utf-8", "surrogateescape") for read in reads]


def chunks_in(body: bytes) -> list[dict]:
    """The recorded chunks, read without the parser: vLLM writes one JSON value a line."""
    lines = [line for line in body.decode().split("\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def random_reads(body: bytes, seed: int) -> list[bytes]:
    random, reads, at = Random(seed), [], 0
    while at < len(body):
        size = random.choice([1, 2, 3, 10, 100, 1000])
        reads.append(body[at : at + size])
        at += size
    return reads


def text_of(chunks: list[dict]) -> str:
    return "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )


def tokens_of(chunk: dict) -> int:
    return sum(len(choice.get("token_ids") or ()) for choice in chunk["choices"])


def test_the_recordings_are_there() -> None:
    assert len(STREAMS) == 24


@pytest.mark.parametrize("name", STREAMS)
def test_recorded_stream_reads_the_same_at_any_boundaries(name: str) -> None:
    reads = recorded_reads(name)
    body = b"".join(reads)
    recorded = chunks_in(body)
    ways = [reads, [body], *(random_reads(body, seed) for seed in range(4))]
    if len(body) <= BYTE_BY_BYTE_UP_TO:
        ways.append([body[at : at + 1] for at in range(len(body))])
    for way in ways:
        parser = SseParser()
        events = [event for read in way for event in parser.feed(read)]
        *data, done = [event.data for event in events]
        chunks = [json.loads(text) for text in data]
        assert done == "[DONE]"
        assert "[DONE]" not in data
        assert chunks == recorded
        assert text_of(chunks) == text_of(recorded) != ""
        assert not parser.incomplete
        assert {event.event for event in events} == {"message"}


@pytest.mark.parametrize("name", STREAMS)
def test_recorded_tokens_add_up_to_the_usage(name: str) -> None:
    parser = SseParser()
    events = [event for read in recorded_reads(name) for event in parser.feed(read)]
    chunks = [json.loads(event.data) for event in events[:-1]]
    last = chunks[-1]
    assert last["choices"] == []
    assert sum(map(tokens_of, chunks)) == last["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize("name", STREAMS)
def test_every_recorded_chunk_tells_how_many_tokens_it_brings(name: str) -> None:
    parser = SseParser()
    events = [event for read in recorded_reads(name) for event in parser.feed(read)]
    before = 0
    for chunk in (json.loads(event.data) for event in events[:-1]):
        after = chunk["usage"]["completion_tokens"]
        assert after - before == tokens_of(chunk)
        before = after


@pytest.mark.parametrize("name", STREAMS)
def test_recorded_stream_is_relayed_byte_for_byte(name: str) -> None:
    reads = recorded_reads(name)
    splitter = SseSplitter()
    blocks = [block for read in reads for block in splitter.feed(read)]
    assert b"".join(blocks) == b"".join(reads)
    assert splitter.rest == b""
    assert all(block.startswith(b"data: ") and block.endswith(b"\n\n") for block in blocks)
    assert blocks[-1] == b"data: [DONE]\n\n"


def test_speculation_makes_several_tokens_land_in_one_event() -> None:
    widest = {
        name: max(tokens_of(chunk) for chunk in chunks_in(b"".join(recorded_reads(name))))
        for name in STREAMS
    }
    assert all(widest[name] == 1 for name in STREAMS if name.startswith("plain."))
    assert widest["ngram-k4.edit-1"] == 5
    assert widest["draft-k3.code-1"] == 4
