"""The engine in miniature: tokens are conserved, time is what it is told, batches are vLLM's."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.cost import DraftCosts, PassCosts
from paceline.core.draft import Drafter
from paceline.core.lookup import NgramDrafter
from paceline.sim.cost import pass_costs
from paceline.sim.counters import SpecCounts
from paceline.sim.draws import HeadDrafter
from paceline.sim.engine import Engine, run_out
from paceline.sim.generation import Generation, Pass
from paceline.sim.hardware import H100, LLAMA_31_8B
from paceline.sim.schedule import BatchSizeSchedule
from paceline.sim.script import make_script

K = 3
COSTS = PassCosts(host_s=1.0, weights_s=0.0, token_s=0.001, kv_token_s=0.0)


def generation(
    key: str,
    text: str = "a b c a b c a b c",
    *,
    prompt: int = 10,
    drafting: str = "none",
    seed: int = 1,
    k: int | None = None,
) -> Generation:
    drafter: Drafter | None = None
    if drafting == "ngram":
        drafter = NgramDrafter([], shortest=1, longest=2)
    elif drafting == "head":
        drafter = HeadDrafter((0.7, 0.5, 0.3), random.Random(seed))
    elif drafting == "sure":
        drafter = HeadDrafter((1.0, 1.0, 1.0), random.Random(seed))
    return Generation(
        key=key,
        num_prompt_tokens=prompt,
        script=make_script(text, max_tokens=64),
        drafter=drafter,
        spec=SpecCounts.up_to(K),
        max_draft_tokens=k,
    )


def engine(**options: Any) -> Engine:
    given = {"num_speculative_tokens": K, "max_num_seqs": 4, "costs": COSTS, **options}
    return Engine(**given)


def loaded(generations: Iterable[Generation], **options: Any) -> Engine:
    model = engine(**options)
    for each in generations:
        model.add(each)
    return model


def passes_of(key: str, passes: list[tuple[float, Pass]]) -> list[Pass]:
    return [part for _, part in passes if part.key == key]


# --- laws -----------------------------------------------------------------------------------------

SEQUENCES = st.lists(
    st.builds(
        dict,
        text=st.lists(st.sampled_from("abc"), max_size=30).map(" ".join),
        prompt=st.integers(1, 50),
        drafting=st.sampled_from(["none", "ngram", "head"]),
        seed=st.integers(0, 9),
        k=st.sampled_from([None, 0, 1, 2]),
    ),
    max_size=8,
)
OPTIONS = st.builds(
    dict,
    max_num_seqs=st.integers(1, 5),
    max_num_batched_tokens=st.integers(1, 60),
    kv_cache_tokens=st.integers(96, 320),  # the longest sequence takes 50 + 31 + 3
    schedule=st.sampled_from(
        [None, BatchSizeSchedule(starts=(1, 2, 4), tokens=(3, 1, 0)), BatchSizeSchedule.constant(2)]
    ),
)


@given(SEQUENCES, OPTIONS)
def test_every_token_is_emitted_once_and_counted_once(
    sequences: list[dict[str, Any]], options: dict[str, Any]
):
    generations = [generation(str(i), **each) for i, each in enumerate(sequences)]
    model = loaded(generations, **options)
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


@given(SEQUENCES, OPTIONS)
def test_computed_tokens_are_prompts_repeats_decoded_ones_and_drafts(
    sequences: list[dict[str, Any]], options: dict[str, Any]
):
    generations = [generation(str(i), **each) for i, each in enumerate(sequences)]
    model = loaded(generations, **options)
    num_decodes = len(list(run_out(model))) - len(generations)  # beside the end of each prefill
    counters = model.counters
    assert counters.scheduled_tokens == (
        counters.prompt_tokens
        + counters.recomputed_tokens
        + num_decodes
        + counters.spec.draft_tokens
    )
    assert (counters.recomputed_tokens > 0) <= (model.preempted > 0)
    assert model.preempted == sum(each.preemptions for each in generations)


@given(SEQUENCES, OPTIONS)
def test_limits_hold_at_all_times(sequences: list[dict[str, Any]], options: dict[str, Any]):
    model = loaded((generation(str(i), **each) for i, each in enumerate(sequences)), **options)
    scheduled = [0]
    for _ in run_out(model):
        assert len(model.running) <= options["max_num_seqs"]
        assert 0 <= model.kv.used_blocks <= model.kv.num_blocks
        assert model.kv.used_blocks == sum(each.blocks for each in model.running)
        scheduled.append(model.counters.scheduled_tokens)
        in_pass = scheduled[-1] - scheduled[-2]
        # Passes that yield nothing are not told of, so several may lie between two that do.
        assert in_pass <= options["max_num_batched_tokens"] * model.counters.passes
    assert model.kv.used_blocks == 0


@given(SEQUENCES, OPTIONS)
def test_time_never_goes_back(sequences: list[dict[str, Any]], options: dict[str, Any]):
    model = loaded((generation(str(i), **each) for i, each in enumerate(sequences)), **options)
    times = [due_s for due_s, _ in run_out(model)]
    assert all(before <= after for before, after in pairwise(times))


@given(SEQUENCES, OPTIONS)
def test_the_same_seeds_make_the_same_run(sequences: list[dict[str, Any]], options: dict[str, Any]):
    def run() -> list[tuple[float, Pass]]:
        each = (generation(str(i), **fields) for i, fields in enumerate(sequences))
        return list(run_out(loaded(each, **options)))

    assert run() == run()


@given(SEQUENCES, OPTIONS, st.lists(st.floats(0, 20), min_size=8, max_size=8))
def test_mean_number_present_is_arrival_rate_times_mean_stay(
    sequences: list[dict[str, Any]], options: dict[str, Any], gaps: list[float]
):
    """Little's law, over a run that begins and ends empty: there it holds exactly."""
    arrivals = [
        (at_s, generation(str(i), **each))
        for i, (at_s, each) in enumerate(zip(accumulate(gaps), sequences, strict=False))
    ]
    ends = {
        part.key: due_s
        for due_s, part in run_out(engine(**options), arrivals=arrivals)
        if part.finished
    }
    stays = {each.key: ends[each.key] - at_s for at_s, each in arrivals}
    changes = sorted([(at_s, 1) for at_s, _ in arrivals] + [(at_s, -1) for at_s in ends.values()])
    present = accumulate(step for _, step in changes)
    area = sum(
        number * (later - now)
        for number, ((now, _), (later, _)) in zip(present, pairwise(changes), strict=False)
    )
    assert area == pytest.approx(sum(stays.values()))
    assert all(stay > 0 for stay in stays.values())


# --- time -----------------------------------------------------------------------------------------


def test_a_prefill_takes_its_tokens_time_and_yields_one_token():
    model = engine()
    model.add(generation("a", prompt=200))
    assert model.step(100.0) == []
    assert model.due_s == pytest.approx(100.0 + 1.0 + 0.2)
    (part,) = model.step(model.due_s)
    assert (part.start, part.end, part.draft) == (0, 1, None)
    assert model.due_s == pytest.approx(101.2 + 1.001)


def test_nothing_happens_before_a_pass_is_due():
    model = loaded([generation("a")])
    model.step(0.0)
    assert model.step(0.5) == []
    assert model.counters.passes == 0


def test_a_caller_who_is_a_little_late_does_not_slow_the_engine_down():
    model = loaded([generation("a", prompt=1)])
    model.step(0.0)
    model.step(1.5)  # due at 1.001
    assert model.due_s == pytest.approx(2.002)


def test_time_lost_by_a_caller_who_is_very_late_stays_lost():
    model = loaded([generation("a", prompt=1)])
    model.step(0.0)
    model.step(10.0)
    assert model.due_s == pytest.approx(11.001)


def test_a_pass_costs_its_drafts_and_its_drafting():
    draft = DraftCosts(pass_s=0.1, step_s=0.01)
    costs = PassCosts(host_s=1.0, weights_s=0.0, token_s=0.001, kv_token_s=0.0, draft=draft)
    model = loaded([generation("a", "a " * 9, prompt=10, drafting="sure")], costs=costs)
    model.step(0.0)
    assert model.due_s == pytest.approx(1.010 + 0.13)  # the prefill, at whose end it drafts
    model.step(model.due_s)
    assert model.due_s == pytest.approx(1.14 + 1.004 + 0.13)  # one token and three drafted ones


def test_context_is_read_and_looked_at():
    costs = PassCosts(host_s=0.0, weights_s=0.0, token_s=0.0, kv_token_s=1.0, pair_s=100.0)
    model = loaded([generation("a", prompt=10)], costs=costs)
    model.step(0.0)
    assert model.due_s == pytest.approx(10 + 100 * 50)  # a token looks at half of it on average
    model.step(model.due_s)
    assert model.due_s == pytest.approx(5010 + 11 + 100 * 10)


def test_arrivals_wait_for_the_pass_under_way():
    late = [(0.0, generation("a", "one two")), (0.5, generation("b", "one"))]
    passes = list(run_out(engine(), arrivals=late))
    assert [(round(at_s, 3), part.key) for at_s, part in passes] == [
        (1.01, "a"),
        (2.021, "a"),
        (2.021, "b"),
        (3.023, "a"),
        (3.023, "b"),
    ]


# --- batches --------------------------------------------------------------------------------------


def test_draft_tokens_come_together():
    model = loaded([generation("a", "a " * 20, drafting="ngram")])
    passes = [part for _, part in run_out(model)]
    assert max(part.end - part.start for part in passes) == K + 1
    assert len(passes) < 15


def test_a_long_prompt_is_computed_in_chunks_beside_the_others():
    model = loaded(
        [generation("a", "a " * 20, prompt=1), generation("b", prompt=25)],
        max_num_batched_tokens=10,
    )
    yielded = [[part.key for part in model.step(model.due_s or 0.0)] for _ in range(5)]
    # 1 + 9; then the decoding one first and the rest of the budget: 1 + 9, 1 + 7.
    assert yielded == [[], ["a"], ["a"], ["a", "b"], ["a", "b"]]
    assert model.counters.scheduled_tokens == 10 + 10 + 8 + 2


def test_a_draft_gives_way_to_the_token_budget():
    model = loaded([generation("a", "a " * 20, drafting="sure")], max_num_batched_tokens=3)
    drafts = [part.draft for _, part in run_out(model)]
    assert drafts[0] is None
    assert {draft.drafted for draft in drafts[1:] if draft} == {2}


def test_those_beyond_the_limit_wait_their_turn():
    model = loaded([generation("a", "one"), generation("b", "two")], max_num_seqs=1)
    model.step(0.0)
    assert ([g.key for g in model.running], len(model.waiting)) == (["a"], 1)
    assert [part.key for _, part in run_out(model)] == ["a", "a", "b", "b"]


def test_the_newest_makes_room_and_computes_all_its_tokens_again():
    # Three blocks of 16: both prompts fit with a block each, the first to need a second one takes
    # it, the other finds none.
    old, new = (generation(key, "a " * 30, prompt=14) for key in ("old", "new"))
    model = loaded([old, new], kv_cache_tokens=48, num_speculative_tokens=0)
    passes = list(run_out(model))
    assert (old.preemptions, new.preemptions) == (0, 1)
    assert model.preempted == 1
    # It had computed its prompt and the first two tokens.
    assert model.counters.recomputed_tokens == 16
    assert passes_of("new", passes)[-1].end == len(new.script.tokens)


def test_a_sequence_that_could_never_end_is_refused():
    with pytest.raises(ValueError, match="do not fit the KV cache"):
        loaded([generation("a", prompt=100)], kv_cache_tokens=64)


@pytest.mark.parametrize(("k", "most"), [(0, 1), (2, 3), (9, K + 1)])
def test_a_request_may_ask_for_shorter_drafts(k: int, most: int):
    model = loaded([generation("a", "a " * 20, drafting="sure", k=k)])
    sizes = [part.end - part.start for _, part in run_out(model)]
    assert max(sizes) == most


def test_the_batch_of_a_pass_governs_the_drafts_of_the_next():
    schedule = BatchSizeSchedule.of([[1, 1, 3], [2, 8, 0]], K)
    one, other = generation("a", "a " * 14, drafting="sure"), generation("b", "one two")
    passes = list(run_out(engine(schedule=schedule), arrivals=[(0.0, one), (1.5, other)]))
    sizes = [part.end - part.start for part in passes_of("a", passes)]
    # Its prefill and a pass of its own. Then b joins for three passes: the first still checks what
    # was proposed before b came; after each of them nothing is proposed, so that the two others and
    # the one after b has left hold single tokens.
    assert sizes == [1, 4, 4, 1, 1, 1, 4]


def test_a_steady_batch_is_as_fast_as_the_arithmetic_says():
    costs = pass_costs(H100, LLAMA_31_8B, method="eagle3")
    survivals, running, length = (0.7, 0.5, 0.3), 64, 400
    script = make_script("word " * length, max_tokens=length, ends=False)
    model = Engine(num_speculative_tokens=3, costs=costs)
    for i in range(running):
        each = generation(str(i), prompt=200)
        each.script, each.drafter = script, HeadDrafter(survivals, random.Random(i))
        model.add(each)
    passes = [(at_s, part) for at_s, part in run_out(model) if len(model.running) == running]
    seconds = passes[-1][0] - passes[0][0]
    tokens = sum(part.end - part.start for at_s, part in passes if at_s > passes[0][0])
    predicted = running * 2.5 / costs.decode_s(running, 3, 200 + length / 2)
    assert tokens / seconds == pytest.approx(predicted, rel=0.05)  # prefills at the start


# --- leaving and holding --------------------------------------------------------------------------


def test_a_sequence_can_be_taken_out_in_the_middle_of_a_pass():
    model = loaded([generation("a"), generation("b")])
    model.step(0.0)
    assert model.remove("a")
    assert not model.remove("a")
    assert {part.key for _, part in run_out(model)} == {"b"}
    assert model.kv.used_blocks == 0


def test_a_held_sequence_keeps_its_place_and_stops():
    stuck = generation("a")
    model = loaded([stuck])
    model.step(0.0)
    stuck.held = True
    assert model.step(99.0) == []
    assert model.due_s is None
    assert model.running == [stuck]
    assert model.kv.usage > 0


def test_the_cache_holds_prompts_outputs_and_drafts_in_whole_blocks():
    model = loaded([generation("a", prompt=14, drafting="sure")], kv_cache_tokens=160)
    model.step(0.0)
    assert model.kv.usage == pytest.approx(1 / 10)
    model.step(5.0)  # one written, three drafted: 18 tokens
    assert model.kv.usage == pytest.approx(2 / 10)


def test_prompt_tokens_in_the_queue_are_those_not_computed():
    model = loaded([generation("a", prompt=10), generation("b", prompt=7)], max_num_seqs=1)
    assert model.prompt_tokens_waiting == 17
    model.step(0.0)
    model.step(2.0)
    assert model.prompt_tokens_waiting == 7


def test_counts_read_as_vllm_reports_them():
    counts = SpecCounts(by_accepted=[2, 1, 0, 1], draft_tokens=12)
    assert (counts.drafts, counts.accepted) == (4, 4)
    assert counts.accepted_per_position == [2, 1, 1]
    assert counts.mean_acceptance_length == 2.0
    assert counts.acceptance_rate == pytest.approx(1 / 3)
    assert SpecCounts.up_to(2).mean_acceptance_length == 1.0
