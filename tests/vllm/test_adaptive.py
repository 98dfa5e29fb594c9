"""The adaptive mode on real engines: routed as it explains, taught by what they really accepted.

The n-gram and the plain worker serve one small model, so whatever differs between them is
speculation. What is tested is where requests go and which way beliefs move, not how fast it was.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest

from harness import NGRAM, Served, gateway, pool
from paceline.settings import Learning, Mode

pytestmark = pytest.mark.vllm

LINES = (
    "The river was high that spring and the ferry did not run.",
    "Nobody in the village could remember a colder May.",
    "The baker opened late, and the school did not open at all.",
    "On Sunday the wind turned, and by Monday the snow was gone.",
)
ASK = "Correct the spelling in this text and return it in full:\n\n"
WORDS = (" cat", " dog")
DECOYS = "".join("".join(four) + "." for four in product(WORDS, repeat=4))
"""After any four of the words comes a full stop: a lookup that has seen this, and nothing before
it, drafts one."""
FREE = (
    "Why is the sky blue? Explain it to a child.",
    "Tell me a story about a lighthouse keeper.",
    "What should I see in Lisbon in two days?",
)

TRIES = 3


@contextlib.asynccontextmanager
async def adaptive(workers: Any, **more: Any) -> AsyncIterator[Served]:
    pools = pool("ngram", workers.ngram.url, speculation=NGRAM), pool("plain", workers.plain.url)
    async with gateway(
        *pools,
        mode=Mode.ADAPTIVE,
        learning=Learning(exploration=0.0, replay=False),
        upstream_name="smollm2",
        **more,
    ) as served:
        yield served


def edit(turn: int) -> str:
    """A text to be given back, another each time."""
    lines = LINES[turn % len(LINES) :] + LINES[: turn % len(LINES)]
    return ASK + " ".join((f"Note {turn}.", *lines))


async def explained(g: Served, body: dict[str, Any]) -> dict[str, Any]:
    answer = await g.http.post(f"{g.admin_url}/admin/explain", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def asked(g: Served, content: str, session: str, **more: Any) -> dict[str, Any]:
    """Sends a request, and gives back what its header explains, after checking that what
    `/admin/explain` had said of it came true: once more, if what is known changed between."""
    body = {
        "model": "m", "messages": [{"role": "user", "content": content}], "temperature": 0,
        "max_tokens": 64, "stream": True, **more,
    }  # fmt: skip
    headers = {"x-paceline-explain": "1", "x-paceline-session": session}
    for _ in range(TRIES):
        told = await explained(g, body)
        post = g.http.stream(
            "POST", "/v1/chat/completions", json=body, headers=headers, timeout=120
        )
        async with post as answer:
            await answer.aread()
        g.running.gateway.learner.take_in()
        said: dict[str, Any] = json.loads(answer.headers["x-paceline-explain"])
        assert answer.headers["x-paceline-pool"] == said["pool"]
        if said["cost_s"] == told["cost_s"]:
            assert (said["pool"], said["k"]) == (told["pool"], told["k"])
            return said
    pytest.fail(f"it came out otherwise {TRIES} times, last {said} for {told}")


async def test_mixed_requests_go_as_explained_and_what_they_accept_moves_the_belief(workers):
    async with adaptive(workers) as g:
        body = {"model": "m", "messages": [{"role": "user", "content": edit(99)}], "max_tokens": 64}
        before = (await explained(g, body))["terms"]["ngram"]["tokens_per_pass"]
        edits = []
        for turn in range(4):
            edits.append(await asked(g, edit(turn), f"edit-{turn}"))
            await asked(g, FREE[turn % len(FREE)], f"free-{turn}")
        after = (await explained(g, body))["terms"]["ngram"]["tokens_per_pass"]
        listed = (await g.http.get(f"{g.admin_url}/admin/decisions?workload=edit")).json()
        state = (await g.http.get(f"{g.admin_url}/admin/state")).json()["models"][0]["pools"]
    # Not all, come what may: passes are timed, and on a busy machine one edit may stand still.
    where = [said["pool"] for said in edits]
    assert where[0] == "ngram"
    assert where.count("ngram") > len(where) / 2, where
    really = tokens_per_pass(listed["decisions"])
    # The right way, unless it was right to begin with.
    assert abs(after - really) < max(abs(before - really), 0.2)
    assert state[0]["step_time"]["num_observed"] > 0
    assert state[0]["step_time"]["residual"] is not None


def tokens_per_pass(decisions: list[dict[str, Any]]) -> float:
    """Over all decode passes of these requests: each yields a token beside those accepted."""
    accepted = sum(i * count for each in decisions for i, count in enumerate(each["accepted"]))
    written = sum(each["completion_tokens"] - 1 for each in decisions)
    return float(written / (written - accepted))


async def test_a_workload_that_stops_copying_leaves_the_lookup_pool(workers):
    """They still look like edits, but what may be answered is two words, after which the lookup
    drafts a full stop: every pass has a draft, which costs, and none holds. Not sampled: whether
    drafts hold in a sampled answer differs on this engine from start to start."""
    async with adaptive(workers) as g:
        body = {"model": "m", "messages": [{"role": "user", "content": edit(0)}]}
        before = await explained(g, body)
        allowed = [await token_of(g, workers.ngram.url, word) for word in WORDS]
        vain = {"max_tokens": 64, "ignore_eos": True, "allowed_token_ids": allowed}
        where = []
        for turn in range(30):
            where.append((await asked(g, edit(turn) + DECOYS, f"vain-{turn}", **vain))["pool"])
            if where[-2:] == ["plain"] * 2:
                break
        after = await explained(g, body)
        listed = (await g.http.get(f"{g.admin_url}/admin/decisions")).json()["decisions"]
    assert (before["pool"], where[0]) == ("ngram", "ngram")
    assert where[-2:] == ["plain"] * 2, f"it stayed: {where}"
    assert tokens_per_pass([each for each in listed if each["accepted"]]) < 1.1
    tau = [said["terms"]["ngram"]["tokens_per_pass"] for said in (before, after)]
    assert tau[1] < 0.7 * tau[0]


async def token_of(g: Served, worker: str, word: str) -> int:
    answer = await g.http.post(
        f"{worker}/tokenize",
        json={"model": "smollm2", "prompt": word, "add_special_tokens": False},
    )
    (token,) = answer.json()["tokens"]
    return int(token)
