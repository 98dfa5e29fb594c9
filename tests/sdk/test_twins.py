"""Both SDKs' pacers on the same random streams: the same pieces at the same times.

The vectors say what is right; this says that nothing else differs either.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from through import absent, program
from vectors import chunk_cases, pacer_cases

ROOT = Path(__file__).parents[2]
NUM_STREAMS = 400
WITHIN_MS = 0.01

BITS = [
    "a", "é", " ", "\n", "\r\n", "\r", "word ", "Hello", "\x7f", "\x85", "\x1c", "\u00a0", "\u2028",
    "👨‍👩‍👧‍👦", "👨‍", "👩", "👍🏽", "❤️", "🇩", "🇪", "©", "\U000e0041", "\u200d", "\u200c", "\ufeff",
    "की", "क्", "्", "ष", "น้ำ", "ำ", "ก", "가", "ᄀ", "ᅡ", "ᆨ", "각", "字", "　", "。", "\uff9e",
    "\x1b[31m", "\x1b[", "\x1b", "\x1b]8;;x\x07", "`", "``", "```py", "   ```", "\n    ```",
    "\n ``", "\u0301",
]  # fmt: skip


def text(random: Random, most: int) -> str:
    return "".join(random.choice(BITS) for _ in range(random.randint(0, most)))


def options(random: Random) -> dict[str, Any]:
    return {
        "unit": random.choice(["token", "token", "word", "grapheme"]),
        "max_delay_ms": random.choice([400, 400, 0, 50, 1000]),
        "min_delay_ms": random.choice([100, 0]),
        "drain_ms": random.choice([150, 0]),
    }


def step(random: Random, at: float, number: int) -> dict[str, Any]:
    kind = random.random()
    if kind < 0.1:
        return {"at": at, "part": number, "closes": random.choice(["", None, "0."])}
    if kind < 0.2:
        odd = [{"hint": {"n": 3, "next": 44}}, {"flush": True}, {"abort": True}, {"finish": True}]
        return {"at": at, **random.choice(odd)}
    pushed = text(random, random.choice([1, 3, 40]))
    made: dict[str, Any] = {"at": at, "push": pushed, "lane": random.choice(["0.text", "1.text"])}
    if random.random() < 0.6:
        made["tokens"] = random.randint(0, 5)
    if random.random() < 0.2:
        cut = random.randint(0, len(pushed))
        made |= {"tokens": 2, "token_texts": [pushed[:cut], pushed[cut:]]}
    return made | ({"final": True} if random.random() < 0.05 else {})


def stream(random: Random) -> dict[str, Any]:
    steps, at = [], 0.0
    for number in range(random.randint(1, 12)):
        at += random.choice([0, 0.5, 3, 5, 20, 45, 120, 450])
        steps.append(step(random, at, number))
    return {"options": options(random), "steps": [*steps, {"at": at, "finish": True}]}


def logprobs(random: Random) -> dict[str, Any]:
    entries = [{"token": text(random, 1), "logprob": -1} for _ in range(random.randint(1, 3))]
    return {"content": random.choice([None, entries]), "refusal": None, "more": 1}


def choice(random: Random, index: int) -> dict[str, Any]:
    keys = ("role", "reasoning", "reasoning_content", "content", "refusal")
    delta: dict[str, Any] = {key: text(random, 5) for key in keys if random.random() < 0.3}
    if random.random() < 0.2:
        delta["tool_calls"] = [{"index": 0}]
    made = {
        "index": index,
        "delta": delta,
        "finish_reason": random.choice([None, None, "", "stop"]),
    }
    if random.random() < 0.3:
        made["token_ids"] = list(range(random.randint(0, 4)))
    if random.random() < 0.3:
        made["logprobs"] = logprobs(random)
    return made


def chunk_stream(random: Random) -> dict[str, Any]:
    steps, at, used = [], 0.0, 0
    for number in range(random.randint(1, 8)):
        at += random.choice([0, 5, 45, 200])
        indices = random.sample([0, 1], random.randint(0, 2))
        made = {"id": "c", "choices": [choice(random, index) for index in indices], "mark": number}
        if random.random() < 0.5:
            used += random.randint(0, 5)
            made["usage"] = {"completion_tokens": used}
        steps.append({"at": at, "chunk": made})
    return {"options": options(random), "steps": steps}


def by_the_twin(streams: dict[str, Any]) -> dict[str, Any]:
    if not (ROOT / "sdk/js/dist/index.js").exists():
        absent("the TypeScript SDK is not built (make setup does it)")
    script = str(ROOT / "tests/node/twin.mjs")
    run = subprocess.run(
        [program("node"), script], input=json.dumps(streams), capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(run.stdout)
    return told


def test_both_pacers_show_the_same_at_the_same_times() -> None:
    random = Random(20261130)
    texts = [stream(random) for _ in range(NUM_STREAMS)]
    chunks = [chunk_stream(random) for _ in range(NUM_STREAMS)]
    theirs = by_the_twin({"texts": texts, "chunks": chunks})
    ours = {
        "texts": [pacer_cases.play(one) for one in texts],
        "chunks": [chunk_cases.play(one) for one in chunks],
    }
    for kind, played in ours.items():
        for ours_shown, theirs_shown in zip(played, theirs[kind], strict=True):
            assert [what[1:] for what in theirs_shown] == [what[1:] for what in ours_shown]
            times = [at for at, *_ in ours_shown]
            assert [at for at, *_ in theirs_shown] == pytest.approx(times, abs=WITHIN_MS)
