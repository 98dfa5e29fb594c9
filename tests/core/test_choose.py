"""The pool, worker and k with the least expected cost. Expectations are written by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.beliefs import Outlook
from paceline.core.choose import HARMLESS, MOVES, PREFERENCE, Adaptive, choose
from paceline.core.offers import WORTH
from paceline.core.pool_belief import Drafting
from paceline.core.step_time import StepTime
from paceline.core.types import (
    Caller,
    Choice,
    Classification,
    Place,
    PoolSnapshot,
    Reason,
    RequestFeatures,
    Speculation,
    Terms,
    WorkerLoad,
    WorkerSnapshot,
    Workload,
)

OUTLOOK = Outlook(
    workload=Workload.CHAT, shares=(1.0,), output_tokens=100.0, prompt_tokens=200.0, context=500.0
)
STEP = StepTime(fixed_s=0.008, token_s=20e-6, kv_token_s=40e-9)


@dataclass(frozen=True)
class Told:
    """Tokens a pass by pool, for k = 0, 1, …, in each case; seconds of a pass by worker."""

    taus: Mapping[str, Sequence[Sequence[float]]]
    shares: tuple[float, ...] = (1.0,)
    steps: Mapping[str, StepTime] = field(default_factory=dict)

    def outlook(
        self, features: RequestFeatures, classification: Classification, caller: Caller
    ) -> Outlook:
        return OUTLOOK

    def draftings(self, outlook: Outlook) -> Mapping[str, Drafting]:
        return {name: self._drafting(taus) for name, taus in self.taus.items()}

    def _drafting(self, cases: Sequence[Sequence[float]]) -> Drafting:
        by_k = zip(*cases, strict=True)
        return Drafting.of(self.shares, tuple(tuple(1.0 / tau for tau in taus) for taus in by_k))

    def step_times(self, pool: str) -> Mapping[str, StepTime]:
        return defaultdict(lambda: STEP, self.steps)


def pool(
    name: str, k: int, *workers: WorkerSnapshot, max_num_seqs: int | None = None
) -> PoolSnapshot:
    how = Speculation(method="ngram", num_speculative_tokens=k) if k else None
    return PoolSnapshot(name=name, speculation=how, workers=workers, max_num_seqs=max_num_seqs)


def at(url: str, in_flight: int = 0, k: int = 0, **more: object) -> WorkerSnapshot:
    return WorkerSnapshot(url=url, in_flight=in_flight, drafting=float(in_flight * k), **more)  # type: ignore[arg-type]


def chosen(
    *pools: PoolSnapshot,
    told: Told,
    default: str = "plain",
    preferred: str | None = None,
    **more: object,
) -> tuple[Choice, Reason]:
    adaptive = Adaptive(expectations=told, **more)  # type: ignore[arg-type]
    return choose(pools, OUTLOOK, adaptive, default_pool=default, preferred=preferred)


FASTER = Told({"spec": [(1.0, 1.7, 2.2, 2.5)], "plain": [(1.0,)]})
FADING = Told({"spec": [(1.0, 1.4, 1.6, 1.68)], "plain": [(1.0,)]})
SLOWER = Told({"spec": [(1.0, 1.1, 1.15, 1.2)], "plain": [(1.0,)]})


def test_the_terms_are_the_formula():
    choice, _ = chosen(pool("spec", 3, at("s", 9, 3)), told=FASTER, default="spec")
    terms = choice.chosen
    before = 0.008 + 36 * 20e-6 + 9 * 500 * 40e-9
    after = 0.008 + 40 * 20e-6 + 10 * 500 * 40e-9
    assert (terms.pass_before_s, terms.pass_s) == pytest.approx((before, after))
    assert terms.prefill_s == pytest.approx(after + 200 * 20e-6)
    assert terms.decode_s == pytest.approx(100 * after / 2.5)
    assert terms.others_s == pytest.approx(100 * after / 2.5 * 9 * (1 - before / after))
    assert terms.wait_s == 0.0
    assert terms.cost_s == pytest.approx(terms.prefill_s + terms.decode_s + terms.others_s)
    assert terms.tokens_per_s == pytest.approx(2.5 / after)


def test_idle_speculation_that_drafts_well_wins_and_one_that_does_not_loses():
    pools = pool("spec", 3, at("s")), pool("plain", 0, at("p"))
    assert chosen(*pools, told=FASTER)[0].chosen.pool == "spec"
    slow = replace(SLOWER, steps={"s": STEP.times(1.3)})
    assert chosen(*pools, told=slow)[0].chosen.pool == "plain"


def test_load_turns_it_off():
    def winner(running: int) -> str:
        busy = pool("spec", 3, at("s", running, 3)), pool("plain", 0, at("p", running))
        return chosen(*busy, told=Told({"spec": [(1.0, 1.2, 1.3, 1.4)], "plain": [(1.0,)]}))[
            0
        ].chosen.pool

    assert [winner(running) for running in (1, 8, 128, 250)] == ["spec", "spec", "plain", "plain"]


def test_a_worker_that_may_be_asked_drafts_less_the_busier_it_is():
    def k_at(running: int) -> int:
        worker = at("s", running, 1, per_request_k=True)
        return chosen(pool("spec", 3, worker), told=FADING, default="spec")[0].chosen.k

    ks = [k_at(running) for running in (0, 30, 60, 120, 250)]
    assert ks == sorted(ks, reverse=True)
    assert ks[0] == 3 > ks[-1]


def test_selfish_requests_draft_longer():
    worker = at("s", 120, 1, per_request_k=True)
    fair, _ = chosen(pool("spec", 3, worker), told=FADING, default="spec")
    selfish, _ = chosen(pool("spec", 3, worker), told=FADING, default="spec", eta=0.0)
    assert selfish.chosen.k > fair.chosen.k
    assert selfish.chosen.others_s == 0.0


def test_uncertain_gains_leave_it_at_the_default_pool():
    cases = Told(
        {"spec": [(1.0, 2.0, 3.0, 4.0), (1.0, 1.0, 1.0, 1.0)], "plain": [(1.0,)] * 2}, (0.5, 0.5)
    )
    pools = pool("spec", 3, at("s")), pool("plain", 0, at("p"))
    choice, reason = chosen(*pools, told=cases)
    assert (choice.chosen.pool, reason) == ("plain", Reason.UNSURE)
    assert choice.weighed[0].pool == "spec"
    sure, reason = chosen(*pools, told=replace(cases, shares=(0.7, 0.3)))
    assert (sure.chosen.pool, reason, sure.confidence) == ("spec", Reason.COST, pytest.approx(0.7))


def test_time_goes_by_the_harmonic_mean_over_the_cases():
    cases = Told({"spec": [(1.0, 4.0), (1.0, 1.0)]}, (0.5, 0.5))
    choice, _ = chosen(pool("spec", 1, at("s")), told=cases, default="spec")
    assert choice.chosen.tokens_per_pass == pytest.approx(1.6)  # and not 2.5


def test_a_tie_is_no_reason_to_leave_the_default():
    told = Told({"a": [(1.0,)], "b": [(1.0,)]}, steps={"a": STEP.times(0.99)})
    choice, reason = chosen(pool("a", 0, at("a")), pool("b", 0, at("b")), told=told, default="b")
    assert (choice.chosen.pool, reason) == ("b", Reason.UNSURE)


def test_a_conversation_moves_only_for_much_less():
    def went(slow: float) -> tuple[str, Reason]:
        told = Told({"a": [(1.0,)], "b": [(1.0,)]}, steps={"a": STEP.times(slow)})
        pools = pool("a", 0, at("a")), pool("b", 0, at("b"))
        choice, reason = chosen(*pools, told=told, default="b", place=Place(pool="a", worker="a"))
        return choice.chosen.pool, reason

    assert went(1.0) == ("a", Reason.STAY)
    assert went(0.99 / MOVES) == ("a", Reason.STAY)
    assert went(1.01 / MOVES) == ("b", Reason.COST)


def test_a_place_that_is_gone_is_no_place():
    for place in (
        Place(pool="x", worker="a"),
        Place(pool="a", worker="x"),
        Place(pool="a", worker="a"),
    ):
        told = Told({"a": [(1.0,)], "b": [(1.0,)]})
        pools = pool("a", 0, at("a", up=False), at("c", 9)), pool("b", 0, at("b"))
        assert chosen(*pools, told=told, default="b", place=place)[1] is Reason.COST


def test_a_preference_is_worth_a_fifth():
    def winner(slow: float) -> str:
        told = Told({"a": [(1.0,)], "b": [(1.0,)]}, steps={"a": STEP.times(slow)})
        pools = pool("a", 0, at("a")), pool("b", 0, at("b"))
        return chosen(*pools, told=told, default="b", preferred="a")[0].chosen.pool

    assert winner(0.99 * WORTH / PREFERENCE) == "a"
    assert winner(1.01 / PREFERENCE) == "b"


def test_the_worker_with_less_to_do_then_the_one_picked_longest_ago():
    told = Told({"a": [(1.0,)]})
    busy = at("1", 3), at("2", 1, last_picked=9), at("3", 1, last_picked=4)
    assert chosen(pool("a", 0, *busy), told=told, default="a")[0].chosen.worker == "3"


def test_a_slow_worker_gets_less():
    told = Told({"a": [(1.0,)]}, steps={"1": STEP.times(2.0)})
    workers = at("1", 1), at("2", 9)
    assert chosen(pool("a", 0, *workers), told=told, default="a")[0].chosen.worker == "2"


def test_what_others_have_at_a_worker_counts_and_so_does_a_slow_start():
    told = Told({"a": [(1.0,)]})
    assert (
        chosen(pool("a", 0, at("1", elsewhere=9.0), at("2", 3)), told=told, default="a")[
            0
        ].chosen.worker
        == "2"
    )
    assert (
        chosen(pool("a", 0, at("1", share=0.1), at("2", 3)), told=told, default="a")[
            0
        ].chosen.worker
        == "2"
    )


def test_the_worker_due_for_a_trial_is_tried():
    told = Told({"a": [(1.0,)]})
    workers = at("1", 5, on_trial=True), at("2")
    assert chosen(pool("a", 0, *workers), told=told, default="a")[0].chosen.worker == "1"


def test_a_full_worker_makes_wait():
    told = Told({"a": [(1.0,)], "b": [(1.0,)]}, steps={"b": STEP.times(1.5)})
    full, slow = pool("a", 0, at("a", 40), max_num_seqs=8), pool("b", 0, at("b"))
    choice, _ = chosen(full, slow, told=told, default="a")
    assert choice.chosen.pool == "b"
    assert choice.weighed[-1].wait_s > 0
    stuck = at("a", 8, load=WorkerLoad(running=4.0, waiting=4.0))
    choice, _ = chosen(pool("a", 0, stuck), told=told, default="a")
    assert (choice.chosen.running, choice.chosen.queue) == (3.0, 5 / 4)


def test_exploring_is_rare_cheap_and_looks_at_what_is_not_known():
    told = Told(
        {"spec": [(1.0, 1.5)], "plain": [(1.0,)], "third": [(1.0, 1.45)], "bad": [(1.0, 0.8)]}
    )
    pools = [
        pool("spec", 1, at("s")),
        pool("plain", 0, at("p")),
        pool("third", 1, at("t")),
        pool("bad", 1, at("b")),
    ]
    assert chosen(*pools, told=told, draw=0.5)[1] is Reason.COST
    choice, reason = chosen(*pools, told=told, draw=0.001)
    assert (choice.chosen.pool, reason) == ("third", Reason.EXPLORE)
    assert choice.chosen.cost_s <= HARMLESS * choice.weighed[0].cost_s
    alone = pool("spec", 3, at("s", 200, 1, per_request_k=True))
    choice, reason = chosen(alone, told=FADING, default="spec", draw=0.0)
    assert (choice.chosen.k, reason) == (3, Reason.EXPLORE)
    assert choice.weighed[0].k < 3


def test_nobody_up_is_refused():
    with pytest.raises(ValueError, match="up"):
        chosen(pool("plain", 0, at("p", up=False)), told=FASTER)


loads = st.integers(0, 300)


@given(loads, loads, loads, st.floats(0.5, 2.0))
def test_the_laws(one, two, three, slow):
    """The cheapest of what is up is chosen, or what costs next to no more; costs add up; and more
    load never costs less."""
    told = replace(FASTER, steps={"s": STEP.times(slow)})
    pools = pool("spec", 3, at("s", one, 3), at("t", two, 3)), pool("plain", 0, at("p", three))
    choice, reason = chosen(*pools, told=told)
    assert (choice.chosen is choice.weighed[0]) == (reason is Reason.COST)
    assert WORTH * choice.chosen.cost_s <= choice.weighed[0].cost_s
    assert [terms.cost_s for terms in choice.weighed] == sorted(t.cost_s for t in choice.weighed)
    for terms in choice.weighed:
        parts = terms.wait_s + terms.prefill_s + terms.decode_s + terms.others_s
        assert terms.cost_s == pytest.approx(parts)
        assert min(terms.wait_s, terms.prefill_s, terms.decode_s, terms.others_s) >= 0
    busier = pool("spec", 3, at("s", one + 1, 3), at("t", two + 1, 3)), pools[1]
    assert _of(chosen(*busier, told=told)[0], "spec").cost_s >= _of(choice, "spec").cost_s


def _of(choice: Choice, name: str) -> Terms:
    (found,) = (terms for terms in choice.weighed if terms.pool == name)
    return found
