"""What a request gives to copy from, and what an answer says, of every family."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from families import named
from paceline.core.output_text import output_text
from paceline.core.prompt_text import prompt_text
from paceline.core.types import Endpoint
from paceline.core.word_tokens import word_tokens
from paceline.testing.scripted import DONE, event

CHAT, COMPLETIONS = Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS
RESPONSES, MESSAGES = Endpoint.RESPONSES, Endpoint.MESSAGES


def words(endpoint: Endpoint, body: dict[str, Any]) -> list[str]:
    text = prompt_text(endpoint, {"model": "m", **body})
    assert text is not None
    return word_tokens(text)


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": "given"}'}}


def test_all_text_of_a_chat_is_its_prompt_but_not_the_prediction():
    body = {
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image_url"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "result"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "trip"}},
        "prediction": {"type": "content", "content": "guess"},
    }
    said = words(CHAT, body)
    assert {"rules", "one", "given", "result", "weather", "trip"} <= set(said)
    assert "guess" not in said


def test_a_completions_prompt_has_both_sides_of_the_gap():
    assert words(COMPLETIONS, {"prompt": "before", "suffix": "after"}) == ["before", "after"]


def test_a_responses_prompt_has_instructions_items_and_calls():
    body = {
        "instructions": "rules",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"type": "function_call", "name": "f", "arguments": '{"x": "given"}'},
            {"type": "custom_tool_call", "name": "g", "input": "raw"},
            {"type": "function_call_output", "output": "result"},
        ],
        "tools": [{"type": "function", "name": "weather"}],
        "text": {"format": {"type": "json_schema", "name": "trip"}},
    }
    assert {"rules", "one", "given", "raw", "result", "weather", "trip"} <= set(
        words(RESPONSES, body)
    )


def test_a_messages_prompt_has_system_blocks_and_calls():
    body = {
        "system": "rules",
        "messages": [
            {"role": "user", "content": "one"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "name": "f", "input": {"x": "given"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "content": "result"}]},
        ],
        "tools": [{"name": "weather"}],
        "output_config": {"format": {"type": "json_schema", "name": "trip"}},
    }
    assert {"rules", "one", "given", "result", "weather", "trip"} <= set(words(MESSAGES, body))


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "a"}], "n": 2}),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        (CHAT, {}),
        (COMPLETIONS, {"prompt": [1, 2, 3]}),
        (COMPLETIONS, {"prompt": ["a", "b"]}),
        (COMPLETIONS, {"prompt": "a", "echo": True}),
        (Endpoint.EMBEDDINGS, {"input": "a"}),
    ],
)
def test_where_no_one_prompt_stands_against_the_answer_there_is_none(
    endpoint: Endpoint, body: dict[str, Any]
):
    assert prompt_text(endpoint, body) is None


def chunk(**delta: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def call_delta(**function: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": function}]}


STREAMS: dict[Endpoint, tuple[list[bytes], list[str]]] = {
    CHAT: (
        [
            chunk(role="assistant", content=""),
            chunk(reasoning="think, ", reasoning_content="think, "),
            chunk(content="al"),
            b": a comment\n\n",
            chunk(content="pha"),
            chunk(**call_delta(name="f", arguments="")),
            chunk(**call_delta(arguments='{"x":')),
            chunk(**call_delta(arguments="1}")),
            DONE,
        ],
        ["think", ",", "alpha", "f", *'{"x":1}'],
    ),
    COMPLETIONS: (
        [event({"choices": [{"text": "al"}]}), event({"choices": [{"text": "pha"}]}), DONE],
        ["alpha"],
    ),
    RESPONSES: (
        [
            named("response.created", response={"output": []}),
            named("response.reasoning_text.delta", delta="think "),
            named("response.output_text.delta", delta="al"),
            named("response.output_text.delta", delta="pha"),
            named("response.output_text.done", text="alpha"),
            named("response.output_item.added", item={"type": "function_call", "name": "f"}),
            named("response.function_call_arguments.delta", delta='{"x":1}'),
            named("response.completed", response={"output": [{"content": [{"text": "alpha"}]}]}),
        ],
        ["think", "alpha", "f", *'{"x":1}'],
    ),
    MESSAGES: (
        [
            named("message_start", message={"content": []}),
            named("content_block_start", content_block={"type": "thinking", "thinking": ""}),
            named("content_block_delta", delta={"type": "thinking_delta", "thinking": "think "}),
            named("content_block_delta", delta={"type": "text_delta", "text": "alpha"}),
            named("content_block_start", content_block={"type": "tool_use", "name": "f"}),
            named("content_block_delta", delta={"partial_json": '{"x":1}'}),
            named("message_stop"),
        ],
        ["think", "alpha", "f", *'{"x":1}'],
    ),
}
WHOLE: dict[Endpoint, dict[str, Any]] = {
    CHAT: {
        "choices": [{"message": {"reasoning": "think, ", "content": "alpha", "tool_calls": [CALL]}}]
    },
    COMPLETIONS: {"choices": [{"text": "alpha"}]},
    RESPONSES: {
        "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "think "}]},
            {"type": "message", "content": [{"type": "output_text", "text": "alpha"}]},
            {"type": "function_call", "name": "f", "arguments": '{"x":1}'},
        ]
    },
    MESSAGES: {
        "content": [
            {"type": "thinking", "thinking": "think "},
            {"type": "text", "text": "alpha"},
            {"type": "tool_use", "name": "f", "input": {"x": 1}},
        ]
    },
}
WHOLE[CHAT]["choices"][0]["message"]["tool_calls"] = [
    {"function": {"name": "f", "arguments": '{"x":1}'}}
]


@pytest.mark.parametrize("endpoint", STREAMS)
def test_a_stream_and_a_whole_answer_say_the_same(endpoint: Endpoint):
    events, said = STREAMS[endpoint]
    streamed = output_text(endpoint, b"".join(events), is_stream=True)
    whole = output_text(endpoint, orjson.dumps(WHOLE[endpoint]), is_stream=False)
    assert streamed is not None
    assert whole is not None
    assert word_tokens(streamed) == word_tokens(whole) == said


@pytest.mark.parametrize("endpoint", STREAMS)
@given(st.data())
def test_of_a_stream_cut_off_anywhere_what_came_is_read(endpoint: Endpoint, data: st.DataObject):
    stream = b"".join(STREAMS[endpoint][0])
    end = data.draw(st.integers(0, len(stream)))
    whole = output_text(endpoint, stream, is_stream=True) or ""
    part = output_text(endpoint, stream[:end], is_stream=True) or ""
    assert whole.startswith(part)


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("endpoint", [*STREAMS, Endpoint.TRANSCRIPTIONS])
@given(answer=st.binary(max_size=60))
def test_what_is_no_answer_says_nothing(endpoint: Endpoint, is_stream: bool, answer: bytes):
    assert output_text(endpoint, answer, is_stream=is_stream) is None


@pytest.mark.parametrize("endpoint", STREAMS)
@pytest.mark.parametrize("wrong", [None, 1, "x", [], [1], [[]], {"choices": 1}])
def test_wrong_types_are_passed_over(endpoint: Endpoint, wrong: Any):
    fields = ("choices", "output", "content", "delta", "item", "content_block", "message")
    body = orjson.dumps({field: wrong for field in fields})
    nested = orjson.dumps({field: [{f: wrong for f in fields}] for field in fields})
    for answer in (body, nested):
        assert not (output_text(endpoint, answer, is_stream=False) or "").strip("x\n")
        output_text(endpoint, b"data: " + answer + b"\n\n", is_stream=True)
