"""The engine on two cores, simulated from end to end: texts, n-gram drafts that are really matched,
scheduling, and the step times of `sim.hardware.CPU2`.

The load is what was measured: requests that give a pasted text back, all running at once.
"""

from __future__ import annotations

import random

from paceline.core.types import Speculation, Turn, Workload
from paceline.sim.cost import pass_costs
from paceline.sim.counters import SpecCounts
from paceline.sim.drafter import drafter_for
from paceline.sim.engine import Engine, run_out
from paceline.sim.generation import Generation
from paceline.sim.hardware import CPU2, SMOLLM2_135M, kv_cache_tokens
from paceline.sim.library import passages
from paceline.sim.script import make_script
from paceline.sim.words import render_chat, tokenize
from paceline.sim.writer import write

WORDS = 150  # of each pasted text
OUTPUT_TOKENS = 120
NGRAM = Speculation(
    method="ngram",
    num_speculative_tokens=4,
    options={"prompt_lookup_min": 2, "prompt_lookup_max": 4},
)


def tokens_per_s(running: int, speculation: Speculation | None) -> float:
    """Tokens a second of `running` copying requests, from the end of their prefill to the last."""
    k = speculation.num_speculative_tokens if speculation else 0
    engine = Engine(
        num_speculative_tokens=k,
        costs=pass_costs(CPU2, SMOLLM2_135M, method=speculation.method if speculation else None),
        kv_cache_tokens=kv_cache_tokens(CPU2, SMOLLM2_135M),
    )
    for number in range(running):
        engine.add(_copying(number, speculation, k))
    passes = list(run_out(engine))
    first_s, last_s = passes[0][0], passes[-1][0]
    tokens = sum(part.end - part.start for at_s, part in passes if at_s > first_s)
    return tokens / (last_s - first_s)


def _copying(number: int, speculation: Speculation | None, k: int) -> Generation:
    texts, rng = passages(Workload.CHAT), random.Random(number)
    text = " ".join(texts[number % len(texts)].body.split()[:WORDS])
    ask = f"Correct the spelling in this text and return it in full:\n\n{text}"
    turns = [Turn(role="user", text=ask)]
    prompt = tokenize(render_chat(turns))
    writing = write(turns, rng)
    return Generation(
        key=str(number),
        num_prompt_tokens=len(prompt),
        script=make_script(writing.text, max_tokens=OUTPUT_TOKENS),
        drafter=drafter_for(speculation, writing.workload, prompt, rng),
        spec=SpecCounts.up_to(k),
    )
