"""Every endpoint's body in one shape: the same conversation reads the same, odd bodies read too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.classify import classify
from paceline.core.features import measure
from paceline.core.fields import MAX_MESSAGES, MAX_PARTS
from paceline.core.types import Endpoint, RequestView, Turn
from paceline.core.views import view_of

TEXTLESS = (
    Endpoint.COUNT_TOKENS, Endpoint.EMBEDDINGS, Endpoint.RERANK, Endpoint.SCORE, Endpoint.TOKENIZE,
    Endpoint.DETOKENIZE, Endpoint.TRANSCRIPTIONS,
)  # fmt: skip


def responses(**body: Any) -> RequestView:
    return view_of(Endpoint.RESPONSES, {"model": "m", **body})


def messages(**body: Any) -> RequestView:
    return view_of(Endpoint.MESSAGES, {"model": "m", **body})


# ---- one conversation, three ways to write it ----------------------------------------------------

spoken = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=8)))


@given(system=st.text(min_size=1, max_size=8), turns=spoken)
@settings(deadline=None)
def test_a_conversation_reads_the_same_through_every_endpoint(
    system: str, turns: list[tuple[str, str]]
) -> None:
    """Roles are kept apart in messages, where what a tool returned is the user's."""
    chat = view_of(
        Endpoint.CHAT_COMPLETIONS,
        {
            "messages": [
                {"role": "system", "content": system},
                *({"role": role, "content": text} for role, text in turns),
            ]
        },
    )
    items = [
        {"type": "function_call_output", "call_id": "c", "output": text}
        if role == "tool"
        else {"role": role, "content": [{"type": "input_text", "text": text}]}
        for role, text in turns
    ]
    blocks = [
        {
            "role": "user" if role == "tool" else role,
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": text}
                if role == "tool"
                else {"type": "text", "text": text}
            ],
        }
        for role, text in turns
    ]
    read = (responses(instructions=system, input=items), messages(system=system, messages=blocks))
    for view in read:
        assert (view.system, view.turns, view.has_text) == (chat.system, chat.turns, chat.has_text)


# ---- responses -----------------------------------------------------------------------------------


def test_a_responses_body_is_read() -> None:
    view = responses(
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "Be kind."},
            {"type": "message", "role": "user", "content": "What is the time?"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "name": "now", "arguments": "{}", "call_id": "c"},
            {"type": "function_call_output", "call_id": "c", "output": "noon"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Noon."}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "data:,"},
                    {"type": "input_text", "text": "And here?"},
                    {"type": "input_text", "text": "Be quick."},
                ],
            },
        ],
        stream=True,
        max_output_tokens=10,
        max_tokens=5,
        temperature=1,
        top_logprobs=2,
        min_p=0.1,
        logit_bias={"1": 2},
        tools=[{"type": "function", "name": "now"}],
        tool_choice={"type": "function", "name": "now"},
        text={"format": {"type": "json_schema", "name": "n", "schema": {}}},
    )
    assert view == RequestView(
        endpoint=Endpoint.RESPONSES,
        model="m",
        stream=True,
        system="Be brief.\nBe kind.",
        turns=(
            Turn(role="user", text="What is the time?"),
            Turn(role="assistant", text=""),
            Turn(role="tool", text="noon"),
            Turn(role="assistant", text="Noon."),
            Turn(role="user", text="And here?\nBe quick."),
        ),
        num_tools=1,
        tool_choice_forced=True,
        response_format="json_schema",
        max_tokens=10,
        temperature=1.0,
        logprobs=True,
        min_p=True,
        logit_bias=True,
    )


def test_a_text_is_an_input_too() -> None:
    view = responses(input="Fix the typo: teh")
    assert view.turns == (Turn(role="user", text="Fix the typo: teh"),)
    assert view.has_text
    assert measure(view) == measure(
        responses(input=[{"role": "user", "content": view.turns[0].text}])
    )


@pytest.mark.parametrize("given", [None, 5, "", [], {}, [1, None, "x", {"type": "item_reference"}]])
def test_an_input_without_text_gives_no_text(given: Any) -> None:
    assert not responses(input=given).has_text


@pytest.mark.parametrize(
    ("tool_choice", "forced"),
    [
        (None, False),
        ("auto", False),
        ("required", True),
        ({"type": "function", "name": "f"}, True),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, False),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, True),
    ],
)
def test_a_forced_tool_in_responses(tool_choice: Any, forced: bool) -> None:
    assert responses(tool_choice=tool_choice).tool_choice_forced == forced


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"text": {"format": {"type": "text"}}}, None),
        ({"text": {"format": {"type": "json_object"}}}, "json_object"),
        ({"text": {"format": None}}, None),
        ({"text": None}, None),
        ({"response_format": {"type": "json_object"}}, None),
        ({"structured_outputs": {"regex": "a"}}, "grammar"),
    ],
)
def test_response_format_in_responses(body: dict[str, Any], expected: str | None) -> None:
    assert responses(**body).response_format == expected


def test_logprobs_may_be_included() -> None:
    assert responses(include=["message.output_text.logprobs"]).logprobs
    assert not responses(include=["reasoning.encrypted_content"]).logprobs


# ---- Anthropic's messages ------------------------------------------------------------------------


def test_a_messages_body_is_read() -> None:
    view = messages(
        system=[{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        messages=[
            {"role": "user", "content": "What is the time?"},
            {"role": "system", "content": "It is late."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t", "name": "now", "input": {"where": "here"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "noon"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "u",
                        "content": [{"type": "text", "text": "one"}, {"type": "image"}],
                    },
                    {"type": "image", "source": {"type": "base64", "data": ""}},
                    {"type": "text", "text": "Which is it?"},
                ],
            },
        ],
        stream=True,
        max_tokens=100,
        temperature=0,
        tools=[{"name": "now", "input_schema": {}}],
        tool_choice={"type": "any"},
        output_config={"format": {"type": "json_schema", "schema": {}}},
    )
    assert view == RequestView(
        endpoint=Endpoint.MESSAGES,
        model="m",
        stream=True,
        system="Be brief.\nBe kind.\nIt is late.",
        turns=(
            Turn(role="user", text="What is the time?"),
            Turn(role="assistant", text="I look."),
            Turn(role="tool", text="noon"),
            Turn(role="tool", text="one"),
            Turn(role="user", text="Which is it?"),
        ),
        num_tools=1,
        tool_choice_forced=True,
        response_format="json_schema",
        max_tokens=100,
        temperature=0.0,
    )


def test_a_turn_that_only_tells_what_a_tool_returned_is_a_tool_result() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "noon"}
    view = messages(messages=[{"role": "user", "content": [result]}])
    assert view.turns == (Turn(role="tool", text="noon"),)
    assert "tool-result" in measure(view).signals


def test_a_message_without_text_is_still_a_turn() -> None:
    calls = {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]}
    assert messages(messages=[calls, {"role": "user"}]).turns == (
        Turn(role="assistant", text=""),
        Turn(role="user", text=""),
    )


@pytest.mark.parametrize(
    ("tool_choice", "forced"),
    [
        ({"type": "any"}, True),
        ({"type": "tool", "name": "f"}, True),
        ({"type": "auto"}, False),
        ({"type": "none"}, False),
        ("any", False),
        ({"type": ["any"]}, False),
    ],
)
def test_a_forced_tool_in_messages(tool_choice: Any, forced: bool) -> None:
    assert messages(tool_choice=tool_choice).tool_choice_forced == forced


# ---- completions, and what generates nothing -----------------------------------------------------


def test_only_completions_count_their_prompts() -> None:
    body = {"prompt": ["a", "b"], "n": 2}
    assert view_of(Endpoint.COMPLETIONS, body).num_choices == 4
    assert view_of(Endpoint.CHAT_COMPLETIONS, body).num_choices == 2
    assert responses(**body).num_choices == 1


@pytest.mark.parametrize("endpoint", TEXTLESS)
def test_nothing_is_foretold_where_nothing_is_generated(endpoint: Endpoint) -> None:
    body = {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "Fix the typo: teh"}],
        "prompt": "Fix it",
        "input": "Fix it",
        "query": "Fix it",
        "min_p": 0.1,
        "logit_bias": {"1": 2},
    }
    view = view_of(endpoint, body)
    assert view == RequestView(endpoint=endpoint, model="m", stream=True, has_text=False)
    assert classify(measure(view)).label_confidence == 0


# ---- any body ------------------------------------------------------------------------------------

names = st.sampled_from(
    [
        "model", "stream", "messages", "prompt", "suffix", "input", "instructions", "system",
        "role", "content", "type", "text", "output", "format", "tools", "tool_choice", "mode",
        "include", "output_config", "max_tokens", "max_output_tokens", "temperature", "n",
        "top_logprobs", "min_p", "logit_bias", "prediction", "structured_outputs",
    ]
)  # fmt: skip
words = st.sampled_from(
    [
        "user", "assistant", "tool", "system", "developer", "message", "function_call",
        "function_call_output", "tool_result", "tool_use", "thinking", "image", "input_text",
        "output_text", "text", "json_schema", "allowed_tools", "any", "required",
    ]
)  # fmt: skip
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | words | st.text(max_size=5)
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(names | st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(body=st.dictionaries(names, values, max_size=8), endpoint=st.sampled_from(Endpoint))
@settings(deadline=None, max_examples=300)
def test_any_object_gives_a_view(body: dict[str, Any], endpoint: Endpoint) -> None:
    view = view_of(endpoint, body)
    assert view.endpoint is endpoint
    assert all(turn.role not in ("system", "developer") for turn in view.turns)
    classify(measure(view))


items = st.lists(st.dictionaries(names, values, max_size=4), max_size=4)


@given(items=items, name=st.sampled_from(["messages", "input"]), endpoint=st.sampled_from(Endpoint))
@settings(deadline=None, max_examples=200)
def test_any_items_give_a_view(items: list[Any], name: str, endpoint: Endpoint) -> None:
    classify(measure(view_of(endpoint, {name: items})))


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT_COMPLETIONS, Endpoint.MESSAGES])
def test_of_very_many_messages_both_ends_are_read(endpoint: Endpoint) -> None:
    many = [{"role": "user", "content": str(index)} for index in range(3 * MAX_MESSAGES)]
    texts = [turn.text for turn in view_of(endpoint, {"messages": many}).turns]
    assert len(texts) == MAX_MESSAGES
    assert (texts[0], texts[-1]) == ("0", str(3 * MAX_MESSAGES - 1))
    assert [turn.text for turn in responses(input=many).turns] == texts


def test_of_very_many_blocks_the_first_are_read() -> None:
    results = [{"type": "tool_result", "content": "x"}] * (2 * MAX_PARTS)
    assert len(messages(messages=[{"role": "user", "content": results}]).turns) == MAX_PARTS
