"""The official clients for Node through the gateway: scripts in `tests/node`, judged here.

Each client is one process that prints what it got. `make test` installs what the scripts import.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from official import MODEL, WEATHER, Clients, check_weather, recording
from through import KEY, SAID, Through, absent, alike, idle, program, through

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "tests/node"
READY = SCRIPTS / "node_modules" / ".ready"
LEAST_NODE = 20
TEXTS = ["The river runs.", "Bread rises."]
TOOL = {"name": "weather", "description": "Tells it."}
HI: Any = [{"role": "user", "content": "hi"}]


async def new_enough_node() -> str:
    node = program("node")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(node, "--version", stdout=pipe)
    version = (await process.communicate())[0].decode().strip()
    if int(version.removeprefix("v").partition(".")[0]) < LEAST_NODE:
        absent(f"the Node clients need Node {LEAST_NODE}, this is {version}")
    return node


async def results(it: Through, script: str, **environment: str) -> dict[str, Any]:
    """What a script says of its checks."""
    node = await new_enough_node()
    if not READY.exists():
        absent("the Node clients are not installed (make test does it)")
    worker = str(it.plain.http.base_url).rstrip("/")
    more = {"GATEWAY": it.served.url, "WORKER": worker, "KEY": KEY}
    quiet = {"NO_PROXY": "*", "NODE_USE_ENV_PROXY": "0"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        node, str(SCRIPTS / script), env={**os.environ, **quiet, **more, **environment},
        stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, err.decode()) == (0, "")
    told: dict[str, Any] = json.loads(out)
    return told


def test_the_lock_holds_checksums_and_no_addresses():
    lock = json.loads((SCRIPTS / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert "://" not in json.dumps(lock)


async def asked(worker: Clients, path: str, **body: Any) -> dict[str, Any]:
    """A worker's own answer, as JSON."""
    answer: dict[str, Any] = (await worker.http.post(path, json={"model": MODEL, **body})).json()
    return answer


@pytest.mark.parametrize("package", ["openai", "openai-7"])
async def test_openai_is_served_as_by_the_worker(package: str, tmp_path: Path):
    file = tmp_path / "speech.wav"
    file.write_bytes(recording(5)[1])
    async with through() as it:
        got = await results(it, "openai.mjs", OPENAI_PACKAGE=package, RECORDING=str(file))
        num_generated = await num_generated_when_idle(it)
        chat = await asked(it.plain, "/v1/chat/completions", messages=HI)
        refusal = await asked(it.plain, "/v1/chat/completions", messages=HI, max_tokens=10**6)
        text = await asked(it.plain, "/v1/completions", prompt="The river", max_tokens=8)
        response = await asked(it.plain, "/v1/responses", input="hi")
        embeddings = await asked(it.plain, "/v1/embeddings", input=TEXTS)
        transcript = await it.plain.openai.audio.transcriptions.create(
            model=MODEL, file=recording(5)
        )
    check_chat(got, chat)
    check_responses(got, response)
    assert alike(got["completion"]) == alike(text)
    for ours, theirs in zip(got["embeddings"]["data"], embeddings["data"], strict=True):
        assert ours["embedding"] == pytest.approx(theirs["embedding"], abs=1e-6)
    assert got["transcription"]["text"] == transcript.text
    assert got["transcription_streamed"].strip() == transcript.text.strip()
    assert got["models"] == ["m", "alias"]
    assert got["request_id"]["request_id"]
    assert got["request_id"]["same"]
    check_failures(got, refused=refusal["error"]["message"])
    assert got["wrong_key"]["code"] == "invalid_api_key"
    assert got["died"]["error"]["code"] == "worker_died"
    assert got["died"]["text"]
    assert got["died"]["finishes"] == []
    assert 5 <= got["aborted"] < 100
    assert num_generated < 1500, "2000 were asked for, before the client left"


def check_chat(got: dict[str, Any], direct: dict[str, Any]) -> None:
    said = direct["choices"][0]["message"]["content"]
    assert alike(got["whole"]) == alike(direct)
    assert got["streamed"] == {"text": said, "finishes": ["stop"]}
    assert got["put_together"]["choices"][0]["message"]["content"] == said
    asked_for, not_asked_for = got["usage_asked"], got["usage_not_asked"]
    assert said.startswith(asked_for["text"])
    assert asked_for["text"] == not_asked_for["text"]
    assert [usage["completion_tokens"] for usage in asked_for["usages"]] == [6]
    assert (asked_for["withoutChoices"], not_asked_for["withoutChoices"]) == (1, 0)
    assert not_asked_for["usages"] == []
    check_weather(got["tools"]["given"][0])
    assert "hail, 3 degrees" in got["tools"]["answer"]


def check_responses(got: dict[str, Any], direct: dict[str, Any]) -> None:
    said = direct["output"][0]["content"][0]["text"]
    for response in (got["response"], got["response_streamed"]):
        assert response["output_text"] == response["output"][0]["content"][0]["text"] == said
        for key in direct.keys() - {"id", "created_at", "output"}:
            assert response[key] == direct[key], key
    kinds = got["response_events"]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert "response.output_text.delta" in kinds


async def test_our_own_package_streams_smooth_and_whole():
    if not (ROOT / "sdk/js/dist/index.js").exists():
        absent("the TypeScript SDK is not built (make setup does it)")
    asks = {"logprobs": True, "max_tokens": 60, "seed": 3, "temperature": 0.5, "n": 2}
    repeat = [{"role": "user", "content": "Repeat: a b c d e f g"}]
    async with through() as it:
        got = await results(it, "paceline.mjs")
        num_generated = await num_generated_when_idle(it)
        chat = await asked(it.plain, "/v1/chat/completions", messages=HI)
        refusal = await asked(it.plain, "/v1/chat/completions", messages=HI, max_tokens=10**6)
        sampled = await asked(it.workers["ngram"], "/v1/chat/completions", messages=repeat, **asks)
    said = chat["choices"][0]["message"]["content"]
    assert alike(got["whole"]) == alike(chat)
    assert got["streamed"] == said
    check_sampled(got["sampled"], sampled)
    assert got["models"] == ["m", "alias"]
    check_failures(got, refused=refusal["error"]["message"])
    assert got["wrong_key"]["code"] == "invalid_api_key"
    assert got["died"]["error"]["name"] == "StreamErrorEvent"
    assert got["died"]["error"]["code"] == "worker_died"
    assert got["died"]["text"]
    assert got["aborted"] == 5
    assert num_generated < 1500, "2000 were asked for, before the client left"


def check_sampled(got: dict[str, Any], direct: dict[str, Any]) -> None:
    """Two choices with log-probabilities, from the pool that speculates: all with its text."""
    assert got["route"]["pool"] == "ngram"
    assert got["route"]["workload"] == got["route"]["explain"]["workload"] == "edit"
    assert got["stats"]["maxAddedDelayMs"] <= 400
    used = got["chunks"][-1]["usage"]["completion_tokens"]
    assert used == direct["usage"]["completion_tokens"]
    for choice in direct["choices"]:
        own = [
            part
            for chunk in got["chunks"]
            for part in chunk["choices"]
            if part["index"] == choice["index"]
        ]
        text = "".join(part["delta"].get("content") or "" for part in own)
        scored = [part["logprobs"]["content"] for part in own if part.get("logprobs")]
        assert text == choice["message"]["content"]
        assert [entry for entries in scored for entry in entries] == choice["logprobs"]["content"]
        assert [part["finish_reason"] for part in own][-1] == choice["finish_reason"]


async def num_generated_when_idle(it: Through) -> float:
    await idle(it.plain)
    return await it.plain.metric("generation_tokens_total")


async def test_anthropic_is_served_as_by_the_worker():
    async with through() as it:
        got = await results(it, "anthropic.mjs")
        num_generated = await num_generated_when_idle(it)
        path, tools = "/v1/messages", [{**TOOL, "input_schema": WEATHER}]
        message = await asked(it.plain, path, messages=SAID, max_tokens=40)
        refusal = await asked(it.plain, path, messages=SAID, max_tokens=5000)
        counted = await asked(it.plain, f"{path}/count_tokens", messages=SAID, tools=tools)
    assert alike(got["whole"]) == alike(message)
    for key in ("content", "stop_reason", "usage", "role", "model"):
        assert got["streamed"][key] == message[key], key
    assert got["events"] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    used = got["tool_used"]
    assert used["pieces"] > 1
    assert used["message"]["stop_reason"] == "tool_use"
    check_weather(used["message"]["content"][0]["input"])
    assert "thunder" in used["answer"]
    assert got["counted"]["input_tokens"] == counted["input_tokens"]
    check_failures(got, refused=refusal["error"]["message"])
    assert got["died"]["error"]["name"] in ("APIError", "InternalServerError")
    assert "api_error" in got["died"]["error"]["message"]
    assert "content_block_delta" in got["died"]["kinds"]
    assert not {"message_delta", "message_stop"} & set(got["died"]["kinds"])
    assert 5 <= got["aborted"] < 100
    assert num_generated < 1500, "2000 were asked for, before the client left"


def check_failures(got: dict[str, Any], *, refused: str) -> None:
    """Both clients name their errors alike."""
    for what, name, status in (
        ("wrong_key", "AuthenticationError", 401),
        ("wrong_model", "NotFoundError", 404),
        ("refused", "BadRequestError", 400),
    ):
        assert (got[what]["name"], got[what]["status"]) == (name, status)
    assert "no model 'nope'" in got["wrong_model"]["message"]
    assert refused in got["refused"]["message"]
