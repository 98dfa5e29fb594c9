"""The adaptive mode over real sockets: it routes, explains itself, learns, and remembers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness import NGRAM, Served, eventually, gateway, pool
from paceline.__main__ import main
from paceline.core.sampling import LIKELY_EVERY_S
from paceline.core.types import Speculation, Workload
from paceline.errors import ConfigurationError
from paceline.settings import Learning, Limits, Log, Mode, PoolSettings, WorkerSettings
from paceline.testing.scripted import ScriptedWorker, response
from paceline.testing.sim_worker import SimWorkerOptions, parse_speculation, running_sim_worker

TEXT = (
    "Teh quick brown fox jumped over the lazy dog. The dog did not notice, becuase it was asleep "
    "under the old tree by the river. In the morning the farmer came to the river and saw the fox, "
    "and the fox ran away into the forest before the farmer could call the dog to help him."
)
EDIT = f"Fix the spelling mistakes and return the whole text:\n\n```\n{TEXT}\n```"
CHAT = "Why is the sky blue? Explain it to a child."
ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'
HEAD = Speculation(method="eagle3", num_speculative_tokens=3)
LOOKUP = parse_speculation('{"method":"ngram","num_speculative_tokens":5}')
ADAPTIVE: dict[str, Any] = {
    "mode": Mode.ADAPTIVE,
    "learning": Learning(exploration=0.0, replay=False),
}


@contextlib.asynccontextmanager
async def fleet(**more: Any) -> AsyncIterator[Served]:
    """An n-gram and a plain sim worker, routed by cost."""
    async with contextlib.AsyncExitStack() as stack:
        urls = []
        for speculation in (
            parse_speculation('{"method":"ngram","num_speculative_tokens":5}'),
            None,
        ):
            options = SimWorkerOptions(model="up", speculation=speculation, step_s=0.004)
            urls.append(await stack.enter_async_context(running_sim_worker(options)))
        pools = pool("ngram", urls[0], speculation=NGRAM), pool("plain", urls[1])
        yield await stack.enter_async_context(gateway(*pools, **{**ADAPTIVE, **more}))


async def explained(g: Served, content: str, **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": content}], **more}
    answer = await g.http.post(f"{g.admin_url}/admin/explain", json=body)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_requests_go_where_explain_says_and_say_so_themselves():
    async with fleet() as g:
        for content in (EDIT, CHAT):
            told = await explained(g, content)
            answer = await g.chat(content, headers={"x-paceline-explain": "1"}, max_tokens=64)
            said = json.loads(answer.headers["x-paceline-explain"])
            assert answer.headers["x-paceline-pool"] == told["pool"] == said["pool"]
            assert said["reason"] == told["reason"]
            assert set(said["cost_s"]) == {"ngram", "plain"}


async def test_explain_names_pool_k_every_term_and_the_runner_up():
    async with fleet() as g:
        told = await explained(g, EDIT)
    assert (told["pool"], told["k"], told["runner_up"]) == ("ngram", 5, "plain")
    assert list(told["terms"]["ngram"]) == [
        "worker", "k", "cost_s", "wait_s", "prefill_s", "decode_s", "others_s", "preference",
        "tokens_per_pass", "pass_s", "pass_before_s", "running", "output_tokens",
        "expected_tokens_per_s",
    ]  # fmt: skip
    assert told["why"].startswith("ngram with k = 5: least expected cost; ")


async def test_in_static_mode_explain_says_what_costs_would_say():
    async with fleet(mode=Mode.STATIC) as g:
        told = await explained(g, EDIT)
    assert (told["pool"], told["reason"], told["why"]) == (
        "plain", "default", "plain: no rule spoke, and it is the default",
    )  # fmt: skip
    assert told["if_adaptive"]["pool"] == "ngram"


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        (b"{", {}, 400, "not JSON"),
        (b"[]", {}, 400, "JSON object"),
        (b'{"model":"x"}', {}, 404, "no model"),
        (b'{"model":"m"}', {"content-type": "text/plain"}, 415, "application/json"),
        (b'{"model":"m"}', {"origin": "https://elsewhere.example"}, 403, "origins"),
        (b'{"model":"m"}', {"x-paceline-workload": "poetry"}, 400, "code, chat, edit"),
        (b'{"model":"m"}', {"x-paceline-workoad": "edit"}, 400, "x-paceline-workload"),
        (b'{"model":"m","user":"' + b"x" * 1000 + b'"}', {}, 413, "longer than 1000 bytes"),
    ],
)
async def test_what_explain_refuses(body, headers, status, says):
    limits = Limits(body_bytes=1000)
    async with gateway(pool("plain", "http://127.0.0.1:1"), limits=limits, **ADAPTIVE) as g:
        headers = {"content-type": "application/json", **headers}
        answer = await g.http.post(f"{g.admin_url}/admin/explain", content=body, headers=headers)
    assert (answer.status_code, says in answer.text) == (status, True)


@pytest.mark.parametrize(
    ("plane", "model", "says", "hints"),
    [("url", "m", "there is no /admin/explain", True), ("admin_url", "x", "no model 'x'", False)],
)
async def test_the_command_tells_a_wrong_plane_from_a_wrong_model(
    plane: str, model: str, says: str, hints: bool, tmp_path: Path, capsys
):
    (tmp_path / "body.json").write_text(json.dumps({"model": model, "messages": []}))
    async with gateway(pool("plain", "http://127.0.0.1:1"), **ADAPTIVE) as g:
        asked = ["explain", str(tmp_path / "body.json"), "--admin", getattr(g, plane)]
        assert await asyncio.to_thread(main, asked) == 1
    said = capsys.readouterr().err
    assert says in said
    assert ("is it the data plane?" in said) is hints


async def test_what_requests_come_to_is_learned_and_shown():
    async with fleet() as g:
        before = (await g.http.get(f"{g.admin_url}/admin/state")).json()["models"][0]["pools"][0]
        first = await explained(g, EDIT)
        for _ in range(8):
            async with g.streaming(EDIT, max_tokens=200) as answer:
                await answer.aread()
        beliefs = g.running.gateway.learner.beliefs["m"]
        await eventually(lambda: beliefs.num_observed == 8)
        after = (await g.http.get(f"{g.admin_url}/admin/state")).json()["models"][0]["pools"][0]
        last = await explained(g, EDIT)
        metrics = await g.metrics()
        done = (await g.http.get(f"{g.admin_url}/admin/decisions")).json()["decisions"][0]
    num_accepted = sum(i * count for i, count in enumerate(done["accepted"]))
    num_written = done["completion_tokens"] - 1
    tokens_per_pass = num_written / (num_written - num_accepted)
    assert before["step_time"]["num_observed"] == 0
    assert after["step_time"]["num_observed"] > 7
    expected = [told["terms"]["ngram"]["tokens_per_pass"] for told in (first, last)]
    assert abs(expected[1] - tokens_per_pass) < abs(expected[0] - tokens_per_pass)
    assert metrics['paceline_prediction_error_count{model="m",pool="ngram"}'] == 8
    assert metrics['paceline_knee_running_sequences{model="m",pool="ngram",workload="chat"}'] >= 1


async def test_edits_that_do_not_copy_leave_the_lookup_pool():
    """The worker's report says that nothing was accepted, whatever the request looks like."""
    answer = {
        "choices": [{"index": 0, "message": {"content": "no"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 41},  # too few to tell times by
        "metrics": {"speculative_decoding": {
            "acceptance_histogram": [20, 0, 0, 0, 0, 0], "num_spec_steps": 20,
            "num_draft_tokens": 100, "num_accepted_draft_tokens": 0,
        }},
    }  # fmt: skip
    async with contextlib.AsyncExitStack() as stack:
        lookup, plain = [
            await stack.enter_async_context(
                ScriptedWorker([response(json.dumps(said).encode())]).running()
            )
            for said in (answer, {k: v for k, v in answer.items() if k != "metrics"})
        ]
        pools = pool("ngram", lookup.url, speculation=NGRAM), pool("plain", plain.url)
        g = await stack.enter_async_context(gateway(*pools, **ADAPTIVE))
        before = await explained(g, EDIT)
        learner = g.running.gateway.learner
        for at in range(120):
            answered = await g.chat(EDIT, headers={"x-paceline-session": str(at)})
            learner.take_in()
            if answered.headers["x-paceline-pool"] == "plain":
                break
        told = await explained(g, EDIT)
    assert (before["pool"], told["pool"]) == ("ngram", "plain")
    tau = [said["terms"]["ngram"]["tokens_per_pass"] for said in (before, told)]
    assert tau[1] < 0.8 * tau[0]


async def test_a_conversation_stays_where_it_is_and_others_spread():
    async def workers_of(sessions: list[str]) -> set[str]:
        found = set()
        for session in sessions:
            asked = {"x-paceline-session": session, "x-paceline-explain": "1"}
            answer = await g.chat("hello", headers=asked)
            found.add(json.loads(answer.headers["x-paceline-explain"])["worker"])
        return found

    async with contextlib.AsyncExitStack() as stack:
        workers = [ScriptedWorker([response(ANSWER)]) for _ in range(3)]
        urls = [(await stack.enter_async_context(worker.running())).url for worker in workers]
        pools = pool("heads", *urls, speculation=HEAD)
        g = await stack.enter_async_context(gateway(pools, **ADAPTIVE))
        assert len(await workers_of(["one"] * 6)) == 1
        assert len(await workers_of(["two", "three", "four", "five"])) == 3


async def test_what_was_learned_is_there_after_a_restart(tmp_path: Path):
    state = tmp_path / "paceline.db"
    learning = Learning(state=state, exploration=0.0, replay=False)
    async with fleet(learning=learning) as g:
        for _ in range(6):
            await g.chat(EDIT, max_tokens=120)
        learned = None
    async with fleet(learning=learning) as g:
        pools = (await g.http.get(f"{g.admin_url}/admin/state")).json()["models"][0]["pools"]
        learned = pools[0]["step_time"]["num_observed"]
        with pytest.raises(ConfigurationError, match="in use by another gateway"):
            async with fleet(learning=learning):
                pass
    assert learned > 5
    with sqlite3.connect(state) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda path: path.write_text("not a database, but long enough to be taken for one" * 9),
            "not a state file",
        ),
        (lambda path: path.mkdir(), "cannot be opened"),
        (
            lambda path: sqlite3.connect(path).execute("CREATE TABLE notes (text)"),
            "some other program",
        ),
    ],
)
async def test_a_state_file_that_is_none_is_left_alone(tmp_path: Path, make, says):
    state = tmp_path / "paceline.db"
    make(state)
    with pytest.raises(ConfigurationError, match=says):
        async with gateway(
            pool("plain", "http://127.0.0.1:1"), mode=Mode.ADAPTIVE, learning=Learning(state=state)
        ):
            pass


async def test_decisions_are_listed_and_logged_without_a_word_of_the_prompt(tmp_path: Path):
    file = tmp_path / "decisions.jsonl"
    async with fleet(log=Log(decisions=file)) as g:
        await g.chat(EDIT, max_tokens=30, headers={"x-request-id": "one"})
        await g.chat(CHAT, max_tokens=30)
        listed = (await g.http.get(f"{g.admin_url}/admin/decisions?workload=edit")).json()[
            "decisions"
        ]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["workload"] for line in lines] == ["edit", "chat"]
    assert [(each["request_id"], each["code"], each["completion_tokens"]) for each in listed] == [
        ("one", 200, 30)
    ]
    assert lines[0]["terms"]["plain"]["cost_s"] > lines[0]["terms"]["ngram"]["cost_s"]
    assert sum(lines[0]["accepted"]) > 0
    assert "lazy dog" not in file.read_text()


async def test_a_request_without_text_and_one_that_generates_nothing_are_routed_too():
    async with fleet() as g:
        explain = f"{g.admin_url}/admin/explain?endpoint="
        ids = await g.http.post(f"{explain}completions", json={"model": "m", "prompt": [1, 2, 3]})
        vector = await g.http.post(f"{explain}embeddings", json={"model": "m", "input": "a"})
    assert ids.json()["reason"] in ("cost", "unsure")
    assert vector.json()["reason"] == "default"
    assert "terms" not in vector.json()


async def test_counters_return_to_zero_when_clients_leave():
    async with fleet() as g:
        async with g.streaming(CHAT, max_tokens=400) as answer:
            async for _ in answer.aiter_raw():
                break
        await eventually(lambda: g.in_flight == 0)
        snapshots = [worker.snapshot(g.fleet.now_s()) for worker in g.fleet.workers.values()]
        learner = g.running.gateway.learner
        learner.take_in()
    assert [snapshot.drafting for snapshot in snapshots] == [0.0, 0.0]
    assert learner.beliefs["m"].num_observed == 0


async def test_an_answer_is_studied_and_teaches_the_lookup_pool_that_did_not_write_it():
    """Plain workers say nothing of drafts; their texts do."""
    said = {
        "choices": [{"index": 0, "message": {"content": TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 80},
    }
    async with contextlib.AsyncExitStack() as stack:
        scripted = ScriptedWorker([response(json.dumps(said).encode())])
        plain = await stack.enter_async_context(scripted.running())
        pools = pool("ngram", "http://127.0.0.1:1", speculation=NGRAM), pool("plain", plain.url)
        learning = Learning(exploration=0.0)
        g = await stack.enter_async_context(gateway(*pools, mode=Mode.STATIC, learning=learning))
        beliefs = g.running.gateway.learner.beliefs["m"]
        before = beliefs.tokens_per_pass("ngram", Workload.EDIT)[5]
        for turn in range(4):
            await g.chat(EDIT)
            await eventually(lambda turn=turn: beliefs.num_observed > turn, within_s=20)
            await asyncio.sleep(LIKELY_EVERY_S)  # as often as one is looked at
        after = beliefs.tokens_per_pass("ngram", Workload.EDIT)[5]
        metrics = await g.metrics()
    assert after > before
    assert metrics["paceline_replayed_answers_total"] >= 2


async def test_a_worker_that_takes_it_is_told_how_many_tokens_to_draft():
    worker = ScriptedWorker([response(ANSWER)])
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(worker.running())
        told = WorkerSettings(url=worker.url, per_request_k=True)
        pools = PoolSettings(name="ngram", speculation=NGRAM, workers=(told,))
        g = await stack.enter_async_context(gateway(pools, **ADAPTIVE))
        answer = await g.chat(CHAT, headers={"x-paceline-explain": "1"})
        k = json.loads(answer.headers["x-paceline-explain"])["k"]
        await g.chat(CHAT, vllm_xargs={"paceline_k": 1})
    asked, own = (seen.json["vllm_xargs"] for seen in worker.seen)
    assert asked == {"paceline_k": k}
    assert own == {"paceline_k": 1}, "the client's own word stands"


async def test_of_several_choices_nothing_is_learned():
    async with fleet() as g:
        await g.chat(CHAT, n=2, temperature=0.7, max_tokens=20)
        await g.chat(CHAT, max_tokens=20)
        learner = g.running.gateway.learner
        learner.take_in()
    assert learner.beliefs["m"].num_observed == 1


async def test_requests_of_no_conversation_do_not_follow_one_another():
    """Prompts of token ids have no text, and so nothing that makes two of them one conversation."""
    answer = response(b'{"choices": [{"index": 0, "text": "hello"}]}')
    workers = [ScriptedWorker([0.3, answer]) for _ in range(3)]
    async with contextlib.AsyncExitStack() as stack:
        for worker in workers:
            await stack.enter_async_context(worker.running())
        g = await stack.enter_async_context(
            gateway(pool("p", *(w.url for w in workers)), **ADAPTIVE)
        )
        asked = [
            g.http.post("/v1/completions", json={"model": "m", "prompt": [at, 2, 3]})
            for at in range(12)
        ]
        await asyncio.gather(*asked)
    assert [len(worker.seen) for worker in workers] == [4, 4, 4]
