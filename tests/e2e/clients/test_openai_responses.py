"""The Responses API through the gateway with OpenAI's Python client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from official import MODEL, WEATHER, Clients, check_weather
from through import EDIT, alike, through

TOOLS: Any = [{"type": "function", "name": "weather", "parameters": WEATHER}]
ASKS: dict[str, dict[str, Any]] = {
    "text": {"input": "Tell me about rivers.", "max_output_tokens": 50},
    "cut": {"input": [{"role": "user", "content": "Tell me."}], "max_output_tokens": 5},
    "tool": {"input": "Is it warm?", "tools": TOOLS, "tool_choice": "required"},
    "schema": {"input": "Anything.", "text": {"format": {"type": "json_object"}}},
}


class Trip(BaseModel):
    city: str
    nights: int


async def final(it: Clients, **ask: Any) -> tuple[Any, list[str]]:
    """The response at the end of a stream, and the kinds of events on the way."""
    async with it.openai.responses.stream(**ask) as stream:
        kinds = [event.type async for event in stream]
        return await stream.get_final_response(), kinds


@pytest.mark.parametrize("what", ASKS)
@pytest.mark.parametrize("pool", ["plain", "ngram"])
async def test_responses_are_the_workers_own(what: str, pool: str):
    more = {**ASKS[what], "extra_headers": EDIT if pool == "ngram" else {}}
    async with through() as it:
        worker = it.workers[pool]
        ours = await it.openai.responses.create(model="alias", **more)
        assert alike(ours) == alike(await worker.openai.responses.create(model=MODEL, **more))
        assert ours.output
        streamed, kinds = await final(it, model="m", **more)
        direct, direct_kinds = await final(worker, model=MODEL, **more)
        assert alike(streamed) == alike(direct)
        assert list(dict.fromkeys(kinds)) == list(dict.fromkeys(direct_kinds))


async def test_a_function_is_called_in_a_stream_and_its_result_answered():
    async with through() as it:
        said: Any = [{"role": "user", "content": "Is it warm?"}]
        streamed, kinds = await final(
            it, model="m", input=said, tools=TOOLS, tool_choice="required"
        )
        (call,) = streamed.output
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "storm"}
        function: Any = call.model_dump(
            include={"type", "id", "call_id", "name", "arguments", "status"}
        )
        answer = await it.openai.responses.create(
            model="m", input=[*said, function, result], tools=TOOLS
        )
    assert kinds.count("response.function_call_arguments.delta") > 1
    check_weather(json.loads(call.arguments))
    assert "storm" in answer.output_text


async def test_a_schema_is_kept_and_parsed_into_its_class():
    async with through() as it:
        answer = await it.openai.responses.parse(model="m", input="A trip.", text_format=Trip)
    assert isinstance(answer.output_parsed, Trip)
