"""The real `openai` client through the gateway, over simulated workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError

from harness import NGRAM, Served, eventually, gateway, pool, prefer
from paceline.core.types import Speculation, Workload
from paceline.testing.showcase import EXAMPLES, ask, ask_worker
from paceline.testing.sim_worker import SimWorkerOptions, parse_faults, running_sim_worker

EAGLE = Speculation(method="eagle3", num_speculative_tokens=3)


@contextlib.asynccontextmanager
async def three_pools() -> AsyncIterator[Served]:
    async def worker(speculation: Speculation | None) -> str:
        options = SimWorkerOptions(model="up", speculation=speculation, step_s=0.002)
        return await stack.enter_async_context(running_sim_worker(options))

    async with contextlib.AsyncExitStack() as stack:
        ngram, eagle, plain = [await worker(s) for s in (NGRAM, EAGLE, None)]
        pools = (
            pool("ngram", ngram, speculation=NGRAM),
            pool("eagle3", eagle, speculation=EAGLE),
            pool("plain", plain),
        )
        rules = [prefer(Workload.EDIT, "ngram"), prefer(Workload.CODE, "eagle3")]
        yield await stack.enter_async_context(gateway(*pools, rules=rules))


def client(g: Served) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{g.url}/v1", api_key="none", max_retries=0)


async def test_each_workload_goes_where_it_drafts_and_nothing_else_changes():
    wanted = {Workload.CODE: "eagle3", Workload.CHAT: "plain", Workload.EDIT: "ngram"}
    async with three_pools() as g:
        for example in EXAMPLES:
            outcome = await ask(g.url, "m", example)
            text, usage = await ask_worker(outcome.explained["worker"], "up", example)
            assert outcome.explained["pool"] == wanted[example.workload]
            assert (outcome.text, outcome.usage) == (text, usage)
        metrics = await g.metrics()
    edits = metrics['paceline_mean_acceptance_length{model="m",pool="ngram",workload="edit"}']
    code = metrics['paceline_mean_acceptance_length{model="m",pool="eagle3",workload="code"}']
    assert edits > code > 1.5


async def test_the_readmes_example_works_as_it_stands(capsys):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    example = text.partition("```python\n")[2].partition("```")[0]
    async with three_pools() as g:
        code = example.replace("http://127.0.0.1:8080", g.url)
        assert code != example
        await asyncio.to_thread(exec, compile(code, "README.md", "exec"), {})
        metrics = await g.metrics()
    assert "class" in capsys.readouterr().out
    assert metrics['paceline_mean_acceptance_length{model="m",pool="eagle3",workload="code"}'] > 1


async def test_whole_answers_choices_and_completions():
    async with three_pools() as g, client(g) as openai:
        messages = [{"role": "user", "content": "Why do rivers bend?"}]
        whole = await openai.chat.completions.create(model="alias", messages=messages, n=2)
        assert [choice.index for choice in whole.choices] == [0, 1]
        assert all(choice.message.content for choice in whole.choices)
        text = await openai.completions.create(model="m", prompt="The river", max_tokens=8)
        assert text.usage.completion_tokens == 8
        models = [model.id async for model in openai.models.list()]
        assert models == ["m", "alias"]


async def test_a_stream_has_usage_only_where_it_was_asked_for():
    async with three_pools() as g, client(g) as openai:
        messages = [{"role": "user", "content": "Why do rivers bend?"}]
        for options, has_usage in ((None, False), ({"include_usage": True}, True)):
            stream = await openai.chat.completions.create(
                model="m", messages=messages, stream=True, stream_options=options, max_tokens=20
            )
            chunks = [chunk async for chunk in stream]
            assert any(chunk.usage is not None for chunk in chunks) == has_usage
            assert all(chunk.choices for chunk in chunks) != has_usage
            assert chunks[-1 - has_usage].choices[0].finish_reason == "length"


async def test_errors_are_the_clients_own_kinds():
    async with three_pools() as g, client(g) as openai:
        create = openai.chat.completions.create
        messages = [{"role": "user", "content": "hi"}]
        with pytest.raises(NotFoundError, match="no model 'nope'"):
            await create(model="nope", messages=messages)
        for stream in (True, False):
            with pytest.raises(BadRequestError):
                await create(model="m", messages=messages, max_tokens=10**6, stream=stream)


async def read_all(stream, pieces: list[str], finishes: list[str]) -> None:
    async for chunk in stream:
        pieces.append(chunk.choices[0].delta.content or "")
        finishes += filter(None, [chunk.choices[0].finish_reason])


FATAL = [
    [{"kind": "die", "at_token": 9}],
    [{"kind": "die", "at_token": 9, "mid_event": True}],
    [{"kind": "error_event", "at_token": 9, "status": 500, "message": "boom"}],
]


@pytest.mark.parametrize("faults", FATAL)
async def test_what_arrived_is_kept_and_the_failure_is_raised(faults: list[dict]):
    options = SimWorkerOptions(model="up", step_s=0.002)
    async with (
        running_sim_worker(
            options, faults=parse_faults({"faults": list(faults)}, can_exit=False)
        ) as url,
        gateway(pool("p", url)) as g,
        client(g) as openai,
    ):
        pieces: list[str] = []
        finishes: list[str] = []
        stream = await openai.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Why?"}], stream=True
        )
        with pytest.raises(APIError):
            await read_all(stream, pieces, finishes)
        await eventually(lambda: g.in_flight == 0)
    assert "".join(pieces)
    assert not finishes


async def test_an_early_error_is_a_status_that_clients_can_retry():
    faults = parse_faults(
        {"faults": [{"kind": "error_event", "at_token": 0, "status": 503}]}, can_exit=False
    )
    options = SimWorkerOptions(model="up", step_s=0.002)
    async with (
        running_sim_worker(options, faults=faults) as url,
        gateway(pool("p", url)) as g,
        client(g) as openai,
    ):
        with pytest.raises(InternalServerError) as failure:
            await openai.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Why?"}], stream=True
            )
    assert failure.value.status_code == 503
