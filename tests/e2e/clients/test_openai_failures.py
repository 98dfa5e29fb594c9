"""What OpenAI's Python client makes of failures behind the gateway, and of its headers."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from official import MODEL, connected
from through import EDIT, SAID, through

RAISES: dict[str, tuple[dict[str, Any], type[openai.APIStatusError]]] = {
    "too many tokens": ({"max_tokens": 10**6}, openai.BadRequestError),
    "no messages": ({"messages": []}, openai.BadRequestError),
    "no such tool": ({"tools": [{"type": "function"}]}, openai.BadRequestError),
    "a wrong type": ({"temperature": "hot"}, openai.BadRequestError),
}


async def test_a_wrong_key_is_an_authentication_error():
    async with through() as it, connected(it.served.url, key="another") as stranger:
        for asking in (
            stranger.openai.chat.completions.create(model="m", messages=SAID, stream=True),
            stranger.openai.responses.create(model="m", input="hi"),
            stranger.openai.embeddings.create(model="m", input="hi"),
        ):
            with pytest.raises(openai.AuthenticationError) as raised:
                await asking
            assert raised.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            await stranger.openai.models.list()


async def test_an_unknown_model_is_a_not_found_error():
    async with through() as it:
        for stream in (True, False):
            with pytest.raises(openai.NotFoundError, match="no model 'nope'") as raised:
                await it.openai.chat.completions.create(model="nope", messages=SAID, stream=stream)
            assert (raised.value.code, raised.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.NotFoundError):
            await it.openai.models.retrieve("nope")


@pytest.mark.parametrize("what", RAISES)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_workers_refusal_keeps_its_words(what: str, stream: bool):
    change, kind = RAISES[what]
    ask = {"messages": SAID, "stream": stream, **change}
    async with through() as it:
        with pytest.raises(kind) as ours:
            await it.openai.chat.completions.create(model="m", **ask)
        with pytest.raises(kind) as direct:
            await it.plain.openai.chat.completions.create(model=MODEL, **ask)
    assert ours.value.body == direct.value.body
    assert ours.value.message == direct.value.message


async def test_the_headers_say_where_it_went():
    async with through() as it:
        for headers, pool in (({}, "plain"), (EDIT, "ngram")):
            for stream in (True, False):
                raw = await it.openai.chat.completions.with_raw_response.create(
                    model="m",
                    messages=SAID,
                    max_tokens=3,
                    stream=stream,
                    extra_headers={**headers, "x-request-id": "from-the-caller"},
                )
                answer = raw.parse()
                if stream:
                    await answer.close()
                assert raw.headers["x-paceline-pool"] == pool
                assert raw.headers["x-request-id"] == raw.request_id == "from-the-caller"
                assert "server-timing" in raw.headers


async def test_a_worker_that_dies_mid_stream_raises_and_invents_no_finish():
    async with through() as it:
        await it.set_worker_faults({"kind": "die", "at_token": 5})
        stream = await it.openai.chat.completions.create(model="m", messages=SAID, stream=True)
        chunks: list[Any] = []
        with pytest.raises(openai.APIError) as raised:  # noqa: PT012 (the loop is what raises)
            async for chunk in stream:
                chunks.append(chunk)
    assert raised.value.code == "worker_died"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert not any(chunk.choices[0].finish_reason for chunk in chunks)


async def test_a_response_whose_worker_dies_raises_and_is_not_completed():
    async with through() as it:
        await it.set_worker_faults({"kind": "die", "at_token": 5})
        kinds: list[str] = []
        with pytest.raises(openai.APIError) as raised:  # noqa: PT012
            async for event in await it.openai.responses.create(model="m", input="hi", stream=True):
                kinds.append(event.type)
    assert raised.value.code == "worker_died"
    assert "response.output_text.delta" in kinds
    assert "response.completed" not in kinds


async def test_a_busy_worker_is_a_status_and_says_when_to_return():
    busy = {"kind": "error", "status": 503, "retry_after_s": 7, "message": "full"}
    async with through() as it:
        await it.set_worker_faults(busy)
        with pytest.raises(openai.InternalServerError, match="full") as raised:
            await it.openai.chat.completions.create(model="m", messages=SAID, stream=True)
    assert raised.value.status_code == 503
    assert raised.value.response.headers["retry-after"] == "7"
