"""The simulated worker's `/v1/messages`, with the real Anthropic client."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx
import pytest

from official import MODEL, WEATHER, check_weather, clients

TOOLS: Any = [{"name": "weather", "description": "Tells it.", "input_schema": WEATHER}]
SAID: Any = [{"role": "user", "content": "Tell me about rivers."}]


async def test_a_streamed_message_tells_of_its_parts_in_order():
    async with clients() as it:
        stream = await it.anthropic.messages.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}], max_tokens=200, stream=True
        )
        events = [event async for event in stream]
    kinds = [event.type for event in events]
    deltas = kinds.count("content_block_delta")
    assert kinds == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert deltas > 1
    start, end = events[0].message, events[-2]
    assert (start.role, start.content, start.usage.output_tokens) == ("assistant", [], 0)
    assert end.delta.stop_reason == "end_turn"
    assert end.usage.input_tokens == start.usage.input_tokens > 0
    assert end.usage.output_tokens >= deltas


async def test_whole_and_streamed_messages_are_the_same():
    ask: Any = {"model": MODEL, "messages": SAID, "max_tokens": 90}
    async with clients() as it:
        whole = await it.anthropic.messages.create(**ask)
        async with it.anthropic.messages.stream(**ask) as stream:
            streamed = await stream.get_final_message()
    assert whole.content[0].text == streamed.content[0].text
    assert whole.stop_reason == streamed.stop_reason == "max_tokens"
    assert whole.usage.output_tokens == streamed.usage.output_tokens == 90
    assert whole.usage.input_tokens == streamed.usage.input_tokens


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_stop_sequence_is_named(streamed: bool):
    ask: Any = {"model": MODEL, "messages": SAID, "max_tokens": 90, "stop_sequences": ["."]}
    async with clients() as it:
        if streamed:
            async with it.anthropic.messages.stream(**ask) as stream:
                message = await stream.get_final_message()
        else:
            message = await it.anthropic.messages.create(**ask)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", ".")
    assert "." not in message.content[0].text


async def test_a_tool_is_used_and_its_result_is_answered():
    ask: Any = {"model": MODEL, "max_tokens": 200, "tools": TOOLS}
    async with clients() as it:
        async with it.anthropic.messages.stream(
            **ask, messages=SAID, tool_choice={"type": "any"}
        ) as stream:
            parts = [e.partial_json async for e in stream if e.type == "input_json"]
            streamed = await stream.get_final_message()
        named: Any = {"type": "tool", "name": "weather"}
        whole = await it.anthropic.messages.create(**ask, messages=SAID, tool_choice=named)
        (block,) = whole.content
        result = {"type": "tool_result", "tool_use_id": block.id, "content": "thunder"}
        after = await it.anthropic.messages.create(
            **ask,
            messages=[
                *SAID,
                {"role": "assistant", "content": [block.model_dump(exclude_none=True)]},
                {"role": "user", "content": [result]},
            ],
        )
    assert len(parts) > 1
    assert streamed.content[0].type == block.type == "tool_use"
    assert streamed.content[0].input == block.input
    check_weather(block.input)
    assert streamed.stop_reason == whole.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert after.stop_reason == "end_turn"
    assert "thunder" in after.content[0].text


async def test_with_auto_a_tool_is_used_when_the_user_says_so():
    said: Any = [{"role": "user", "content": [{"type": "text", "text": "Use weather, please."}]}]
    async with clients() as it:
        message = await it.anthropic.messages.create(
            model=MODEL, max_tokens=200, tools=TOOLS, messages=said
        )
    assert message.stop_reason == "tool_use"


async def test_a_system_prompt_counts_as_text_and_as_blocks():
    async with clients() as it:
        count = it.anthropic.messages.count_tokens
        bare = await count(model=MODEL, messages=SAID)
        text = await count(model=MODEL, messages=SAID, system="Be kind.")
        blocks = await count(
            model=MODEL, messages=SAID, system=[{"type": "text", "text": "Be kind."}]
        )
        tools = await count(model=MODEL, messages=SAID, tools=TOOLS)
        message = await it.anthropic.messages.create(
            model=MODEL, messages=SAID, system="Be kind.", max_tokens=2
        )
    assert bare.input_tokens < text.input_tokens == blocks.input_tokens
    assert text.input_tokens == message.usage.input_tokens
    assert tools.input_tokens > bare.input_tokens + 20


async def test_structured_output_is_json():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    body = {
        "model": MODEL,
        "messages": SAID,
        "max_tokens": 50,
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }
    async with clients() as it:
        response = await it.http.post("/v1/messages", json=body)
    assert response.json()["content"] == [{"type": "text", "text": '{"n": 1}'}]


@pytest.mark.parametrize(
    ("change", "status", "kind", "message"),
    [
        (
            {"model": "nope"},
            404,
            "NotFoundError",
            "The model `nope` does not exist. Valid aliases: smollm2.",
        ),
        (
            {"max_tokens": 5000},
            400,
            "BadRequestError",
            "max_completion_tokens=5000 cannot be greater than max_model_len=2048. Please request "
            "fewer output tokens. (parameter=max_completion_tokens, value=5000)",
        ),
        (
            {"messages": []},
            400,
            "BadRequestError",
            "Cannot apply chat template to an empty conversation. Provide at least one message.",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "nope"}},
            400,
            "BadRequestError",
            "The tool with name 'nope' is not found in the tools list.",
        ),
    ],
)
async def test_refusals_are_vllms_in_anthropics_shape(
    change: dict[str, Any], status: int, kind: str, message: str
):
    async with clients() as it:
        with pytest.raises(anthropic.APIStatusError) as raised:
            await it.anthropic.messages.create(
                **{"model": MODEL, "messages": SAID, "max_tokens": 9, **change}
            )
    assert raised.value.status_code == status
    assert raised.value.body == {"type": "error", "error": {"type": kind, "message": message}}


UNREADABLE: tuple[dict[str, Any], ...] = (
    {"max_tokens": None},
    {"max_tokens": 0},
    {"model": None},
    {"messages": 3},
    {"messages": ["hi"]},
    {"messages": [{"role": "x", "content": "y"}]},
    {"messages": [{"role": "user", "content": 3}]},
    {"messages": [{"role": "user", "content": [{"type": "zzz"}]}]},
    {"messages": [{"role": "user", "content": ["x"]}]},
    {"system": 3},
    {"tools": 3},
    {"tools": [{"name": "x"}]},
    {"tool_choice": {"type": "some"}},
)


async def test_what_the_schema_refuses_keeps_openais_shape():
    async with clients() as it:
        for change in UNREADABLE:
            given = {"model": MODEL, "messages": SAID, "max_tokens": 9, **change}
            body = {key: value for key, value in given.items() if value is not None}
            response = await it.http.post("/v1/messages", json=body)
            assert response.status_code == 400, change
            assert response.json()["error"]["type"] == "Bad Request", change
        odd = {"model": MODEL, "messages": SAID, "max_tokens": 2, "metadata": {}, "frob": 1}
        assert (await it.http.post("/v1/messages", json={**odd, "n": 9})).status_code == 200


@pytest.mark.parametrize("at_token", [0, 5])
async def test_an_error_within_the_stream_is_an_error_event_and_the_end(at_token: int):
    async with clients() as it:
        await it.set_faults({"kind": "error_event", "at_token": at_token, "status": 500})
        body = {"model": MODEL, "messages": SAID, "max_tokens": 90, "stream": True}
        response = await it.http.post("/v1/messages", json=body)
        with pytest.raises(anthropic.APIStatusError):
            async for _ in await it.anthropic.messages.create(
                model=MODEL, messages=SAID, max_tokens=90, stream=True
            ):
                pass
    blocks = response.text.split("\n\n")[:-1]
    assert response.status_code == 200
    assert blocks[0].startswith("event: message_start" if at_token else "event: error")
    assert blocks[-1].startswith('event: error\ndata: {"type":"error","error":{"type":"internal_')


async def test_a_fault_may_speak_anthropics_words():
    told = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with clients() as it:
        await it.set_faults({"kind": "error_event", "at_token": 3, "body": told})
        body = {"model": MODEL, "messages": SAID, "max_tokens": 90, "stream": True}
        text = (await it.http.post("/v1/messages", json=body)).text
    assert text.endswith(
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
        '"message":"Overloaded"}}\n\n'
    )


async def test_a_busy_worker_says_so_in_anthropics_shape():
    async with clients() as it:
        await it.set_faults({"kind": "saturated"})
        with pytest.raises(anthropic.APIStatusError) as raised:
            await it.anthropic.messages.create(model=MODEL, messages=SAID, max_tokens=9)
    assert raised.value.status_code == 503
    assert raised.value.body["error"]["type"] == "Service Unavailable"


async def test_a_worker_that_dies_cuts_the_message():
    async with clients() as it:
        await it.set_faults({"kind": "die", "at_token": 3, "mid_event": True, "count": 1})
        body = {"model": MODEL, "messages": SAID, "max_tokens": 90, "stream": True}
        with pytest.raises(httpx.RemoteProtocolError):
            await it.http.post("/v1/messages", json=body)
