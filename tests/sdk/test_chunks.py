"""Chunks apart and together again: nothing lost, nothing doubled, each thing with its text."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from paceline_client import Hint, PacerOptions, Unit
from paceline_client.chunks import ChunkPacer
from vectors import chunk_cases


def chunk(*choices: dict, **more: Any) -> dict:
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": list(choices), **more}  # fmt: skip


def choice(index: int = 0, *, finish: str | None = None, more: dict | None = None, **delta: Any):
    return {"index": index, "delta": delta, "finish_reason": finish, **(more or {})}


def shown(*chunks: Any, gap_ms: float = 100.0, options: PacerOptions | None = None) -> list[Any]:
    pacer = ChunkPacer(options)
    for number, one in enumerate(chunks):
        pacer.push(one, number * gap_ms)
    pacer.finish((len(chunks) - 1) * gap_ms)
    return pacer.take(inf)


def text(chunks: list[dict], key: str = "content", index: int = 0) -> str:
    return "".join(
        c["delta"].get(key) or "" for one in chunks for c in one["choices"] if c["index"] == index
    )


@pytest.mark.parametrize("name", chunk_cases.CASES)
def test_vector(name: str) -> None:
    case = chunk_cases.CASES[name]
    played = chunk_cases.play(case)
    assert [one for _, one in played] == [one for _, one in case["shown"]]
    times = [at_ms for at_ms, _ in case["shown"]]
    assert [at_ms for at_ms, _ in played] == pytest.approx(times, abs=0.01)


def test_a_chunk_shown_whole_is_the_object_that_came() -> None:
    first = chunk(choice(content="Hello", more={"token_ids": [1]}))
    assert shown(first) == [first]
    assert shown(first)[0] is first


def test_unknown_fields_come_first_and_finish_and_usage_last() -> None:
    usage = {"completion_tokens": 5}
    burst = chunk(
        choice(content="one two three", finish="stop", more={"stop_reason": 7, "flag": 1}, extra=2),
        usage=usage, metrics={"m": 1},
    )  # fmt: skip
    pieces = shown(chunk(choice(content="x")), burst)[1:]
    assert len(pieces) > 1
    first, *middle, last = pieces
    assert first["metrics"] == {"m": 1}
    assert first["choices"][0]["flag"] == 1
    assert first["choices"][0]["delta"]["extra"] == 2
    assert last["usage"] == usage
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["choices"][0]["stop_reason"] == 7
    for piece in [first, *middle]:
        assert piece["choices"][0]["finish_reason"] is None
        assert "usage" not in piece
        assert "stop_reason" not in piece["choices"][0]
    for piece in [*middle, last]:
        assert "metrics" not in piece
        assert "flag" not in piece["choices"][0]
        assert "extra" not in piece["choices"][0]["delta"]
    assert all(piece["id"] == "c" for piece in pieces)


def logprobs(*tokens: str) -> dict:
    return {"content": [{"token": token, "logprob": -1.0} for token in tokens]}


def test_log_probabilities_and_token_ids_stay_with_their_text() -> None:
    more = {"logprobs": logprobs("Hello", ",", " you"), "token_ids": [11, 12, 13]}
    pieces = shown(
        chunk(choice(content="x", more={"logprobs": logprobs("x"), "token_ids": [1]})),
        chunk(choice(content="Hello, you", more=more)),
    )
    seen = [
        (c["delta"]["content"], [e["token"] for e in c["logprobs"]["content"]], c["token_ids"])
        for one in pieces
        for c in one["choices"]
    ]
    assert seen == [
        ("x", ["x"], [1]),
        ("Hello", ["Hello"], [11]),
        (",", [","], [12]),
        (" you", [" you"], [13]),
    ]


@pytest.mark.parametrize(
    "keys", [("reasoning",), ("reasoning_content",), ("reasoning", "reasoning_content")]
)
def test_reasoning_is_a_lane_of_its_own_and_read_once(keys: tuple[str, ...]) -> None:
    pieces = shown(
        chunk(choice(**dict.fromkeys(keys, "let me think"))), chunk(choice(content="Yes it is"))
    )
    for key in keys:
        assert text(pieces, key) == "let me think"
    assert text(pieces) == "Yes it is"
    last_thought = max(n for n, one in enumerate(pieces) if keys[0] in one["choices"][0]["delta"])
    first_word = min(n for n, one in enumerate(pieces) if "content" in one["choices"][0]["delta"])
    assert last_thought < first_word


def test_reasoning_and_answer_in_one_chunk() -> None:
    more = {"token_ids": [1, 2, 3, 4]}
    pieces = shown(chunk(choice(reasoning="so then", content="Yes indeed", more=more)))
    assert text(pieces, "reasoning") == "so then"
    assert text(pieces) == "Yes indeed"
    ids = [n for one in pieces for n in one["choices"][0].get("token_ids") or []]
    assert ids == [1, 2, 3, 4]


def test_refusal_is_kept() -> None:
    pieces = shown(chunk(choice(refusal="I can")), chunk(choice(refusal="not.", finish="stop")))
    assert text(pieces, "refusal") == "I cannot."


def test_choices_are_kept_apart() -> None:
    pieces = shown(
        chunk(choice(0, content="a one"), choice(1, content="b one")),
        chunk(choice(1, content=" b two", finish="stop")),
        chunk(choice(0, content=" a two", finish="stop")),
        chunk(usage={"completion_tokens": 8}),
    )
    assert text(pieces, index=0) == "a one a two"
    assert text(pieces, index=1) == "b one b two"
    assert all(len(one["choices"]) <= 1 for one in pieces)
    assert pieces[-1]["usage"] == {"completion_tokens": 8}


def test_tool_calls_keep_their_order_and_come_whole() -> None:
    call = {"index": 0, "id": "t", "function": {"name": "f", "arguments": '{"a":'}}
    rest = {"index": 0, "id": None, "function": {"arguments": "1}"}}
    pieces = shown(
        chunk(choice(content="I will call")),
        chunk(choice(content=" it now", tool_calls=[call])),
        chunk(choice(tool_calls=[rest])),
        chunk(choice(finish="tool_calls")),
    )
    with_calls = [one for one in pieces if "tool_calls" in one["choices"][0]["delta"]]
    assert [one["choices"][0]["delta"]["tool_calls"] for one in with_calls] == [[call], [rest]]
    before = pieces[: pieces.index(with_calls[0])]
    assert text(before) == "I will call it now"


def test_an_empty_delta_keeps_what_it_carries() -> None:
    pieces = shown(
        chunk(choice(content="ends in a space ")), chunk(choice(content="", signature="s"), x=1)
    )
    assert pieces[-1]["choices"][0]["delta"]["signature"] == "s"
    assert pieces[-1]["x"] == 1


def test_plain_completions() -> None:
    pieces = shown(
        {"id": "c", "choices": [{"index": 0, "text": "once upon", "finish_reason": None}]},
        {"id": "c", "choices": [{"index": 0, "text": " a time", "finish_reason": "stop"}]},
    )
    assert "".join(one["choices"][0]["text"] for one in pieces) == "once upon a time"
    assert [one["choices"][0]["finish_reason"] for one in pieces][-1] == "stop"


def test_strings_and_strangers_keep_their_order() -> None:
    stranger = object()
    out = shown("Hello there", stranger, " you")
    place = out.index(stranger)
    assert ("".join(out[:place]), "".join(out[place + 1 :])) == ("Hello there", " you")


def test_switched_off_everything_is_the_object_that_came() -> None:
    sent = [chunk(choice(reasoning="a b c", content="d e f")), chunk(usage={})]
    out = shown(*sent, options=PacerOptions(enabled=False))
    assert [id(one) for one in out] == [id(one) for one in sent]


def test_completeness() -> None:
    pacer = ChunkPacer()
    assert (pacer.incomplete, pacer.all_finished) == (False, False)
    pacer.push(chunk(choice(0, content="a", finish="")), 0)  # "" is no finish
    assert pacer.incomplete
    pacer.push(chunk(choice(0, finish="stop"), choice(1, content="b")), 0)
    assert pacer.incomplete
    pacer.push(chunk(choice(1, finish="repetition")), 0)
    assert (pacer.incomplete, pacer.all_finished) == (False, True)


@pytest.mark.parametrize("way", ["usage", "hint", "ids"])
def test_tokens_are_counted(way: str) -> None:
    pacer = ChunkPacer()
    for number, content in enumerate(["abcdef", "ghijkl"], 1):
        more = {"token_ids": [1, 2]} if way == "ids" else {}
        usage = {"usage": {"completion_tokens": 2 * number}} if way == "usage" else {}
        hint = Hint(num_tokens=2, next_ms=50) if way == "hint" else None
        pacer.push(chunk(choice(content=content, more=more), **usage), number * 50.0, hint=hint)
    pacer.finish(100)
    assert [one["choices"][0]["delta"]["content"] for one in pacer.take(inf)] == [
        "abc", "def", "ghi", "jkl",
    ]  # fmt: skip


# ---- the laws ------------------------------------------------------------------------------------

CHANNELS = ("reasoning", "content", "refusal")
deltas = st.dictionaries(
    st.sampled_from(CHANNELS), st.text(max_size=8) | st.sampled_from(["👨‍", "👩 ", "```", "a b"])
)


@st.composite
def streams(draw: st.DrawFn) -> list[dict]:
    made = []
    for number in range(draw(st.integers(1, 8))):
        choices = [
            choice(
                index,
                more={"token_ids": list(range(draw(st.integers(0, 4)))), "mark": (number, index)},
                **draw(deltas),
            )
            for index in draw(st.lists(st.integers(0, 1), unique=True, max_size=2))
        ]
        made.append(chunk(*choices, mark=number, usage={"completion_tokens": number}))
    return made


def lists_of(chunks: list[dict], index: int) -> list[int]:
    own = [c for one in chunks for c in one["choices"] if c["index"] == index]
    return [n for c in own for n in c.get("token_ids") or []]


@given(streams(), st.sampled_from(Unit), st.sampled_from([0.0, 30.0, 500.0]))
def test_nothing_is_lost_nor_doubled(stream: list[dict], unit: Unit, gap_ms: float) -> None:
    out = shown(*stream, gap_ms=gap_ms, options=PacerOptions(unit=unit))
    for index in (0, 1):
        for key in CHANNELS:
            assert text(out, key, index) == text(stream, key, index)
        assert lists_of(out, index) == lists_of(stream, index)
    marks = [one["mark"] for one in out if "mark" in one]
    assert marks == [one["mark"] for one in stream]
    usages = [one["usage"] for one in out if "usage" in one]
    assert usages == [one["usage"] for one in stream]
    of_choices = [c["mark"] for one in out for c in one["choices"] if "mark" in c]
    assert of_choices == [c["mark"] for one in stream for c in one["choices"]]


# ---- what the openai package makes ---------------------------------------------------------------


def test_objects_of_the_openai_package_are_split_into_their_like() -> None:
    sent = [
        chunk(choice(content="x", role="assistant", more={"token_ids": [0]})),
        chunk(
            choice(content="one two", more={"token_ids": [1, 2]}, finish="stop"),
            usage={"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
            metrics={"deep": [1]},
        ),
    ]
    out = shown(*(ChatCompletionChunk.construct(**one) for one in sent))
    assert [type(one) for one in out] == [ChatCompletionChunk] * 3
    assert [one.choices[0].delta.content for one in out] == ["x", "one", " two"]
    assert [one.choices[0].finish_reason for one in out] == [None, None, "stop"]
    assert (out[1].usage, out[2].usage.total_tokens) == (None, 4)
    assert out[1].model_extra == {"metrics": {"deep": [1]}}
    assert [one.choices[0].token_ids for one in out[1:]] == [[1], [2]]
