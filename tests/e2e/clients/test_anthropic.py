"""The Messages API through the gateway with Anthropic's Python client."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from official import MODEL, WEATHER, Clients, check_weather, connected
from through import EDIT, KEY, SAID, alike, idle, through

TOOLS: Any = [{"name": "weather", "description": "Tells it.", "input_schema": WEATHER}]
ASKS: dict[str, dict[str, Any]] = {
    "text": {"max_tokens": 50, "system": "Be kind."},
    "stop": {"max_tokens": 90, "stop_sequences": ["."]},
    "tool": {"max_tokens": 200, "tools": TOOLS, "tool_choice": {"type": "any"}},
}


async def final(it: Clients, **ask: Any) -> tuple[Any, list[str]]:
    """The message at the end of a stream, and the kinds of events on the way."""
    async with it.anthropic.messages.stream(**ask) as stream:
        kinds = [event.type async for event in stream]
        return await stream.get_final_message(), kinds


@pytest.mark.parametrize("what", ASKS)
@pytest.mark.parametrize("pool", ["plain", "ngram"])
async def test_messages_are_the_workers_own(what: str, pool: str):
    more = {**ASKS[what], "extra_headers": EDIT if pool == "ngram" else {}, "messages": SAID}
    async with through() as it:
        worker = it.workers[pool]
        ours = await it.anthropic.messages.create(model="alias", **more)
        assert alike(ours) == alike(await worker.anthropic.messages.create(model=MODEL, **more))
        assert ours.content
        streamed, kinds = await final(it, model="m", **more)
        direct, direct_kinds = await final(worker, model=MODEL, **more)
    assert alike(streamed) == alike(direct)
    assert alike(streamed.content) == alike(ours.content)
    assert list(dict.fromkeys(kinds)) == list(dict.fromkeys(direct_kinds))


async def test_a_tool_is_used_in_a_stream_and_its_result_answered():
    ask: Any = {"model": "m", "max_tokens": 200, "tools": TOOLS}
    async with through() as it:
        streamed, kinds = await final(it, **ask, messages=SAID, tool_choice={"type": "any"})
        (block,) = streamed.content
        result = {"type": "tool_result", "tool_use_id": block.id, "content": "thunder"}
        told: Any = [
            *SAID,
            {"role": "assistant", "content": [block.model_dump(exclude_none=True)]},
            {"role": "user", "content": [result]},
        ]
        answer = await it.anthropic.messages.create(**ask, messages=told)
    assert kinds.count("input_json") > 1
    check_weather(block.input)
    assert streamed.stop_reason == "tool_use"
    assert "thunder" in answer.content[0].text


async def test_tokens_are_counted_as_the_worker_counts_them():
    async with through() as it:
        for more in ({}, {"system": "Be kind."}, {"tools": TOOLS}):
            ours = await it.anthropic.messages.count_tokens(model="m", messages=SAID, **more)
            direct = await it.plain.anthropic.messages.count_tokens(
                model=MODEL, messages=SAID, **more
            )
            assert ours == direct
            assert ours.input_tokens > 4


async def test_errors_have_anthropics_shape_and_raise_its_classes():
    ask: Any = {"messages": SAID, "max_tokens": 9}
    async with through() as it, connected(it.served.url, key="another") as stranger:
        for stream in (True, False):
            with pytest.raises(anthropic.AuthenticationError) as wrong_key:
                await stranger.anthropic.messages.create(model="m", stream=stream, **ask)
            with pytest.raises(anthropic.NotFoundError) as no_model:
                await it.anthropic.messages.create(model="nope", stream=stream, **ask)
            assert wrong_key.value.body["error"]["type"] == "authentication_error"
            assert no_model.value.body["error"]["type"] == "not_found_error"
            assert wrong_key.value.body["type"] == no_model.value.body["type"] == "error"
        with pytest.raises(anthropic.BadRequestError) as ours:
            await it.anthropic.messages.create(model="m", messages=SAID, max_tokens=5000)
        with pytest.raises(anthropic.BadRequestError) as direct:
            await it.plain.anthropic.messages.create(model=MODEL, messages=SAID, max_tokens=5000)
    assert ours.value.body == direct.value.body


async def test_a_key_may_come_as_x_api_key_as_older_clients_send_it():
    def sent(key: str) -> dict[str, Any]:
        return {"Authorization": anthropic.Omit(), "x-api-key": key}

    ask: Any = {"model": "m", "messages": SAID, "max_tokens": 3}
    async with through() as it, connected(it.served.url, key="another") as stranger:
        create = stranger.anthropic.messages.create
        assert (await create(**ask, extra_headers=sent(KEY))).usage.output_tokens == 3
        with pytest.raises(anthropic.AuthenticationError):
            await create(**ask, extra_headers=sent("another"))


async def test_a_worker_that_dies_mid_stream_raises_and_invents_no_stop():
    async with through() as it:
        await it.set_worker_faults({"kind": "die", "at_token": 5})
        events: list[Any] = []
        with pytest.raises(anthropic.APIStatusError) as raised:  # noqa: PT012
            async for event in await it.anthropic.messages.create(
                model="m", messages=SAID, max_tokens=90, stream=True
            ):
                events.append(event)
    assert raised.value.body["error"]["type"] == "api_error"
    kinds = [event.type for event in events]
    assert "content_block_delta" in kinds
    assert not {"message_delta", "message_stop"} & set(kinds)


async def test_leaving_a_stream_early_frees_the_worker():
    async with through() as it:
        await it.set_worker_faults({"kind": "slow", "factor": 10})
        async with it.anthropic.messages.stream(
            model="m", messages=SAID, max_tokens=1500
        ) as stream:
            async for event in stream:
                if event.type == "text":
                    break
            assert await it.plain.metric("num_requests_running") == 1
        await idle(it.plain)
        assert await it.plain.metric("generation_tokens_total") < 200
