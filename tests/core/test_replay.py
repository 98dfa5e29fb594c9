"""Replaying lookups: an engine's walk over an answer that is there."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.replay import LookupReplay, replay, replay_ngram, replay_suffix
from paceline.core.types import Speculation, Workload
from paceline.sim.counters import SpecCounts
from paceline.sim.drafter import drafter_for
from paceline.sim.engine import Engine, run_out
from paceline.sim.generation import Generation
from paceline.sim.script import Finish, Script

FEW_WORDS = st.lists(st.sampled_from("abc"), max_size=60)
NGRAM = Speculation(
    method="ngram",
    num_speculative_tokens=4,
    options={"prompt_lookup_min": 2, "prompt_lookup_max": 3},
)
SUFFIX = Speculation(method="suffix", num_speculative_tokens=6)


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 7), st.integers(1, 3), st.integers(0, 3))
def test_an_n_gram_replay_conserves_tokens(
    prompt: list[str], output: list[str], k: int, min_n: int, more: int
):
    conserves(replay_ngram(prompt, output, k, min_n, min_n + more), output, k)


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 7))
def test_a_suffix_replay_conserves_tokens(prompt: list[str], output: list[str], k: int):
    conserves(replay_suffix(prompt, output, k, {}), output, k)


def conserves(replayed: LookupReplay, output: list[str], k: int) -> None:
    assert replayed.num_tokens == len(output)
    assert replayed.num_accepted_tokens <= replayed.num_draft_tokens
    assert replayed.num_draft_tokens <= k * replayed.num_drafted_passes
    assert len(replayed.accepted_counts) == k + 1
    per_pass = replayed.tokens_per_pass
    if per_pass is not None:
        assert 1.0 <= per_pass <= k + 1
        assert sum(replayed.survivals) == pytest.approx(per_pass - 1)
        assert list(replayed.survivals) == sorted(replayed.survivals, reverse=True)


@pytest.mark.parametrize("speculation", [NGRAM, SUFFIX], ids=lambda it: it.method)
@given(prompt=FEW_WORDS, output=FEW_WORDS.filter(bool))
def test_a_replay_is_what_the_simulated_engine_does(
    speculation: Speculation, prompt: list[str], output: list[str]
):
    engine = Engine(num_speculative_tokens=speculation.num_speculative_tokens)
    engine.add(
        Generation(
            key="a",
            num_prompt_tokens=len(prompt) + 1,
            script=Script(tokens=tuple(output), visible_chars=0, finish=Finish.STOP),
            drafter=drafter_for(speculation, Workload.EDIT, prompt, random.Random(1)),
            spec=SpecCounts.up_to(speculation.num_speculative_tokens),
        )
    )
    passes = [one for _, one in run_out(engine)]
    drafts = [one.draft for one in passes if one.draft is not None and one.draft.drafted]
    replayed = replay(speculation, prompt, output)
    assert replayed is not None
    assert len(passes) == replayed.num_passes
    assert len(drafts) == replayed.num_drafted_passes
    assert sum(draft.drafted for draft in drafts) == replayed.num_draft_tokens


def test_a_walk_by_hand():
    """`a` from prefill; then `b` undrafted: no two tokens were there before. From "ab" on the
    prompt's "c d e" is drafted: "c d" hold, "X" is the target's. Nothing ends in "d X"; "e" ends
    it, not foretold."""
    replayed = replay_ngram("abcde", "abcdXe", 3, 2, 3)
    assert replayed.accepted_counts == (0, 0, 1, 0)
    assert replayed.num_draft_tokens == 3
    assert replayed.num_undrafted_passes == 3
    assert replayed.mean_acceptance_length == 3.0
    assert replayed.tokens_per_pass == pytest.approx(5 / 3)
    assert replayed.survivals == pytest.approx((1 / 3, 1 / 3, 0.0))


def test_the_last_token_is_the_targets_own():
    """Of the draft "c d e" that held to the end, two are accepted and "e" is one more."""
    assert replay_ngram("abcdefgh", "abcde", 3, 2, 2).accepted_counts == (0, 0, 1, 0)


def test_nothing_written_is_nothing_replayed():
    empty = replay_ngram("abc", "", 3, 2, 2)
    assert (empty.num_passes, empty.tokens_per_pass, empty.survivals) == (0, None, (0.0, 0.0, 0.0))
    one = replay_ngram("abc", "a", 3, 2, 2)
    assert (one.num_passes, one.tokens_per_pass, one.mean_acceptance_length) == (1, None, None)


def test_pools_that_look_nothing_up_are_not_replayed():
    assert replay(Speculation(method="eagle3", num_speculative_tokens=3), "ab", "ab") is None
    assert replay(Speculation(method=None, num_speculative_tokens=3), "ab", "ab") is None


def test_options_are_the_pools_own():
    short = Speculation(method="ngram", num_speculative_tokens=4, options={"prompt_lookup_max": 1})
    assert replay(short, "ab", "ab") == replay_ngram("ab", "ab", 4, 1, 1)
    wild = Speculation(
        method="suffix", num_speculative_tokens=4, options={"suffix_decoding_max_spec_factor": 4.0}
    )
    assert replay(wild, "abcdefgh", "abcdefgh") != replay_suffix("abcdefgh", "abcdefgh", 4, {})
    with pytest.raises(ValueError, match="accepted <= drafted"):
        LookupReplay(accepted_counts=(0, 2), num_draft_tokens=1, num_undrafted_passes=0)


ADVERSARIAL = {
    "one token": lambda n, rng: ["a"] * n,
    "two at random": lambda n, rng: rng.choices("ab", k=n),
    "runs that break": lambda n, rng: (["a"] * 39 + ["b"]) * (n // 40),
    "all different": lambda n, rng: [str(i) for i in range(n)],
}


@pytest.mark.parametrize("text", ADVERSARIAL.values(), ids=ADVERSARIAL)
@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_steps_grow_no_faster_than_the_text(
    method: str, text: Callable[[int, random.Random], list[str]]
):
    """In lines of Python, which cost a bounded time each: slices are at most k long here."""
    speculation = Speculation(
        method=method, num_speculative_tokens=8, options={"prompt_lookup_max": 8}
    )

    def per_token(size: int) -> float:
        tokens = text(2 * size, random.Random(7))
        return lines_of(lambda: replay(speculation, tokens[:size], tokens[size:])) / size

    assert per_token(2000) <= 1.3 * per_token(1000) + 20


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of Python it executes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
