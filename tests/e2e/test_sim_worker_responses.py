"""The simulated worker's `/v1/responses`, with the real OpenAI client."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel

from official import MODEL, WEATHER, check_weather, clients

TOOLS: Any = [{"type": "function", "name": "weather", "parameters": WEATHER}]


class Trip(BaseModel):
    city: str
    nights: int
    stops: list[str]


async def test_a_streamed_response_tells_of_its_parts_in_order():
    async with clients() as it:
        stream = await it.openai.responses.create(model=MODEL, input="Say hello.", stream=True)
        events = [event async for event in stream]
    kinds = [event.type for event in events]
    deltas = kinds.count("response.output_text.delta")
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * deltas,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert deltas > 1
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    final = events[-1].response
    assert text == final.output_text == events[-4].text
    assert {event.item_id for event in events if hasattr(event, "item_id")} == {final.output[0].id}
    assert (events[0].response.status, final.status) == ("in_progress", "completed")
    assert final.usage.output_tokens > deltas / 6
    assert final.usage.total_tokens == final.usage.input_tokens + final.usage.output_tokens


async def test_whole_and_streamed_responses_are_the_same():
    async with clients() as it:
        ask = {"model": MODEL, "input": "Tell me about rivers.", "max_output_tokens": 120}
        whole = await it.openai.responses.create(**ask)
        async with it.openai.responses.stream(**ask) as stream:
            streamed = await stream.get_final_response()
    assert whole.output_text == streamed.output_text
    assert whole.usage == streamed.usage
    assert whole.usage is not None
    assert whole.usage.output_tokens == 120


async def test_a_response_that_is_cut_is_incomplete():
    async with clients() as it:
        ask = {"model": MODEL, "input": "Tell me about rivers.", "max_output_tokens": 7}
        whole = await it.openai.responses.create(**ask)
        *_, last = [event async for event in await it.openai.responses.create(**ask, stream=True)]
    assert last.type == "response.completed"  # vLLM has no response.incomplete
    for response in (whole, last.response):
        assert response.status == "incomplete"
        assert response.incomplete_details.reason == "max_output_tokens"
        assert response.usage.output_tokens == 7


async def test_input_may_be_items_and_instructions_count():
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "Fix: teh house"}]},
    ]
    earlier: Any = [
        {"role": "user", "content": "hi"},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": []},
    ]
    async with clients() as it:
        short = await it.openai.responses.create(model=MODEL, input=items)
        long = await it.openai.responses.create(
            model=MODEL, input=[*earlier, *items], instructions="Be kind."
        )
    assert short.output_text == long.output_text == "the house"
    assert long.instructions == "Be kind."
    assert short.usage is not None
    assert long.usage is not None
    assert long.usage.input_tokens > short.usage.input_tokens + 10


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "weather"}])
async def test_a_function_is_called_and_its_result_is_answered(choice: Any):
    ask: Any = {"model": MODEL, "tools": TOOLS}
    said: Any = [{"role": "user", "content": "How is the weather?"}]
    async with clients() as it:
        stream = await it.openai.responses.create(
            **ask, input=said, tool_choice=choice, stream=True
        )
        events = [event async for event in stream]
        whole = await it.openai.responses.create(**ask, input=said, tool_choice=choice)
        call = events[-1].response.output[0]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "storm"}
        after = await it.openai.responses.create(
            **ask, input=[*said, call.model_dump(exclude_none=True), result]
        )
    deltas = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == call.arguments == whole.output[0].arguments
    check_weather(json.loads(call.arguments))
    assert (call.type, call.name, call.status) == ("function_call", "weather", "completed")
    (done,) = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert (done.name, done.arguments, done.item_id) == ("weather", call.arguments, call.id)
    assert events[-1].response.tools[0].name == "weather"
    assert "storm" in after.output_text


async def test_structured_output_fits_its_model():
    async with clients() as it:
        response = await it.openai.responses.parse(
            model=MODEL, input="A trip, please.", text_format=Trip
        )
        any_json = await it.openai.responses.create(
            model=MODEL, input="Anything.", text={"format": {"type": "json_object"}}
        )
    assert isinstance(response.output_parsed, Trip)
    assert isinstance(json.loads(any_json.output_text), dict)


async def test_logprobs_come_where_they_are_included():
    async with clients() as it:
        response = await it.openai.responses.create(
            model=MODEL,
            input="hi",
            max_output_tokens=3,
            include=["message.output_text.logprobs"],
            top_logprobs=2,
        )
    (part,) = response.output[0].content
    assert "".join(entry.token for entry in part.logprobs) == part.text
    assert [len(entry.top_logprobs) for entry in part.logprobs] == [2, 2, 2]


@pytest.mark.parametrize(
    ("change", "status", "message", "kind", "param"),
    [
        (
            {"model": "nope"},
            404,
            "The model `nope` does not exist. Valid aliases: smollm2.",
            "NotFoundError",
            "model",
        ),
        (
            {"max_output_tokens": 5000},
            400,
            "max_output_tokens=5000 cannot be greater than max_model_len=2048. Please request "
            "fewer output tokens. (parameter=max_output_tokens, value=5000)",
            "BadRequestError",
            "max_output_tokens",
        ),
        (
            {"max_output_tokens": 0},
            400,
            "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)",
            "BadRequestError",
            "max_tokens",
        ),
        (
            {"previous_response_id": "resp_x"},
            404,
            "Response with id 'resp_x' not found.",
            "invalid_request_error",
            "response_id",
        ),
        (
            {"input": []},
            400,
            "Cannot apply chat template to an empty conversation. Provide at least one message.",
            "BadRequestError",
            None,
        ),
        (
            {"tool_choice": "required"},
            400,
            "Tool choice 'required' must be specified with 'tools' parameter. "
            "(parameter=tool_choice)",
            "BadRequestError",
            "tool_choice",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "name": "nope"}},
            400,
            "Tool choice 'function' not found in 'tools' parameter. (parameter=tool_choice)",
            "BadRequestError",
            "tool_choice",
        ),
    ],
)
async def test_refusals_are_vllms(
    change: dict[str, Any], status: int, message: str, kind: str, param: str | None
):
    async with clients() as it:
        with pytest.raises(openai.APIStatusError) as raised:
            await it.openai.responses.create(**{"model": MODEL, "input": "hi", **change})
    error = {"message": message, "type": kind, "param": param, "code": status}
    assert raised.value.response.json() == {"error": error}
    assert raised.value.status_code == status


UNREADABLE: tuple[dict[str, Any], ...] = (
    {},
    {"input": 3},
    {"input": ["hi"]},
    {"input": [{"a": 1}]},
    {"input": [{"role": "user", "content": {"a": 1}}]},
    {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    {"input": "x", "tools": 3},
    {"input": "x", "tools": ["x"]},
    {"input": "x", "tools": [{"type": "function"}]},
    {"input": "x", "tool_choice": 3},
    {"input": "x", "text": 3},
    {"input": "x", "text": {"format": 3}},
    {"input": "x", "temperature": "hot"},
    {"input": "x", "background": True},
)


async def test_no_body_breaks_it():
    async with clients() as it:
        for body in UNREADABLE:
            response = await it.http.post("/v1/responses", json=body)
            assert response.status_code == 400, body
            assert response.json()["error"]["code"] == 400, body
        odd = {"input": "hi", "guided_json": {}, "n": 7, "frobnicate": True, "store": True}
        assert (await it.http.post("/v1/responses", json=odd)).status_code == 200


async def test_an_error_within_the_stream_cuts_it_as_in_vllm():
    async with clients() as it:
        await it.set_faults({"kind": "error_event", "at_token": 4, "status": 500})
        kinds = await kinds_until_cut(it.http)
        whole = await it.http.post("/v1/responses", json={"input": "Tell me about rivers."})
        assert (whole.status_code, whole.json()["error"]["code"]) == (500, 500)
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.output_text.delta"


async def test_what_speculation_cannot_do_cuts_the_stream_after_it_has_begun():
    async with clients() as it:
        kinds = await kinds_until_cut(it.http, logit_bias={"10": 5})
        whole = await it.http.post("/v1/responses", json={"input": "x", "logit_bias": {"1": 1}})
        assert whole.status_code == 400
    assert kinds == ["response.created", "response.in_progress"]


async def kinds_until_cut(http: httpx.AsyncClient, **more: Any) -> list[str]:
    kinds = []
    body = {"input": "Tell me about rivers.", "stream": True, **more}
    with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012 (the stream is what raises)
        async with http.stream("POST", "/v1/responses", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    kinds.append(line.removeprefix("event: "))
    return kinds


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_worker_that_dies_cuts_the_response(streamed: bool):
    async with clients() as it:
        await it.set_faults({"kind": "die", "at_token": 3, "count": 1})
        body = {"input": "Tell me about rivers.", "stream": streamed}
        with pytest.raises(httpx.RemoteProtocolError):
            await it.http.post("/v1/responses", json=body)
        assert (await it.http.post("/v1/responses", json={"input": "hi"})).status_code == 200
