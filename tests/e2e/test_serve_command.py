"""`paceline serve` as a process: from addresses alone, on signals, and on mistakes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from paceline.core.types import Speculation
from paceline.testing.scripted import ScriptedWorker
from paceline.testing.sim_worker import SimWorkerOptions, running_sim_worker

NGRAM = Speculation(method="ngram", num_speculative_tokens=5)


@contextlib.asynccontextmanager
async def paceline(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "paceline", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(30):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said_until(process: asyncio.subprocess.Process, pattern: str) -> str:
    """What it prints, up to the line that matches."""
    said = ""
    while line := (await process.stdout.readline()).decode():
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"never said {pattern}; said: {said}")


async def test_addresses_alone_are_enough():
    async with (
        running_sim_worker(SimWorkerOptions(model="tiny", speculation=NGRAM)) as spec,
        running_sim_worker(SimWorkerOptions(model="tiny")) as plain,
        paceline("serve", "--worker", spec, "--worker", f"{plain}/", "--port", "0",
                 "--admin-port", "0") as process,
    ):  # fmt: skip
        said = await said_until(process, "admin plane")
        url = re.search(r"OpenAI API +(\S+)/v1", said)[1]
        async with httpx.AsyncClient(base_url=url) as http:
            content = "Fix the spelling and return the text: Teh cat"
            body = {"model": "tiny", "messages": [{"role": "user", "content": content}]}
            answer = await http.post("/v1/chat/completions", json=body)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
        rest = (await process.stdout.read()).decode()
    assert answer.headers["x-paceline-pool"] == "spec-k5"
    assert "spec-k5" in said
    assert "plain (default)" in said
    assert "Traceback" not in rest


CONFIG = str(Path(__file__).parents[2] / "configs" / "gateway.yaml")
MISTAKES = [
    (["serve", "--worker", "http://127.0.0.1:9/x"], "--worker"),
    (["serve", "--worker", "http://127.0.0.1:9"], "127.0.0.1:9: a worker cannot be reached"),
    (["serve", "--config", "/nowhere.yaml"], "/nowhere.yaml"),
    (["serve", "--config", "x.yaml", "--port", "99999"], "is not a port"),
    (["serve", "--config", CONFIG, "--port", "8081"], "port of both planes"),
    (["serve"], "--config"),
    (["check", "/nowhere.yaml"], "/nowhere.yaml"),
]


@pytest.mark.parametrize(("arguments", "says"), MISTAKES)
async def test_a_mistake_is_named_and_ends_it(arguments: list[str], says: str):
    async with paceline(*arguments) as process:
        said = (await process.stdout.read()).decode()
        assert await process.wait() in (1, 2)
    assert says in said
    assert "Traceback" not in said


async def test_what_is_no_worker_is_asked_after():
    async with ScriptedWorker([]).running() as worker:
        worker.models_status = 404
        async with paceline("serve", "--worker", worker.url) as process:
            said = (await process.stdout.read()).decode()
    assert f"--worker {worker.url}: /v1/models answered 404; is it a vLLM?" in said


async def test_a_routing_test_that_fails_is_warned_of_and_stops_nothing(tmp_path: Path):
    config = tmp_path / "g.yaml"
    config.write_text(
        "models: [{name: m, pools: [{name: p, workers: [{url: 'http://127.0.0.1:1'}]}]}]\n"
        "routing: {tests: [{request: {messages: [{role: user, content: Hello}]},"
        " expect: {workload: edit}}]}\n"
    )
    arguments = ("--config", str(config), "--port", "0", "--admin-port", "0")
    async with paceline("serve", *arguments) as process:
        said = await said_until(process, "admin plane")
    assert f"WARNING a routing test fails: {config}:2: expected workload edit, got" in said


async def test_a_taken_port_is_named_before_anything_is_announced():
    async with running_sim_worker(SimWorkerOptions(model="tiny")) as url:
        port = url.rpartition(":")[2]
        async with paceline("serve", "--worker", url, "--port", port) as process:
            said = (await process.stdout.read()).decode()
            assert await process.wait() == 1
    assert f"127.0.0.1:{port} cannot be listened on" in said
    assert "choose another listen.port (--port; for the demo --any-port)" in said
    assert "OpenAI API" not in said
