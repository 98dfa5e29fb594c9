"""The engine in miniature: tokens are conserved, time is what it is told."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.sim.counters import SpecCounts
from paceline.sim.drafter import HeadDrafter, NgramDrafter
from paceline.sim.engine import Engine, Generation, Pass, StepCosts, run_out
from paceline.sim.script import make_script

K = 3
COSTS = StepCosts(base_s=1.0, per_sequence_s=0.1, per_draft_token_s=0.01, per_prompt_token_s=0.001)


def generation(
    key: str,
    text: str = "a b c a b c a b c",
    *,
    prompt: int = 10,
    drafting: str = "none",
    seed: int = 1,
) -> Generation:
    drafter: NgramDrafter | HeadDrafter | None = None
    if drafting == "ngram":
        drafter = NgramDrafter([], num_tokens=K, shortest=1, longest=2)
    elif drafting == "head":
        drafter = HeadDrafter((0.7, 0.5, 0.3), random.Random(seed))
    script = make_script(text, max_tokens=64)
    spec = SpecCounts.up_to(K)
    return Generation(
        key=key, num_prompt_tokens=prompt, script=script, drafter=drafter, spec=spec
    )  # fmt: skip


def engine(max_num_seqs: int = 4) -> Engine:
    return Engine(max_num_seqs, K, costs=COSTS)


def passes_of(key: str, passes: list[tuple[float, Pass]]) -> list[Pass]:
    return [part for _, part in passes if part.key == key]


SEQUENCES = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), max_size=30).map(" ".join),
        st.integers(1, 50),
        st.sampled_from(["none", "ngram", "head"]),
        st.integers(0, 9),
    ),
    max_size=8,
)


@given(SEQUENCES, st.integers(1, 4))
def test_every_token_is_emitted_once_and_counted_once(
    sequences: list[tuple[str, int, str, int]], max_num_seqs: int
):
    model = engine(max_num_seqs)
    generations = [
        generation(str(i), text, prompt=prompt, drafting=drafting, seed=seed)
        for i, (text, prompt, drafting, seed) in enumerate(sequences)
    ]
    for each in generations:
        model.add(each)
    passes = list(run_out(model))
    for each in generations:
        own = passes_of(each.key, passes)
        assert [part.start for part in own] == [0, *(part.end for part in own[:-1])]
        assert own[-1].end == len(each.script.tokens)
        assert [part.finished for part in own] == [False] * (len(own) - 1) + [True]
        assert all(
            part.end - part.start <= (part.draft.accepted if part.draft else 0) + 1 for part in own
        )
    counters = model.counters
    assert counters.generation_tokens == sum(len(each.script.tokens) for each in generations)
    assert counters.prompt_tokens == sum(each.num_prompt_tokens for each in generations)
    assert counters.spec.drafts == sum(each.spec.drafts for each in generations)
    assert counters.spec.accepted == sum(counters.spec.accepted_per_position)
    assert counters.spec.accepted <= counters.spec.draft_tokens
    assert not model.running
    assert not model.waiting


@given(SEQUENCES, st.integers(1, 4))
def test_time_never_goes_back_and_no_more_run_than_may(
    sequences: list[tuple[str, int, str, int]], max_num_seqs: int
):
    model = engine(max_num_seqs)
    for i, (text, prompt, drafting, seed) in enumerate(sequences):
        model.add(generation(str(i), text, prompt=prompt, drafting=drafting, seed=seed))
    times = []
    for due_s, _ in run_out(model):
        times.append(due_s)
        assert len(model.running) <= max_num_seqs
    assert all(before <= after for before, after in pairwise(times))


def test_a_prefill_takes_its_tokens_time_and_yields_one_token():
    model = engine()
    model.add(generation("a", prompt=200))
    assert model.step(100.0) == []
    assert model.due_s == pytest.approx(100.0 + 1.0 + 0.1 + 0.2)
    (part,) = model.step(model.due_s)
    assert (part.start, part.end, part.draft) == (0, 1, None)
    assert model.due_s == pytest.approx(101.3 + 1.1)


def test_draft_tokens_cost_time_and_accepted_ones_come_together():
    model = engine()
    model.add(generation("a", "a " * 20, drafting="ngram"))
    passes = [part for _, part in run_out(model)]
    assert max(part.end - part.start for part in passes) == K + 1
    assert len(passes) < 15


def test_nothing_happens_before_a_pass_is_due():
    model = engine()
    model.add(generation("a"))
    model.step(0.0)
    assert model.step(0.5) == []
    assert model.counters.passes == 0


def test_a_caller_who_is_a_little_late_does_not_slow_the_engine_down():
    model = engine()
    model.add(generation("a", prompt=0))
    model.step(0.0)
    model.step(1.5)  # due at 1.1
    assert model.due_s == pytest.approx(2.2)


def test_time_lost_by_a_caller_who_is_very_late_stays_lost():
    model = engine()
    model.add(generation("a", prompt=0))
    model.step(0.0)
    model.step(10.0)
    assert model.due_s == pytest.approx(11.1)


def test_those_beyond_the_limit_wait_their_turn():
    model = engine(max_num_seqs=1)
    model.add(generation("a", "one"))
    model.add(generation("b", "two"))
    model.step(0.0)
    assert ([g.key for g in model.running], len(model.waiting)) == (["a"], 1)
    assert [part.key for _, part in run_out(model)] == ["a", "a", "b", "b"]


def test_a_sequence_can_be_taken_out_in_the_middle_of_a_pass():
    model = engine()
    model.add(generation("a"))
    model.add(generation("b"))
    model.step(0.0)
    assert model.remove("a")
    assert not model.remove("a")
    assert {part.key for _, part in run_out(model)} == {"b"}


def test_a_held_sequence_keeps_its_place_and_stops():
    model = engine()
    stuck = generation("a")
    model.add(stuck)
    model.step(0.0)
    stuck.held = True
    assert model.step(99.0) == []
    assert model.due_s is None
    assert model.running == [stuck]


def test_kv_tokens_are_those_of_running_prompts_and_outputs():
    model = engine()
    model.add(generation("a", prompt=10))
    model.step(0.0)
    model.step(5.0)
    model.step(10.0)
    assert model.num_kv_tokens == 12


def test_counts_read_as_vllm_reports_them():
    counts = SpecCounts(by_accepted=[2, 1, 0, 1], draft_tokens=12)
    assert (counts.drafts, counts.accepted) == (4, 4)
    assert counts.accepted_per_position == [2, 1, 1]
    assert counts.mean_acceptance_length == 2.0
    assert counts.acceptance_rate == pytest.approx(1 / 3)
    assert SpecCounts.up_to(2).mean_acceptance_length == 1.0
