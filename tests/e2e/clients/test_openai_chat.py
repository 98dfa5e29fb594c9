"""Chat and completions through the gateway with OpenAI's Python client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from official import CHAT_TOOLS, MODEL, Clients, check_weather
from through import EDIT, KEY, SAID, Through, alike, idle, through


class Dish(BaseModel):
    name: str
    minutes: int
    vegan: bool


HI: Any = [{"role": "user", "content": "hi"}]
"""What is answered in some ten words; the client takes a longer answer that is cut for an error."""
ASKS: dict[str, dict[str, Any]] = {
    "text": {},
    "choices": {"n": 3, "logprobs": True, "top_logprobs": 2},
    "tool": {"tools": CHAT_TOOLS, "tool_choice": "required"},
    "schema": {"response_format": {"type": "json_object"}},
}


async def final(it: Clients, **ask: Any) -> Any:
    """The whole answer that the client puts together from a stream."""
    async with it.openai.chat.completions.stream(messages=HI, **ask) as stream:
        async for _ in stream:
            pass
        return await stream.get_final_completion()


@pytest.mark.parametrize("what", ASKS)
@pytest.mark.parametrize("pool", ["plain", "ngram"])
async def test_answers_are_the_workers_own(what: str, pool: str):
    more = {**ASKS[what], "extra_headers": EDIT if pool == "ngram" else {}}
    usage = {**more, "stream_options": {"include_usage": True}}
    async with through() as it:
        worker = it.workers[pool]
        create = it.openai.chat.completions.create
        direct = await worker.openai.chat.completions.create(model=MODEL, messages=HI, **more)
        for name in ("m", "alias"):
            ours = await create(model=name, messages=HI, **more)
            assert alike(ours) == alike(direct)
            assert ours.choices[0].message.content or ours.choices[0].message.tool_calls
        streamed = await final(it, model="m", **usage)
        assert alike(streamed) == alike(await final(worker, model=MODEL, **usage))


async def test_a_tool_is_called_in_a_stream_and_its_result_answered():
    async with through() as it:
        create = it.openai.chat.completions.create
        stream = await create(
            model="m", messages=SAID, tools=CHAT_TOOLS, tool_choice="required", stream=True
        )
        chunks = [chunk async for chunk in stream]
        calls = [call for c in chunks for o in c.choices for call in o.delta.tool_calls or ()]
        arguments = "".join(call.function.arguments or "" for call in calls)
        function = {"name": calls[0].function.name, "arguments": arguments}
        call: Any = {"id": calls[0].id, "type": "function", "function": function}
        told: Any = [
            *SAID,
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": calls[0].id, "content": "hail, 3 degrees"},
        ]
        answer = await create(model="m", messages=told, tools=CHAT_TOOLS)
    check_weather(json.loads(arguments))
    assert len(calls) > 2, "the arguments come as they are generated"
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert "hail, 3 degrees" in answer.choices[0].message.content


async def test_a_schema_is_kept_and_parsed_into_its_class():
    async with through() as it:
        parse = it.openai.chat.completions.parse
        answer = await parse(model="m", messages=SAID, response_format=Dish)
        streamed = await final(it, model="m", response_format=Dish)
    for whole in (answer, streamed):
        assert isinstance(whole.choices[0].message.parsed, Dish)


async def test_usage_is_for_who_asked():
    async with through() as it:
        for options in (None, {"include_usage": False}, {"include_usage": True}):
            stream = await it.openai.chat.completions.create(
                model="m", messages=SAID, max_tokens=9, stream=True, stream_options=options
            )
            *_, before, last = [chunk async for chunk in stream]
            asked = options == {"include_usage": True}
            assert (last.usage is not None) == asked
            assert bool(last.choices) == (not asked)
            finishing = before if asked else last
            assert finishing.choices[0].finish_reason == "length"
            assert last.usage is None or last.usage.completion_tokens == 9


async def test_completions_are_the_workers_own():
    ask: Any = {"prompt": ["The river", "The sea"], "max_tokens": 8, "echo": True, "logprobs": 1}
    async with through() as it:
        ours = await it.openai.completions.create(model="m", **ask)
        direct = await it.plain.openai.completions.create(model=MODEL, **ask)
        stream = await it.openai.completions.create(model="m", stream=True, **ask)
        pieces: dict[int, str] = {}
        async for chunk in stream:
            for choice in chunk.choices:
                pieces[choice.index] = pieces.get(choice.index, "") + choice.text
    assert alike(ours) == alike(direct)
    assert pieces == {choice.index: choice.text for choice in ours.choices}


async def test_the_client_that_blocks_is_served_alike():
    def asked(url: str) -> tuple[str, str]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            ask: Any = {"model": "alias", "messages": SAID, "max_tokens": 30}
            whole = client.chat.completions.create(**ask)
            stream = client.chat.completions.create(**ask, stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            return whole.choices[0].message.content or "", text

    async with through() as it:
        whole, streamed = await asyncio.to_thread(asked, it.served.url)
    assert whole == streamed != ""


async def _leave(it: Through) -> None:
    """Asks for a long answer, reads five chunks of it and leaves."""
    stream = await it.openai.chat.completions.create(
        model="m", messages=SAID, stream=True, max_tokens=1500, extra_body={"ignore_eos": True}
    )
    num_seen = 0
    async for _ in stream:
        num_seen += 1
        if num_seen == 5:
            break
    assert await it.plain.metric("num_requests_running") == 1
    await stream.close()


async def test_leaving_a_stream_early_frees_the_worker():
    async with through() as it:
        await it.set_worker_faults({"kind": "slow", "factor": 10})
        await _leave(it)
        await idle(it.plain)
        assert await it.plain.metric("generation_tokens_total") < 1000
        assert it.served.in_flight == 0
