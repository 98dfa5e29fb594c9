"""How well each kind of work drafts, which is what the simulated fleet is for.

The bounds are wide. A real vLLM with a small model (n-gram, k = 4) made 1.05 tokens a pass on chat,
1.18 on code and 3 to 5 on edits that copy.
"""

from __future__ import annotations

import random

from paceline.core.types import Speculation, Turn, Workload
from paceline.sim.counters import SpecCounts
from paceline.sim.drafter import drafter_for
from paceline.sim.engine import Engine, run_out
from paceline.sim.generation import Generation
from paceline.sim.library import passages
from paceline.sim.script import make_script
from paceline.sim.words import render_chat, tokenize
from paceline.sim.writer import write

NGRAM = Speculation(
    method="ngram",
    num_speculative_tokens=5,
    options={"prompt_lookup_min": 2, "prompt_lookup_max": 4},
)
EAGLE3 = Speculation(method="eagle3", num_speculative_tokens=3)

LETTER = passages(Workload.CHAT)[0].body.replace("the", "teh", 3)
PROGRAM = passages(Workload.CODE)[0].body
CHAT = ("Tell me about sleep.", "How do rivers work?", "Plan a weekend in the mountains.")
CODE = ("Write an LRU cache.", "Write a function for binary search.", "Implement a linked list.")
EDIT = (
    f"Correct the spelling in this text and return it in full:\n\n{LETTER}",
    f"Rename first_true to earliest and return the whole file.\n\n{PROGRAM}",
)


def tokens_per_pass(prompts: tuple[str, ...], speculation: Speculation | None) -> float:
    tokens, passes = 0, 0
    for seed, prompt in enumerate(prompts):
        engine = Engine(
            num_speculative_tokens=speculation.num_speculative_tokens if speculation else 0
        )
        engine.add(_generation(prompt, speculation, seed))
        passes += len(list(run_out(engine)))
        tokens += engine.counters.generation_tokens
    return tokens / passes


def _generation(prompt: str, speculation: Speculation | None, seed: int) -> Generation:
    turns, rng = [Turn(role="user", text=prompt)], random.Random(seed)
    asked = tokenize(render_chat(turns))
    writing = write(turns, rng)
    return Generation(
        key="a",
        num_prompt_tokens=len(asked),
        script=make_script(writing.text, max_tokens=800),
        drafter=drafter_for(speculation, writing.workload, asked, rng),
        spec=SpecCounts.up_to(speculation.num_speculative_tokens if speculation else 0),
    )


def test_lookup_wins_on_edits_and_hardly_matters_elsewhere():
    assert tokens_per_pass(EDIT, NGRAM) > 2.5
    assert 1.05 < tokens_per_pass(CODE, NGRAM) < 1.8
    assert 1.0 <= tokens_per_pass(CHAT, NGRAM) < 1.2


def test_heads_are_good_everywhere_and_best_on_code():
    chat, code = tokens_per_pass(CHAT, EAGLE3), tokens_per_pass(CODE, EAGLE3)
    assert 2.0 < chat < code < 3.0
    assert 2.0 < tokens_per_pass(EDIT, EAGLE3) < tokens_per_pass(EDIT, NGRAM)


def test_without_speculation_a_pass_is_a_token():
    assert tokens_per_pass(EDIT, None) == 1.0
