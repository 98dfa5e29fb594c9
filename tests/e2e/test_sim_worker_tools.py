"""Tools and structured output of the simulated worker's chat completions, with OpenAI's client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from official import CHAT_TOOLS, MODEL, Clients, check_weather, clients

OTHER: Any = {"type": "function", "function": {"name": "book_table", "parameters": {}}}
SAID: Any = [{"role": "user", "content": "How is the weather in Oslo?"}]
NAMED: Any = {"type": "function", "function": {"name": "weather"}}


class Dish(BaseModel):
    name: str
    minutes: int
    vegan: bool
    steps: list[str]


async def streamed_call(it: Clients, **more: Any) -> tuple[list[Any], str]:
    """The chunks of a streamed call, and its arguments put together."""
    stream = await it.openai.chat.completions.create(
        model=MODEL, messages=SAID, tools=CHAT_TOOLS, stream=True, **more
    )
    chunks = [chunk async for chunk in stream]
    calls = [call for c in chunks for o in c.choices for call in o.delta.tool_calls or ()]
    return chunks, "".join(call.function.arguments or "" for call in calls)


@pytest.mark.parametrize(("choice", "finish"), [("required", "tool_calls"), (NAMED, "stop")])
async def test_a_forced_call_is_streamed_in_parts(choice: Any, finish: str):
    async with clients() as it:
        usage = {"include_usage": True}
        chunks, arguments = await streamed_call(it, tool_choice=choice, stream_options=usage)
        whole = await it.openai.chat.completions.create(
            model=MODEL, messages=SAID, tools=CHAT_TOOLS, tool_choice=choice
        )
    check_weather(json.loads(arguments))
    deltas = [o.delta for c in chunks for o in c.choices if o.delta.tool_calls]
    first = deltas[0].tool_calls[0]
    assert (first.index, first.type, first.function.name) == (0, "function", "weather")
    assert first.id.startswith("chatcmpl-tool-")
    assert len(deltas) > 2
    assert [d.tool_calls[0].id for d in deltas[1:]] == [None] * (len(deltas) - 1)
    assert not any(o.delta.content for c in chunks for o in c.choices)
    assert chunks[-2].choices[0].finish_reason == finish
    (choice_made,) = whole.choices
    assert choice_made.finish_reason == finish
    (call,) = choice_made.message.tool_calls or ()
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("weather", arguments)
    # The markup around the call is generated and counted too.
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert whole.usage.completion_tokens > len(deltas)


async def test_token_ids_of_hidden_markup_are_not_lost():
    async with clients() as it:
        extra = {"return_token_ids": True}
        usage = {"include_usage": True}
        chunks, _ = await streamed_call(
            it, tool_choice="required", extra_body=extra, stream_options=usage
        )
    ids = [o.model_extra["token_ids"] for c in chunks[1:] for o in c.choices]
    assert sum(map(len, ids)) == chunks[-1].usage.completion_tokens


async def test_with_auto_a_tool_is_called_when_the_user_says_so():
    async def answered(it: Clients, said: str, **more: Any) -> Any:
        answer = await it.openai.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": said}],
            tools=[*CHAT_TOOLS, OTHER],
            max_tokens=80,
            **more,
        )
        return answer.choices[0]

    async with clients() as it:
        asked = await answered(it, "Please call book_table for two.")
        unasked = await answered(it, "Tell me about rivers.")
        forbidden = await answered(it, "Please use weather.", tool_choice="none")
        forced = await answered(it, "Please use book_table.", tool_choice="required")
    assert [call.function.name for call in asked.message.tool_calls] == ["book_table"]
    assert asked.message.tool_calls[0].function.arguments == "{}"
    assert asked.finish_reason == "tool_calls"
    for choice in (unasked, forbidden):
        assert choice.message.tool_calls is None
        assert choice.message.content
    assert forced.message.tool_calls[0].function.name == "book_table"


async def test_a_tools_result_is_answered_with_text():
    async with clients() as it:
        said: Any = [{"role": "user", "content": "Use weather for Oslo."}]
        first = await it.openai.chat.completions.create(
            model=MODEL, messages=said, tools=CHAT_TOOLS
        )
        message = first.choices[0].message
        (call,) = message.tool_calls or ()
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": "hail, 3 degrees"}
        second = await it.openai.chat.completions.create(
            model=MODEL,
            messages=[*said, message.model_dump(exclude_none=True), result],
            tools=CHAT_TOOLS,
        )
    assert second.choices[0].finish_reason == "stop"
    assert "hail, 3 degrees" in (second.choices[0].message.content or "")


async def test_a_call_that_is_cut_is_text_when_whole_and_part_of_a_call_when_streamed():
    async with clients() as it:
        chunks, arguments = await streamed_call(it, tool_choice="required", max_tokens=24)
        whole = await it.openai.chat.completions.create(
            model=MODEL, messages=SAID, tools=CHAT_TOOLS, tool_choice="required", max_tokens=24
        )
    assert arguments.startswith("{")
    assert chunks[-1].choices[0].finish_reason == "length"
    assert whole.choices[0].finish_reason == "length"
    assert whole.choices[0].message.tool_calls is None
    assert (whole.choices[0].message.content or "").startswith("<tool_call>")


async def test_tools_are_part_of_the_prompt():
    async with clients() as it:
        plain = await it.openai.chat.completions.create(model=MODEL, messages=SAID, max_tokens=3)
        offered = await it.openai.chat.completions.create(
            model=MODEL, messages=SAID, tools=CHAT_TOOLS, max_tokens=3
        )
    assert offered.usage.prompt_tokens > plain.usage.prompt_tokens + 20


async def test_structured_output_fits_its_model():
    async with clients() as it:
        parsed = await it.openai.chat.completions.parse(
            model=MODEL, messages=SAID, response_format=Dish
        )
        stream = await it.openai.chat.completions.create(
            model=MODEL, messages=SAID, response_format={"type": "json_object"}, stream=True
        )
        text = "".join([c.choices[0].delta.content or "" async for c in stream])
    assert isinstance(parsed.choices[0].message.parsed, Dish)
    assert isinstance(json.loads(text), dict)


REFUSALS: tuple[tuple[dict[str, Any], str, str], ...] = (
    (
        {"tools": []},
        "`tools` must not be an empty array. Either provide at least one tool or omit the field "
        "entirely. (parameter=tools)",
        "tools",
    ),
    (
        {"tool_choice": "required"},
        "When using `tool_choice`, `tools` must be set. (parameter=tool_choice)",
        "tool_choice",
    ),
    (
        {"tools": CHAT_TOOLS, "tool_choice": "bad"},
        'Invalid value for `tool_choice`: bad! Only named tools, "none", "auto" or "required" are '
        "supported. (parameter=tool_choice)",
        "tool_choice",
    ),
    (
        {"tools": CHAT_TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}},
        "The tool specified in `tool_choice` does not match any of the specified `tools` "
        "(parameter=tool_choice)",
        "tool_choice",
    ),
    (
        {"tools": [{"type": "function"}]},
        "1 validation error:\n  {'type': 'missing', 'loc': 'body.tools.0.function', 'msg': 'Field "
        "required', 'input': '<dict of 1 items>'}",
        "body.tools.0.function",
    ),
    (
        {"response_format": {"type": "json_schema"}},
        "When response_format type is 'json_schema', the 'json_schema' field must be provided. "
        "(parameter=response_format)",
        "response_format",
    ),
)


@pytest.mark.parametrize(("change", "message", "param"), REFUSALS)
async def test_refusals_are_vllms(change: dict[str, Any], message: str, param: str):
    async with clients() as it:
        response = await it.http.post("/v1/chat/completions", json={"messages": SAID, **change})
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, 400)
    assert (error["message"], error["param"]) == (message, param)


@pytest.mark.parametrize(
    "change",
    [
        {"tools": 3},
        {"tools": ["x"]},
        {"tools": [{"type": "function", "function": {}}]},
        {"tools": CHAT_TOOLS, "tool_choice": {"type": "function"}},
        {"tools": CHAT_TOOLS, "tool_choice": {"type": "function", "function": {}}},
        {"tools": CHAT_TOOLS, "tool_choice": 3},
        {"response_format": 3},
        {"response_format": {"type": "weird"}},
    ],
)
async def test_bodies_that_cannot_be_read_are_refused(change: dict[str, Any]):
    async with clients() as it:
        response = await it.http.post("/v1/chat/completions", json={"messages": SAID, **change})
    assert (response.status_code, response.json()["error"]["code"]) == (400, 400)
