"""What replaying costs: texts of the greatest size, an exchange like most, and the teacher itself.

The texts of the greatest size are meant to be hard: words that repeat, break off, or never come
again, so that matches are many, long, or in vain. The teacher is offered more than it can study,
and must keep to its share of a core all the same.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from paceline.bench import results
from paceline.core.repeats import copy_ratio, loops
from paceline.core.replay import replay
from paceline.core.replayable import TEXT_BYTES, Replayable, Replayed, study
from paceline.core.types import Endpoint, Speculation, Workload
from paceline.core.word_tokens import word_tokens
from paceline.edge.teacher import Teacher
from paceline.sim.library import passages
from paceline.testing.scripted import DONE, delta

NGRAM = Speculation(
    method="ngram",
    num_speculative_tokens=10,
    options={"prompt_lookup_min": 2, "prompt_lookup_max": 5},
)
SUFFIX = Speculation(method="suffix", num_speculative_tokens=24)
POOLS = {"ngram": NGRAM, "suffix": SUFFIX}
CHAT_TOKENS = 500
TEACHING_S = 20.0
MAX_SHARE = 0.03
"""Of a core, over `TEACHING_S`: the share allowed is 0.02, and an exchange begun is finished."""
MAX_SECONDS = 60.0
"""For one text of the greatest size by one method."""


def hard_texts(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Name, prompt and output, `TEXT_BYTES` together."""
    half = TEXT_BYTES // 2
    code = "\n".join(one.body for one in passages(Workload.CODE))
    changed = code.replace("return", "yield")
    repeated = half // len(code) + 1
    yield "code, changed here and there", (code * repeated)[:half], (changed * repeated)[:half]
    yield "one mark", "!" * half, "!" * half
    for marks in ("!?", "!?.,", "!?.,#$%^&*()-=+[]{};:@<>/|~"):
        name = f"{len(marks)} marks at random"
        yield name, "".join(rng.choices(marks, k=half)), "".join(rng.choices(marks, k=half))
    runs = ["!" * rng.randrange(1, 40) + rng.choice("?.,") for _ in range(half // 10)]
    yield "runs that break off", "".join(runs)[:half], "".join(reversed(runs))[:half]


def usual_exchange() -> Replayable:
    """A streamed chat that changes a program it was given, with vLLM's framing of events."""
    program = passages(Workload.CODE)[0].body
    prompt = f"Rename the functions and return the whole file.\n\n{program}"
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    words = (program.replace("first", "earliest") * 9).split(" ")[:CHAT_TOKENS]
    return Replayable(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        request=orjson.dumps(body),
        answer=b"".join([*(delta(f"{word} ") for word in words), DONE]),
        is_stream=True,
        lookups=POOLS,
    )


def cpu_s(work: Callable[..., object], *arguments: object) -> float:
    begun_s = time.process_time()
    work(*arguments)
    return time.process_time() - begun_s


def hard_rows() -> list[dict[str, Any]]:
    rows = []
    for name, asked, answered in hard_texts(random.Random(1)):
        prompt, output = word_tokens(asked), word_tokens(answered)
        row: dict[str, Any] = {"text": name, "tokens": len(prompt) + len(output)}
        row["ratio_s"] = cpu_s(copy_ratio, prompt, output) + cpu_s(loops, output)
        for method, how in POOLS.items():
            row[f"{method}_s"] = cpu_s(replay, how, prompt, output)
        rows.append(row)
    return rows


async def share_of_a_core() -> tuple[float, int, float]:
    """The child's CPU share while more is offered than it can study, exchanges taught, and the
    longest time that the loop was late, in seconds."""
    taught: list[Replayed] = []
    teacher: Teacher[None] = Teacher(lambda _, replayed: taught.append(replayed))
    running = asyncio.create_task(teacher.run())
    exchange, late_s = usual_exchange(), 0.0
    begun_s = time.monotonic()
    while time.monotonic() - begun_s < TEACHING_S:
        teacher.offer(exchange, None)
        due_s = time.monotonic() + 0.005
        await asyncio.sleep(0.005)
        late_s = max(late_s, time.monotonic() - due_s)
    took_s = time.monotonic() - begun_s
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return teacher.counts.child_cpu_s / took_s, len(taught), late_s


def table(rows: list[dict[str, Any]]) -> str:
    head = (
        f"{'text of 256 KiB':32} {'tokens':>8} {'ratio':>8} {'n-gram':>8} {'suffix':>8}   (CPU s)"
    )
    return "\n".join(
        [
            head,
            *(
                f"{row['text']:32} {row['tokens']:8} {row['ratio_s']:8.2f} {row['ngram_s']:8.2f} "
                f"{row['suffix_s']:8.2f}"
                for row in rows
            ),
        ]
    )


def main() -> int:
    """Print the figures, write bench-results/replay.json; 1 if a bound does not hold."""
    rows, usual = hard_rows(), usual_exchange()
    usual_s = min(cpu_s(study, usual) for _ in range(5))
    share, num_taught, late_s = asyncio.run(share_of_a_core())
    page = (
        f"{table(rows)}\n"
        f"a streamed chat of {CHAT_TOKENS} words in {len(usual.answer)} bytes, by both: "
        f"{1000 * usual_s:.1f} ms\n"
        f"a teacher offered 200 of them a second: {100 * share:.1f} % of a core, "
        f"{num_taught / TEACHING_S:.1f} exchanges/s; the loop at most {1000 * late_s:.1f} ms late\n"
    )
    slowest_s = max(row[f"{method}_s"] for row in rows for method in POOLS)
    figures = {"slowest_s": slowest_s, "usual_s": usual_s, "share": share, "late_s": late_s}
    results.write("replay", {"headline": figures, "rows": rows}, page)
    sys.stdout.write(page)
    return 0 if slowest_s < MAX_SECONDS and share < MAX_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
