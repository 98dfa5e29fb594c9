"""A finished exchange, as bytes, and what it teaches."""

from __future__ import annotations

import io
import json
from typing import Any

import orjson

from paceline.core.repeats import LOOP_TOKENS
from paceline.core.replay import replay_ngram, replay_suffix
from paceline.core.replayable import (
    TEXT_BYTES,
    Replayable,
    Replayed,
    frame_of,
    read_replayable,
    study,
)
from paceline.core.types import Endpoint, Speculation
from paceline.core.word_tokens import word_tokens
from paceline.testing.scripted import DONE, delta

NGRAM = Speculation(
    method="ngram",
    num_speculative_tokens=5,
    options={"prompt_lookup_min": 2, "prompt_lookup_max": 4, "draft_tensor_parallel_size": 1},
)
POOLS = {
    "edits": NGRAM,
    "agents": Speculation(method="suffix", num_speculative_tokens=16),
    "heads": Speculation(method="eagle3", num_speculative_tokens=3),
}
TEXT = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n"


def exchange(asked: str, answered: str, /, **more: Any) -> Replayable:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": asked}]}
    stream = b"".join([*map(delta, answered), DONE])
    given = {
        "endpoint": Endpoint.CHAT_COMPLETIONS,
        "request": orjson.dumps(body),
        "answer": stream,
        "is_stream": True,
        "lookups": POOLS,
    }
    return Replayable(**{**given, **more})


def test_an_exchange_tells_of_every_pool_that_looks_up():
    replayed = study(exchange(f"Return this:\n{TEXT}", TEXT))
    prompt, output = word_tokens(f"Return this:\n{TEXT}"), word_tokens(TEXT)
    assert replayed == Replayed(
        num_prompt_tokens=len(prompt),
        num_output_tokens=len(output),
        copy_ratio=1.0,
        loops=False,
        is_whole=True,
        lookups={
            "edits": replay_ngram(prompt, output, 5, 2, 4),
            "agents": replay_suffix(prompt, output, 16, {}),
        },
    )


def test_a_loop_is_told_apart_and_not_replayed():
    replayed = study(exchange("Go on.", "on and on " * LOOP_TOKENS))
    assert replayed is not None
    assert replayed.loops
    assert replayed.lookups == {}
    assert replayed.copy_ratio == 0.0


def test_what_was_cut_is_said_to_be():
    cut = study(exchange(TEXT, TEXT, is_cut=True))
    assert cut is not None
    assert not cut.is_whole
    long = study(exchange("some words and more " * (TEXT_BYTES // 10), TEXT))
    assert long is not None
    assert not long.is_whole
    assert long.num_prompt_tokens < TEXT_BYTES // 4
    assert long.num_output_tokens == len(word_tokens(TEXT))


def test_without_text_there_is_no_exchange():
    assert study(exchange(TEXT, "")) is None
    assert study(exchange("", TEXT)) is None
    assert study(exchange(TEXT, TEXT, request=b"no JSON")) is None


def test_what_was_taught_holds_no_text_and_survives_json():
    replayed = study(exchange("What is the password? xyzzy", "plugh it is xyzzy plugh"))
    assert replayed is not None
    said = json.dumps(replayed.as_json())
    assert "xyzzy" not in said
    assert "plugh" not in said
    assert Replayed.of(json.loads(said)) == replayed


def test_exchanges_come_out_of_a_pipe_as_they_went_in():
    exchanges = [
        exchange("a", "b"),
        exchange("", "", answer=b"", is_cut=True),
        exchange(TEXT, TEXT),
    ]
    piped = b"".join(part for one in exchanges for part in frame_of(one))
    read = io.BytesIO(piped).read
    again = [read_replayable(read) for _ in range(4)]
    assert again[3] is None
    for one, other in zip(exchanges, again, strict=False):
        assert other is not None
        assert (one.request, one.answer, one.is_cut) == (other.request, other.answer, other.is_cut)
        assert study(one) == study(other)
    for end in range(len(piped)):
        reading = io.BytesIO(piped[:end]).read
        while read_replayable(reading) is not None:
            pass
