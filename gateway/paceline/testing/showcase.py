"""Three requests, one of each workload, through a running gateway: what the demo shows and checks.

They are sent by the real `openai` client, streamed, and the answer to each is set beside its pool,
the reason for the pool, and the tokens per pass that it drafted.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from paceline.core.explain import how_sure
from paceline.core.types import Workload
from paceline.settings import PoolSettings, Settings

DOCUMENT = (
    "The morning ferry left the harbor at seven, and the captain beleived that the fog would lift "
    "before noon. It did not. Passengers stood along the rail and watched the grey water move "
    "past, and a boy counted the boats out loud untill his father asked him to stop. By the time "
    "the island came into view, the cafe had sold its last cup of coffee, and everyone agreed that "
    "it was definately the longest crossing of the year."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    workload: Workload
    prompt: str
    max_tokens: int = 400


EXAMPLES = (
    Example(
        workload=Workload.CODE,
        prompt="Write a Python class LRUCache with get and put, both in constant time.",
    ),
    Example(workload=Workload.CHAT, prompt="Why do cyclists ride close behind one another?"),
    Example(
        workload=Workload.EDIT,
        prompt=f"Correct the spelling in this text and return it in full:\n\n{DOCUMENT}",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one example. `tokens_per_pass` is None where nothing was drafted."""

    example: Example
    text: str
    usage: dict[str, int]
    explained: dict[str, Any]
    tokens_per_pass: float | None
    ttft_s: float
    total_s: float


async def ask(base_url: str, model: str, example: Example, *, api_key: str = "none") -> Outcome:
    """Streams one example through the gateway. Raises openai.OpenAIError."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"{base_url}/v1", api_key=api_key, max_retries=0) as client:
        began_s = time.perf_counter()
        raw = await client.chat.completions.with_raw_response.create(
            **_request(model, example),
            stream=True,
            stream_options={"include_usage": True},
            extra_headers={"x-paceline-explain": "1"},
        )
        pieces: list[str] = []
        first_s: float | None = None
        last: Any = None
        async for last in raw.parse():
            for choice in last.choices:
                if choice.delta.content:
                    first_s = first_s or time.perf_counter()
                    pieces.append(choice.delta.content)
        ended_s = time.perf_counter()
    return Outcome(
        example=example,
        text="".join(pieces),
        usage=_usage(last),
        explained=json.loads(raw.headers["x-paceline-explain"]),
        tokens_per_pass=_tokens_per_pass(last),
        ttft_s=(first_s or ended_s) - began_s,
        total_s=ended_s - began_s,
    )


async def ask_worker(url: str, model: str, example: Example) -> tuple[str, dict[str, int]]:
    """The same asked of a worker directly and not streamed: text and usage to compare with."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        answer = await client.chat.completions.create(**_request(model, example))
    return answer.choices[0].message.content or "", _usage(answer)


def faults(outcome: Outcome, settings: Settings, direct: tuple[str, dict[str, int]]) -> list[str]:
    """What is not as it should be, in words; empty if all is well."""
    model = settings.models[0]
    pool = next(pool for pool in model.pools if pool.name == outcome.explained["pool"])
    wanted = outcome.example.workload
    text, usage = direct
    checks = {
        f"it was taken for {outcome.explained['workload']}": (
            outcome.explained["workload"] == wanted.value
        ),
        f"it went to pool {pool.name}, not to {_SUITABLE[wanted]}": _suits(pool, wanted),
        "its text is not the worker's own": outcome.text == text,
        "its text is empty": bool(outcome.text),
        f"its usage is {outcome.usage}, the worker's own {usage}": outcome.usage == usage,
    }
    return [fault for fault, holds in checks.items() if not holds]


def lines(outcome: Outcome) -> str:
    """Where one request went, why, and what speculation made of it: three short lines."""
    said = outcome.explained
    tokens = f"{outcome.usage['completion_tokens']} tokens"
    drafted = f"{outcome.tokens_per_pass:.2f} a pass" if outcome.tokens_per_pass else "one a pass"
    return (
        f"[bold]{said['workload']:<5} → {said['pool']}[/bold]"
        f"  ({said['reason']}{' ' + said['rule'] if said['rule'] else ''})\n"
        f"        {how_sure(said['label_confidence'])} sure, by {', '.join(said['because'][:3])}\n"
        f"        {tokens}, {drafted}; first after {outcome.ttft_s * 1000:.0f} ms, "
        f"all in {outcome.total_s:.2f} s"
    )


async def show(base_url: str, settings: Settings, console: Console) -> list[Outcome]:
    """Asks all examples, one after the other, and prints what came of each."""
    outcomes = []
    console.print("one request of each workload, streamed by the openai client:")
    for example in EXAMPLES:
        with console.status(f"asking for {example.workload.value} …"):
            outcome = await ask(base_url, settings.models[0].name, example)
        console.print(lines(outcome))
        outcomes.append(outcome)
    return outcomes


def curl_line(base_url: str, model: str) -> str:
    """A line for the shell that streams one edit and shows the headers that say where it went."""
    content = "Fix the spelling and return the text: Teh captain beleived it untill noon."
    messages = [{"role": "user", "content": content}]
    body = {"model": model, "stream": True, "messages": messages}
    return (
        f"curl -isN {base_url}/v1/chat/completions -H 'content-type: application/json' "
        f"-H 'x-paceline-explain: 1' -d '{json.dumps(body)}'"
    )


def _request(model: str, example: Example) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": example.prompt}],
        "max_tokens": example.max_tokens,
        "temperature": 0,
    }


_SUITABLE = {
    Workload.EDIT: "an n-gram or suffix pool",
    Workload.CODE: "a pool with a trained head or draft model",
    Workload.CHAT: "a plain pool",
}


def _suits(pool: PoolSettings, workload: Workload) -> bool:
    """Edits belong where lookups draft them, code where a trained head does, chat on plain."""
    method = pool.speculation.method if pool.speculation else None
    match workload:
        case Workload.EDIT:
            return method in ("ngram", "ngram_gpu", "suffix")
        case Workload.CODE:
            return method in ("eagle", "eagle3", "mtp", "draft_model")
        case Workload.CHAT:
            return method is None


def _usage(answer: Any) -> dict[str, int]:
    usage = answer.usage
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def _tokens_per_pass(last: Any) -> float | None:
    metrics = (last.model_extra or {}).get("metrics") or {}
    report = metrics.get("speculative_decoding") or {}
    length = report.get("mean_acceptance_length")
    return float(length) if length else None
