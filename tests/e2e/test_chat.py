"""`paceline chat` and the README's example, as processes against a gateway."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from harness import gateway, pool
from paceline.cli import chat
from paceline.testing.scripted import DONE, ScriptedWorker, delta, event, response, stream
from paceline_client import Route

ROOT = Path(__file__).parents[2]
USAGE = event(
    {
        "choices": [],
        "usage": {"completion_tokens": 4},
        "metrics": {"speculative_decoding": {"mean_acceptance_length": 2.5}},
    }
)
HELLO = stream(delta("Hello"), delta(" \x1b[31mthere,"), delta(" you", finish="stop"), USAGE, DONE)


async def process(*arguments: str, says: str = "") -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a Python with these arguments."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(30):
            out, error = await running.communicate(says.encode())
    finally:
        if running.returncode is None:
            running.kill()
    assert running.returncode is not None
    return running.returncode, out.decode(), error.decode()


async def paceline_chat(url: str, *arguments: str, says: str = "") -> tuple[int, str, str]:
    return await process("-m", "paceline", "chat", "--url", f"{url}/v1", *arguments, says=says)


async def test_once_prints_the_answer_and_where_it_came_from() -> None:
    async with ScriptedWorker(HELLO).running() as worker, gateway(pool("plain", worker.url)) as up:
        status, out, error = await paceline_chat(up.url, "--once", "hi")
    assert (status, out) == (0, "Hello ␛[31mthere, you\n")
    assert "pool plain · workload chat · reason only · tokens per pass 2.50" in error
    assert "added delay" in error


async def test_a_conversation_remembers_and_ends_at_the_end_of_input() -> None:
    async with ScriptedWorker(HELLO).running() as worker, gateway(pool("plain", worker.url)) as up:
        status, out, _ = await paceline_chat(up.url, says="hi\nand again\n")
    assert status == 0
    assert out.count("there, you") >= 2
    said = [
        (message["role"], message["content"][:5]) for message in worker.seen[1].json["messages"]
    ]
    assert said == [("user", "hi"), ("assistant", "Hello"), ("user", "and a")]


async def test_what_arrived_is_shown_before_what_went_wrong() -> None:
    script = stream(delta("Half"), event({"error": {"message": "worker died"}}))
    async with ScriptedWorker(script).running() as worker, gateway(pool("plain", worker.url)) as up:
        status, out, error = await paceline_chat(up.url, "--once", "hi")
    assert (status, out) == (1, "Half\n")
    assert "paceline: worker died" in error


async def test_a_key_without_debug_is_not_told_why() -> None:
    refused = response(
        b'{"error":{"message":"no","param":"x-paceline-explain"}}',
        status=403, extra=["connection: close"],
    )  # fmt: skip
    async with ScriptedWorker([refused], HELLO).running() as worker:
        status, out, _ = await paceline_chat(worker.url, "--model", "m", "--once", "hi")
    assert (status, out.startswith("Hello")) == (0, True)
    assert [seen.header("x-paceline-explain") for seen in worker.seen] == [["1"], []]


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b'{"error":{"message":"no such key"}}', "no such key; say yours with --api-key"),
        (404, b'{"detail":"Not Found"}', "/v1: Not Found; is the API there?"),
        (404, b'{"error":{"message":"no m","code":"model_not_found"}}', "paceline: no m\n"),
    ],
)
async def test_a_refusal_says_what_to_do(status: int, body: bytes, says: str) -> None:
    refused = response(body, status=status, extra=["connection: close"])
    async with ScriptedWorker([refused]).running() as worker:
        ended, out, error = await paceline_chat(worker.url, "--model", "m", "--once", "hi")
    assert (ended, out) == (1, "")
    assert says in error


async def test_nobody_there() -> None:
    status, out, error = await paceline_chat("http://127.0.0.1:9", "--model", "m", "--once", "hi")
    assert (status, out) == (1, "")
    assert error.startswith("paceline: no answer")


def test_raw_stands_beside_smooth_and_long_texts_show_their_end() -> None:
    turn = chat.Turn(raw="word " * 10_000 + "the-end", smooth="smooth end", route=Route(pool="p"))
    assert chat.tail(turn.raw, 40, 5).endswith("the-end")
    assert chat.tail(turn.raw, 40, 5).count("\n") <= 4
    assert "pool p" in turn.facts()


@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "\x9b31m", "a\x08b", "\r"])
def test_a_models_text_cannot_steer_the_terminal(text: str) -> None:
    assert not set(chat.printable(text)) & {"\x1b", "\x9b", "\x07", "\x08", "\r"}
    assert chat.printable("a\n\tb") == "a\n\tb"


async def test_the_readme_s_example_runs() -> None:
    code = next(
        block
        for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "paceline_client" in block
    )
    assert "http://127.0.0.1:8080" in code
    async with ScriptedWorker(HELLO).running() as worker, gateway(pool("plain", worker.url)) as up:
        status, out, error = await process("-c", code.replace("http://127.0.0.1:8080", up.url))
    assert (status, error) == (0, "")
    assert out == "Hello \x1b[31mthere, you"


async def test_the_sdk_needs_httpx_alone() -> None:
    others = ["fastapi", "uvicorn", "uvloop", "orjson", "pydantic", "rich", "openai", "yaml"]
    code = (
        f"import sys\nfor name in {[*others, 'paceline']}: sys.modules[name] = None\n"
        "import paceline_client\nprint(len(paceline_client.__all__))"
    )
    status, out, error = await process("-c", code)
    assert (status, error) == (0, "")
    assert int(out) > 20
