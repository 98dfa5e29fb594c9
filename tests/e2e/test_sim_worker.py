"""The simulated worker as its clients see it, over sockets and with the real OpenAI client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import openai
import pytest

from paceline.__main__ import main
from paceline.core.types import Speculation
from paceline.testing.sim_worker import SimWorkerOptions, parse_speculation, running_sim_worker

NGRAM = parse_speculation(
    '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2,'
    ' "prompt_lookup_max": 4}'
)
TEXT = (
    "The old harbour lies at the end of a narow street, and every morning the fishermen bring "
    "their boats to the stone wall. They sell what they caught to the people of the town, who come "
    "with baskets and talk about the weather."
)
EDIT = f"Correct the spelling in this text and return it in full: {TEXT}"
UNLIMITED = httpx.Limits(max_connections=None)
BUSY = {
    "error": {
        "message": "The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance.",
        "type": "Service Unavailable",
        "param": None,
        "code": 503,
    }
}
NOT_WITH_SPECULATION = {
    "error": {
        "message": "The min_p and logit_bias sampling parameters are not yet supported with "
        "speculative decoding.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    }
}


class Worker:
    """A worker in this process, and two clients of it."""

    def __init__(self, url: str, http: httpx.AsyncClient, ai: openai.AsyncOpenAI) -> None:
        self.url, self.http, self.ai = url, http, ai

    async def chat(self, content: Any = "Tell me about rivers.", **more: Any) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": content}], **more}
        return await self.http.post("/v1/chat/completions", json=body)

    def stream(self, content: str = "Tell me about rivers.", **more: Any):
        messages = [{"role": "user", "content": content}]
        body = {"messages": messages, "stream": True, **more}
        return self.http.stream("POST", "/v1/chat/completions", json=body)

    async def stream_text(self, content: str = "Tell me about rivers.", **more: Any) -> str:
        async with self.stream(content, **more) as response:
            return text_of(events_of((await response.aread()).decode()))

    async def set_faults(self, *faults: dict[str, Any]) -> None:
        response = await self.http.post("/sim/faults", json={"faults": faults})
        assert response.status_code == 200, response.text

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples with this name and these labels; KeyError if there are none."""
        text = (await self.http.get("/metrics")).text
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        values = [
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith(f"vllm:{name}{{") and all(label in line for label in wanted)
        ]
        if not values:
            raise KeyError(name)
        return sum(values)

    async def until(self, name: str, holds: Callable[[float], bool]) -> None:
        """Waits until a metric is as it should be."""
        async with asyncio.timeout(5):
            while not holds(await self.metric(name)):  # noqa: ASYNC110 (across a socket)
                await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def worker(speculation: Speculation | None = NGRAM, **options: Any) -> AsyncIterator[Worker]:
    given = {"step_s": 0.001, "max_model_len": 2048, **options}
    async with (
        running_sim_worker(SimWorkerOptions(speculation=speculation, **given)) as url,
        httpx.AsyncClient(base_url=url, timeout=10, verify=False, limits=UNLIMITED) as http,
        openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=http
        ) as ai,
    ):
        yield Worker(url, http, ai)


def events_of(text: str) -> list[Any]:
    """The data of an event stream, which must end with [DONE]."""
    blocks = [block for block in text.split("\n\n") if block.startswith("data: ")]
    assert blocks[-1] == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks[:-1]]


def text_of(events: list[Any]) -> str:
    choices = [choice for event in events for choice in event["choices"]]
    return "".join(choice["delta"]["content"] for choice in choices)


# --- answers --------------------------------------------------------------------------------------


async def test_a_streamed_edit_comes_in_bursts_that_add_up():
    async with worker() as it:
        stream = await it.ai.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": EDIT}],
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"return_token_ids": True},
        )
        chunks = [chunk async for chunk in stream]
    *parts, last = chunks
    assert "".join(c.choices[0].delta.content or "" for c in parts) == TEXT.replace(
        "narow", "narrow"
    )
    assert parts[-1].choices[0].finish_reason == "stop"
    sizes = [len(c.choices[0].model_extra["token_ids"]) for c in parts[1:]]
    assert max(sizes) >= 6
    assert last.choices == []
    assert last.usage.completion_tokens == sum(sizes)
    spec = last.model_extra["metrics"]["speculative_decoding"]
    assert spec["mean_acceptance_length"] > 2.5
    assert spec["num_accepted_draft_tokens"] == sum(
        i * n for i, n in enumerate(spec["acceptance_histogram"])
    )


async def test_whole_and_streamed_answers_are_the_same():
    async with worker() as it:
        ask = "Write an LRU cache in Python."
        whole = await it.ai.chat.completions.create(
            model="smollm2", messages=[{"role": "user", "content": ask}], max_tokens=450
        )
        streamed = await it.stream_text(ask, max_tokens=450)
    assert whole.choices[0].message.content == streamed
    assert whole.usage is not None
    assert whole.usage.completion_tokens > 400
    assert whole.model_extra["metrics"]["speculative_decoding"]["num_spec_tokens"] == 5


async def test_usage_can_be_followed_token_by_token():
    options = {"include_usage": True, "continuous_usage_stats": True}
    async with worker() as it, it.stream(EDIT, stream_options=options) as response:
        events = events_of((await response.aread()).decode())
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts[0] == 0
    assert counts[1] == 1
    assert counts == sorted(counts)
    assert counts[-1] == counts[-2]


async def test_events_have_the_shape_of_recorded_ones():
    options = {"include_usage": True, "continuous_usage_stats": True}
    async with worker() as it:
        async with it.stream(EDIT, stream_options=options, return_token_ids=True) as response:
            text = (await response.aread()).decode()
    lines = [line for line in text.split("\n\n") if line]
    choice = '"choices":[{"index":0,"delta":'
    assert (
        f'{choice}{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]'
        in (lines[0])
    )
    assert '"completion_tokens_details":null},"prompt_token_ids":[' in lines[0]
    assert lines[0].endswith('],"prompt_text":null}')
    assert (
        f'{choice}{{"content":"The"}},"logprobs":null,"finish_reason":null,"token_ids":['
        in lines[1]
    )
    assert '"finish_reason":"stop","stop_reason":null,"token_ids":[' in lines[-3]
    assert '"choices":[],"usage":{"prompt_tokens":' in lines[-2]
    assert (
        '},"system_fingerprint":"vllm-0.32.0-simulated","metrics":{"speculative_decoding":{'
        in lines[-2]
    )
    assert lines[-1] == "data: [DONE]"


async def test_several_choices_are_kept_apart():
    async with worker(None) as it:
        async with it.stream(
            n=3, max_tokens=20, stream_options={"include_usage": True}
        ) as response:
            events = events_of((await response.aread()).decode())
        texts = ["", "", ""]
        for event in events:
            for choice in event["choices"]:
                texts[choice["index"]] += choice["delta"]["content"]
        whole = (await it.chat(n=3, max_tokens=20)).json()
    assert texts == [choice["message"]["content"] for choice in whole["choices"]]
    assert len(set(texts)) > 1
    assert events[-1]["usage"]["completion_tokens"] == 60
    assert "metrics" not in events[-1]


async def test_completions_take_texts_and_token_ids():
    async with worker() as it:
        two = await it.ai.completions.create(
            model="smollm2", prompt=["The river", "bread"], max_tokens=7, n=2
        )
        ids: Any = await it.ai.completions.create(
            model="smollm2", prompt=[5, 6, 7], extra_body={"return_token_ids": True}
        )
        stream = await it.ai.completions.create(
            model="smollm2", prompt="The river", max_tokens=7, stream=True
        )
        streamed = "".join([chunk.choices[0].text async for chunk in stream])
    assert [choice.index for choice in two.choices] == [0, 1, 2, 3]
    assert two.usage.completion_tokens == 28
    assert streamed == two.choices[0].text
    assert ids.choices[0].model_extra["prompt_token_ids"] == [5, 6, 7]
    assert ids.usage.completion_tokens == 16


async def test_limits_and_stop_strings_are_kept():
    async with worker() as it:
        short = (await it.chat(max_tokens=9)).json()
        stopped = (await it.chat(stop=[".", "zzz"])).json()
        forced = (await it.chat("hi", max_tokens=300, ignore_eos=True)).json()
    assert short["choices"][0]["finish_reason"] == "length"
    assert short["usage"]["completion_tokens"] == 9
    assert stopped["choices"][0]["stop_reason"] == "."
    assert "." not in stopped["choices"][0]["message"]["content"]
    assert forced["usage"]["completion_tokens"] == 300


async def test_logprobs_have_a_number_for_every_token():
    async with worker() as it:
        answer = await it.ai.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": "hi"}],
            max_tokens=4,
            logprobs=True,
            top_logprobs=2,
        )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    content = logprobs.content or []
    assert "".join(entry.token for entry in content) == answer.choices[0].message.content
    assert [len(entry.top_logprobs) for entry in content] == [2] * 4


async def test_an_answer_takes_the_time_of_its_passes():
    async with worker(None, step_s=0.01) as it:
        began = asyncio.get_running_loop().time()
        await it.chat(max_tokens=30)
        took = asyncio.get_running_loop().time() - began
    assert 0.3 <= took < 5


async def test_hundreds_of_streams_run_side_by_side():
    async with worker(max_num_seqs=256, step_s=0.005) as it:
        texts = await asyncio.gather(*(it.stream_text(max_tokens=15) for _ in range(200)))
        assert len(set(texts)) == 1
        assert await it.metric("generation_tokens_total") == 200 * 15


# --- refusals -------------------------------------------------------------------------------------


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
            {"max_tokens": 5000},
            400,
            "max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer "
            "output tokens. (parameter=max_tokens, value=5000)",
            "BadRequestError",
            "max_tokens",
        ),
        (
            {"messages": [{"role": "user", "content": "word " * 3000}], "stream": True},
            400,
            "This model's maximum context length is 2048 tokens. However, your prompt contains at "
            "least 2049 input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt. (parameter=input_tokens, value=2049)",
            "BadRequestError",
            "input_tokens",
        ),
        (
            {"temperature": -1},
            400,
            "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
            "BadRequestError",
            "temperature",
        ),
        (
            {"stream_options": {"include_usage": True}},
            400,
            "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
            "BadRequestError",
            "stream_options",
        ),
        (
            {"messages": None},
            400,
            "1 validation error:\n  {'type': 'list_type', 'loc': 'body.messages', 'msg': 'Input "
            "should be a valid list', 'input': None}",
            "Bad Request",
            "body.messages",
        ),
        (
            {"n": 2, "temperature": 0},
            400,
            "n must be 1 when using greedy sampling, got 2.",
            "BadRequestError",
            None,
        ),
    ],
)
async def test_refusals_are_vllms(
    change: dict[str, Any], status: int, message: str, kind: str, param: str | None
):
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "hi"}], **change}
    async with worker() as it:
        response = await it.http.post("/v1/chat/completions", json=body)
    assert response.status_code == status
    error = {"message": message, "type": kind, "param": param, "code": status}
    assert response.json() == {"error": error}


async def test_bodies_that_cannot_be_read_are_refused_as_vllm_refuses_them():
    json_type = {"content-type": "application/json"}
    async with worker() as it:
        broken = await it.http.post(
            "/v1/chat/completions", content=b'{"model":"smollm2","messages":[\n', headers=json_type
        )
        missing = await it.http.post(
            "/v1/chat/completions", json={"model": "smollm2", "max_tokens": 5}
        )
        untyped = await it.http.post("/v1/chat/completions", content=b"{}")
        unknown = await it.http.get("/nowhere")
        wrong = await it.http.get("/v1/chat/completions")
    assert broken.json()["error"] == {
        "message": "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.32', 'msg': 'JSON "
        "decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}",
        "type": "Bad Request",
        "param": "body.32",
        "code": 400,
    }
    assert missing.json()["error"]["message"] == (
        "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field "
        "required', 'input': '<dict of 2 items>'}"
    )
    assert "Only 'application/json' is allowed" in untyped.json()["error"]["message"]
    assert (unknown.status_code, unknown.json()) == (404, {"detail": "Not Found"})
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})


UNREADABLE = (
    *(b"", b"[]", b"null", b"{", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"messages":[]}'),
    b'{"messages":[{"role":"user","content":{"a":1}}]}',
    b'{"messages":["hi"]}',
    b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}',
    b'{"messages":[{"role":"user","content":"x"}],"max_tokens":"9"}',
    b'{"messages":[{"role":"user","content":"x"}],"max_tokens":0}',
    b'{"messages":[{"role":"user","content":"x"}],"temperature":NaN}',
    b'{"messages":[{"role":"user","content":"x"}],"temperature":1' + b"0" * 400 + b"}",
    b'{"messages":[{"role":"user","content":"x"}],"seed":1' + b"0" * 5000 + b"}",
    b'{"messages":[{"role":"user","content":"x"}],"n":100000}',
    b'{"messages":[{"role":"user","content":"x"}],"stop":[""]}',
    b'{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":3}',
)


async def test_no_body_breaks_it():
    headers = {"content-type": "application/json"}
    async with worker() as it:
        for body in UNREADABLE:
            response = await it.http.post("/v1/chat/completions", content=body, headers=headers)
            assert response.status_code == 400, body[:80]
            assert response.json()["error"]["code"] == 400, body[:80]
        assert (await it.chat("hi")).status_code == 200


async def test_odd_characters_come_back_as_they_can():
    async with worker() as it:
        said = b"Fix: \\ud800 teh \xe6\xbc\xa2 \\u0000 \\u2028"
        body = b'{"messages":[{"role":"user","content":"%b"}]}' % said
        headers = {"content-type": "application/json"}
        response = await it.http.post("/v1/chat/completions", content=body, headers=headers)
    assert response.json()["choices"][0]["message"]["content"] == "? the 漢 \0 \u2028"


@pytest.mark.parametrize("change", [{"min_p": 0.1}, {"logit_bias": {"10": 5}}])
async def test_what_speculation_cannot_do_is_refused_too_late_when_streamed(change: dict[str, Any]):
    async with worker() as it:
        whole = await it.chat(**change)
        async with it.stream(**change) as response:
            text = (await response.aread()).decode()
        assert (await it.metric("num_requests_running")) == 0
    assert (whole.status_code, whole.json()) == (400, NOT_WITH_SPECULATION)
    assert response.status_code == 200
    assert text == f"data: {json.dumps(NOT_WITH_SPECULATION)}\n\ndata: [DONE]\n\n"
    async with worker(None) as plain:
        assert (await plain.chat(max_tokens=3, **change)).status_code == 200


async def test_min_p_means_nothing_to_a_greedy_request():
    async with worker() as it:
        assert (await it.chat(min_p=0.1, temperature=0, max_tokens=3)).status_code == 200


async def test_the_queue_limit_counts_running_and_waiting():
    async with worker(max_num_seqs=1, max_num_queued_reqs=2, step_s=0.02) as it:
        async with it.stream(), it.stream():
            await it.until("num_requests_waiting", lambda value: value == 1)
            refused = await it.chat()
        assert (refused.status_code, refused.json()) == (503, BUSY)
        assert "retry-after" not in refused.headers
        reason = {"reason": "max_num_queued_reqs"}
        assert await it.metric("admission_rejections_total", **reason) == 1


async def test_a_burst_past_the_queue_limit_is_refused_early_or_within_the_stream():
    async with worker(max_num_queued_reqs=6, step_s=0.01) as it:
        answers = await asyncio.gather(*(read_stream(it, max_tokens=20) for _ in range(9)))
    refused = [text for _, text in answers if '"code": 503' in text or '"code":503' in text]
    assert len(refused) == 3
    early = [status for status, _ in answers if status != 200]
    assert set(early) <= {503}


async def read_stream(it: Worker, **more: Any) -> tuple[int, str]:
    async with it.stream(**more) as response:
        return response.status_code, (await response.aread()).decode()


async def test_a_key_guards_the_api_and_nothing_else():
    async with worker(api_key="secret") as it:
        assert (await it.chat()).json() == {"error": "Unauthorized"}
        assert (await it.http.get("/health")).status_code == 200
        it.http.headers["authorization"] = "Bearer secret"
        assert (await it.chat("hi")).status_code == 200


# --- what it tells about itself -------------------------------------------------------------------


async def test_it_introduces_itself_as_vllm_does():
    async with worker() as it:
        model = (await it.ai.models.list()).data[0]
        version = (await it.http.get("/version")).json()
        health, ping = await it.http.get("/health"), await it.http.get("/ping")
    assert (model.id, model.owned_by) == ("smollm2", "vllm")
    assert model.model_extra["max_model_len"] == 2048
    assert version == {"version": "0.32.0", "simulated": True}
    assert (health.status_code, health.content, ping.content) == (200, b"", b"")


async def test_metrics_tell_what_was_drafted():
    async with worker() as it:
        answer = (await it.chat(EDIT)).json()
        spec = answer["metrics"]["speculative_decoding"]
        assert await it.metric("spec_decode_num_drafts_total") == spec["num_spec_steps"]
        assert await it.metric("spec_decode_num_draft_tokens_total") == spec["num_draft_tokens"]
        accepted = spec["num_accepted_draft_tokens"]
        assert await it.metric("spec_decode_num_accepted_tokens_total") == accepted
        assert await it.metric("spec_decode_num_accepted_tokens_per_pos_total") == accepted
        assert await it.metric("spec_decode_num_accepted_tokens_per_pos_total", position="4") > 0
        assert await it.metric("spec_decode_num_drafts_created") > 1e9
        usage = answer["usage"]
        assert await it.metric("generation_tokens_total") == usage["completion_tokens"]
        assert await it.metric("prompt_tokens_total") == usage["prompt_tokens"]
        assert await it.metric("request_success_total", finished_reason="stop") == 1
        assert await it.metric("time_to_first_token_seconds_count") == 1


async def test_answers_tell_their_times_where_the_worker_is_told_to():
    options = {"stream_options": {"include_usage": True}}
    async with worker(None, per_request_metrics=True, step_s=0.01) as it:
        whole = (await it.chat(max_tokens=11)).json()["metrics"]
        async with it.stream(max_tokens=11, **options) as response:
            streamed = events_of((await response.aread()).decode())[-1]["metrics"]
    assert whole["speculative_decoding"] is None
    assert streamed.keys() == whole.keys() - {"speculative_decoding"}
    for times in (whole, streamed):
        assert times["time_to_first_token_ms"] >= 10
        assert times["generation_time_ms"] >= 50  # ten passes, less what the first was late
        assert times["queue_time_ms"] >= 0
        assert times["mean_itl_ms"] == pytest.approx(times["generation_time_ms"] / 10)
        assert times["tokens_per_second"] == pytest.approx(1e3 / times["mean_itl_ms"])


async def test_a_plain_worker_has_no_speculation_metrics():
    async with worker(None) as it:
        answer = (await it.chat(max_tokens=3)).json()
        with pytest.raises(KeyError):
            await it.metric("spec_decode_num_drafts_total")
    assert answer["metrics"] is None


# --- clients that leave, and faults ---------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_leaves_frees_its_sequence(streamed: bool):
    async with worker(step_s=0.02) as it:
        task = asyncio.create_task(leave_open(it) if streamed else ignore(it.chat()))
        await it.until("num_requests_running", lambda value: value == 1)
        task.cancel()
        await it.until("num_requests_running", lambda value: value == 0)
        assert await it.metric("request_success_total", finished_reason="abort") == 1
        assert await it.metric("kv_cache_usage_perc") == 0


async def leave_open(it: Worker) -> None:
    async with it.stream() as response:
        async for _ in response.aiter_bytes():
            pass


async def read_into(parts: list[bytes], stream: Any) -> None:
    async with stream as response:
        async for data in response.aiter_raw():
            parts.append(data)


async def ignore(answer: Any) -> None:
    await answer


async def test_an_error_before_the_answer_meets_as_many_requests_as_told():
    async with worker() as it:
        await it.set_faults({"kind": "error", "count": 2, "retry_after_s": 3})
        first, second, third = [await it.chat("hi") for _ in range(3)]
        assert (await it.http.get("/sim/faults")).json() == {"faults": []}
    assert (first.status_code, first.json(), first.headers["retry-after"]) == (503, BUSY, "3")
    assert second.status_code == 503
    assert third.status_code == 200


@pytest.mark.parametrize("at_token", [0, 7])
async def test_an_error_strikes_within_the_stream(at_token: int):
    async with worker() as it:
        await it.set_faults({"kind": "error_event", "at_token": at_token, "status": 503})
        async with it.stream(EDIT, return_token_ids=True) as response:
            *events, error = events_of((await response.aread()).decode())
        assert await it.metric("num_requests_running") == 0
    assert response.status_code == 200
    assert error == BUSY
    assert sum(len(event["choices"][0].get("token_ids", [])) for event in events) == at_token


@pytest.mark.parametrize("mid_event", [False, True])
async def test_a_connection_is_cut_without_an_end(mid_event: bool):
    async with worker() as it:
        await it.set_faults({"kind": "die", "at_token": 5, "mid_event": mid_event, "count": 1})
        parts: list[bytes] = []
        with pytest.raises(httpx.RemoteProtocolError):
            await read_into(parts, it.stream())
        received = b"".join(parts)
        assert received.endswith(b"\n\n") is not mid_event
        assert b"[DONE]" not in received
        await it.until("num_requests_running", lambda value: value == 0)
        assert (await it.chat("hi")).status_code == 200


async def test_an_answer_that_is_not_streamed_never_comes_when_its_worker_dies():
    async with worker() as it:
        await it.set_faults({"kind": "die", "at_token": 2, "count": 1})
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            await it.chat()
        assert (await it.chat("hi")).status_code == 200


async def test_a_stream_hangs_until_its_client_leaves():
    async with worker() as it:
        await it.set_faults({"kind": "hang", "at_token": 3})
        async with it.stream(return_token_ids=True) as response:
            lines = response.aiter_lines()
            seen = [await anext(lines) for _ in range(4)]  # the role and a token, each with a blank
            rest = asyncio.create_task(leave_open_lines(lines, seen))
            await asyncio.wait([rest], timeout=0.1)
            assert not rest.done()
            assert await it.metric("num_requests_running") == 1
            rest.cancel()
        await it.until("num_requests_running", lambda value: value == 0)
    assert sum(len(event_tokens(line)) for line in seen) == 3


async def leave_open_lines(lines: AsyncIterator[str], seen: list[str]) -> None:
    async for line in lines:
        seen.append(line)


def event_tokens(line: str) -> list[int]:
    """The token ids of one line of a stream; none for lines that carry none."""
    if not line.startswith("data: {"):
        return []
    return json.loads(line.removeprefix("data: "))["choices"][0].get("token_ids") or []


async def test_passes_can_be_slowed_down_and_sped_up_again():
    async with worker(None, step_s=0.002) as it:
        await it.set_faults({"kind": "slow", "factor": 25})
        began = asyncio.get_running_loop().time()
        await it.chat(max_tokens=5)
        slow = asyncio.get_running_loop().time() - began
        await it.set_faults()
        await it.chat(max_tokens=5)
        quick = asyncio.get_running_loop().time() - began - slow
    assert slow >= 0.25
    assert quick < slow


async def test_comments_keep_an_idle_stream_alive():
    async with worker(None, step_s=0.05) as it:
        await it.set_faults({"kind": "comments", "every_s": 0.01})
        async with it.stream(max_tokens=3) as response:
            text = (await response.aread()).decode()
    assert text.startswith(": keep-alive\n\n")
    assert len(events_of(text)) == 4


@pytest.mark.parametrize("streamed", [True, False])
async def test_answers_can_be_zipped(streamed: bool):
    async with worker() as it:
        await it.set_faults({"kind": "gzip"})
        async with it.stream(max_tokens=5, **({} if streamed else {"stream": False})) as response:
            raw = b"".join([data async for data in response.aiter_raw()])
    assert response.headers["content-encoding"] == "gzip"
    plain = zlib.decompress(raw, wbits=31).decode()
    assert events_of(plain) if streamed else json.loads(plain)["choices"]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ({"kind": "explode"}, "kind must be one of error, error_event, die"),
        ({"kind": "die", "at_token": -1}, "at_token cannot be -1"),
        ({"kind": "hang", "status": 500}, "hang does not take status"),
        ({"kind": "die", "exit": True}, "this worker runs inside another process"),
        ("die", "a fault is an object"),
    ],
)
async def test_faults_that_cannot_be_are_refused(fault: Any, problem: str):
    async with worker() as it:
        response = await it.http.post("/sim/faults", json=fault)
    assert response.status_code == 400
    assert problem in response.json()["detail"]


# --- saturation, lag, death and rebirth -----------------------------------------------------------


async def test_a_saturated_worker_says_so_and_refuses():
    async with worker(max_num_seqs=8) as it:
        await it.set_faults({"kind": "saturated", "waiting": 33})
        refused = await it.chat("hi")
        assert (refused.status_code, refused.json()) == (503, BUSY)
        assert await it.metric("num_requests_running") == 8
        assert await it.metric("num_requests_waiting") == 33
        assert await it.metric("kv_cache_usage_perc") == 1
        await it.set_faults()
        assert await it.metric("num_requests_waiting") == 0
        assert (await it.chat("hi")).status_code == 200


async def test_the_token_limit_counts_prompts_that_are_not_computed():
    async with worker(max_num_queued_tokens=50) as it:
        refused = await it.chat("word " * 60)
        assert (refused.status_code, refused.json()) == (503, BUSY)
        reason = {"reason": "max_num_queued_tokens"}
        assert await it.metric("admission_rejections_total", **reason) == 1
        assert (await it.chat("hi")).status_code == 200


async def test_events_are_joined_where_the_server_lags():
    async with worker(None, step_s=0.002) as it:
        await it.set_faults({"kind": "merge", "every_s": 0.05})
        async with it.stream(max_tokens=40, return_token_ids=True) as response:
            events = events_of((await response.aread()).decode())
    sizes = [len(event["choices"][0]["token_ids"]) for event in events[1:]]
    assert sum(sizes) == 40
    assert max(sizes) >= 5


async def test_a_stream_interval_gathers_tokens_but_for_the_first_and_last():
    async with worker(None) as it:
        async with it.stream(max_tokens=21, return_token_ids=True, stream_interval=8) as response:
            events = events_of((await response.aread()).decode())
    assert [len(event["choices"][0]["token_ids"]) for event in events[1:]] == [1, 8, 8, 4]


async def test_a_dead_engine_ends_its_streams_with_an_error_and_comes_back_as_new():
    async with worker(step_s=0.01) as it:
        async with it.stream() as response:
            lines = response.aiter_lines()
            await anext(lines)
            await it.set_faults({"kind": "engine_death", "for_s": 1.0})
            during = [await it.http.get("/health"), await it.chat("hi")]
            rest = [line async for line in lines if line]
        assert rest[-1] == "data: [DONE]"
        assert json.loads(rest[-2].removeprefix("data: "))["error"]["code"] == 500
        assert [answer.status_code for answer in during] == [503, 500]
        async with asyncio.timeout(5):
            while (await it.http.get("/health")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await it.metric("generation_tokens_total") == 0
        assert (await it.chat("hi")).status_code == 200


async def test_a_worker_that_is_down_cuts_what_it_has_and_takes_nothing():
    async with worker(step_s=0.01) as it:
        parts: list[bytes] = []
        reading = asyncio.create_task(read_into(parts, it.stream()))
        await it.until("num_requests_running", lambda value: value == 1)
        await it.set_faults({"kind": "down", "for_s": 60})
        with pytest.raises(httpx.RemoteProtocolError):
            await reading
        with pytest.raises(httpx.TransportError):
            await it.http.get("/health")
        assert b"[DONE]" not in b"".join(parts)
        await it.set_faults({"kind": "down", "for_s": 0})
        assert (await it.chat("hi")).status_code == 200


# --- hardware and engines -------------------------------------------------------------------------


async def test_several_engines_are_told_apart():
    async with worker(engines=2) as it:
        answers = [
            await it.http.post(
                "/v1/chat/completions",
                json={"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
                headers={"x-data-parallel-rank": rank},
            )
            for rank in ("1", "1", "0", "2")
        ]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 400]
        assert await it.metric("generation_tokens_total", engine="1") == 10
        assert await it.metric("generation_tokens_total", engine="0") == 5
        await asyncio.gather(*(it.chat(max_tokens=5) for _ in range(8)))
        assert await it.metric("request_success_total", engine="0") >= 4


async def test_a_request_may_ask_for_fewer_drafts_where_the_worker_listens():
    async def drafted(it: Worker) -> int:
        answer = (await it.chat(EDIT, vllm_xargs={"paceline_k": 0})).json()
        return answer["metrics"]["speculative_decoding"]["num_draft_tokens"]

    async with worker(per_request_k=True) as it:
        assert await drafted(it) == 0
    async with worker() as it:
        assert await drafted(it) > 0


@pytest.mark.parametrize("method", ["suffix", "ngram", "eagle3"])
async def test_any_method_gives_the_same_text(method: str):
    async with (
        worker(None) as plain,
        worker(
            parse_speculation(json.dumps({"method": method, "num_speculative_tokens": 4})),
            hardware="h100",
            time_scale=20,
        ) as it,
    ):
        assert await it.stream_text(EDIT) == await plain.stream_text(EDIT)
        assert await it.metric("spec_decode_num_drafts_total") > 0


async def test_suffix_decoding_learns_from_earlier_outputs():
    suffix = parse_speculation('{"method": "suffix"}')
    async with worker(suffix) as it:
        ask = "Tell me about rivers."
        answers = [(await it.chat(ask, max_tokens=200)).json() for _ in range(2)]
        lengths = [
            answer["metrics"]["speculative_decoding"]["mean_acceptance_length"]
            for answer in answers
        ]
        assert lengths[1] > 5 > lengths[0]


async def test_the_schedule_shortens_drafts_as_the_batch_grows():
    config = {
        "method": "eagle3",
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": [[1, 1, 3], [2, 64, 0]],
    }
    async with worker(parse_speculation(json.dumps(config))) as it:
        await it.chat(max_tokens=40)
        alone = await it.metric("spec_decode_num_draft_tokens_total")
        await asyncio.gather(*(it.chat(max_tokens=40, ignore_eos=True) for _ in range(4)))
        together = await it.metric("spec_decode_num_draft_tokens_total") - alone
    assert alone > 20
    assert together < alone  # but for the ends, where one is left over


async def test_time_can_be_scaled():
    async with worker(None, step_s=1.0, time_scale=200) as it:
        async with asyncio.timeout(5):
            assert (await it.chat(max_tokens=20)).status_code == 200
        stats = (await it.http.get("/sim/stats")).json()
    assert stats["passes"] >= 20
    assert 0 <= stats["lateness_s"]["p50"] <= stats["lateness_s"]["max"]


# --- the process ----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`paceline sim-worker` as a process of its own, and what it printed first."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "paceline", "sim-worker", *arguments)
    child = await asyncio.create_subprocess_exec(
        *command,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(20):
            yield child, (await child.stdout.readline()).decode()
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def test_it_prints_its_address_and_ends_at_once_on_sigterm():
    speculation = '{"method": "eagle3", "num_speculative_tokens": 3, "model": "a/drafter"}'
    async with process("--port", "0", "--model", "m", "--speculation", speculation) as (
        child,
        line,
    ):
        assert line.startswith("listening on http://127.0.0.1:")
        url = line.removeprefix("listening on ").strip()
        async with httpx.AsyncClient(base_url=url, timeout=10) as http:
            body = {
                "model": "m",
                "stream": True,
                "messages": [{"role": "user", "content": "bread"}],
            }
            async with http.stream("POST", "/v1/chat/completions", json=body) as response:
                await anext(response.aiter_bytes())
                child.send_signal(signal.SIGTERM)
                assert await child.wait() == 0
    assert child.stderr is not None
    assert await child.stderr.read() == b""


async def test_a_fault_can_end_the_process():
    fault = '{"kind": "die", "at_token": 2, "exit": true}'
    async with process("--port", "0", "--step-ms", "1", "--fault", fault) as (child, line):
        async with httpx.AsyncClient(base_url=line.split()[-1], timeout=10) as http:
            body = {"stream": True, "messages": [{"role": "user", "content": "bread"}]}
            parts: list[bytes] = []
            with pytest.raises(httpx.TransportError):
                await read_into(parts, http.stream("POST", "/v1/chat/completions", json=body))
        assert await child.wait() == 70
    assert b"".join(parts).count(b"data: ") >= 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--speculation", '{"method": "dspark", "num_speculative_tokens": 3}'),
            "method must be one",
        ),
        (("--speculation", "{"), "--speculation: not JSON"),
        (("--speculation", '{"method": "ngram"}'), "num_speculative_tokens must be"),
        (("--port", "70000"), "port 70000 is not in 0..65535"),
        (("--max-num-seqs", "0"), "max_num_seqs must be at least 1"),
        (("--hardware", "abacus"), "hardware must be one of h100"),
        (("--hardware", "h100", "--model-profile", "llama-3.3-70b"), "does not fit on 1 x h100"),
        (("--kv-tokens", "100", "--max-model-len", "200"), "cannot hold one sequence"),
        (("--time-scale", "0"), "time_scale must be in"),
        (
            (
                "--speculation",
                '{"method": "ngram", "num_speculative_tokens": 3,'
                ' "num_speculative_tokens_per_batch_size": [[2, 4, 1]]}',
            ),
            "num_speculative_tokens_per_batch_size: the first range must begin at 1",
        ),
        (("--fault", '{"kind": "x"}'), "--fault: kind must be one of"),
    ],
)
def test_options_that_cannot_be_are_named(
    arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["sim-worker", *arguments]) == 2
    assert problem in capsys.readouterr().err
