"""Drawn drafts keep to what was measured."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import pytest

from paceline.core.draft import Draft, Drafter
from paceline.core.types import Speculation, Workload
from paceline.sim.drafter import HEADS, drafter_for
from paceline.sim.draws import HeadDrafter, TwoStateDrafter, persistence
from paceline.sim.survivals import NGRAM_AUTOCORRELATION, iid_tokens_per_pass, survivals

TEXT = ["x"] * 9


def drafts_of(drafter: Drafter, number: int = 20_000, limit: int = 5) -> list[Draft]:
    return [drafter.draft(TEXT, limit) for _ in range(number)]


def shares(drafts: Sequence[Draft], number: int) -> list[float]:
    return [fmean(draft.accepted > i for draft in drafts) for i in range(number)]


@pytest.mark.parametrize("method", HEADS)
@pytest.mark.parametrize("workload", Workload)
def test_heads_accept_as_often_as_was_measured(method: str, workload: Workload):
    expected = survivals(method, workload, 5)
    drafts = drafts_of(HeadDrafter(expected, random.Random(7)))
    assert shares(drafts, 5) == pytest.approx(expected, abs=0.015)


def test_a_head_accepts_no_more_than_there_is():
    drafter = HeadDrafter((1.0, 1.0, 1.0), random.Random(1))
    assert drafter.draft(["x"], 3) == Draft(drafted=3, accepted=1)
    assert drafter.draft(TEXT, 2) == Draft(drafted=2, accepted=2)


@pytest.mark.parametrize("workload", Workload)
def test_drawn_lookups_come_in_runs(workload: Workload):
    speculation = Speculation(method="ngram", num_speculative_tokens=5)
    drafter = drafter_for(speculation, workload, None, random.Random(3))
    assert isinstance(drafter, TwoStateDrafter)
    drafts = drafts_of(drafter, 100_000)
    assert shares(drafts, 5) == pytest.approx(survivals("ngram", workload, 5), abs=0.02)
    expected = NGRAM_AUTOCORRELATION[workload]
    assert lag_1([draft.accepted for draft in drafts]) == pytest.approx(expected, abs=0.06)


def lag_1(values: Sequence[int]) -> float:
    mean = fmean(values)
    variance = fmean((value - mean) ** 2 for value in values)
    return fmean((one - mean) * (other - mean) for one, other in pairwise(values)) / variance


def test_a_drawn_lookup_without_a_match_drafts_nothing_unless_it_is_padded():
    bare = TwoStateDrafter((0.1, 0.05), random.Random(1), autocorrelation=0.5)
    padded = TwoStateDrafter((0.1, 0.05), random.Random(1), autocorrelation=0.5, padded=True)
    assert {draft.drafted for draft in drafts_of(bare, 1000, 2)} == {0, 2}
    assert {draft.drafted for draft in drafts_of(padded, 1000, 2)} == {2}


def test_persistence_of_a_certain_lookup_is_nothing():
    # Always matching: the state has no variance, so it can explain none.
    assert persistence((0.8, 0.8), 1.0, 0.5) == 0.0
    assert persistence((0.0,), 0.0, 0.5) == 0.0
    # One token that holds in half of the passes, and always when matching: all variance is
    # between the states.
    assert persistence((0.5,), 0.5, 0.4) == pytest.approx(0.4)


@pytest.mark.parametrize("wrong", [(), (1.2,), (0.3, 0.4)])
def test_survivals_that_cannot_be_are_refused(wrong: tuple[float, ...]):
    with pytest.raises(ValueError, match="survivals must fall"):
        HeadDrafter(wrong, random.Random(1))
    with pytest.raises(ValueError, match="survivals must fall"):
        TwoStateDrafter(wrong, random.Random(1), autocorrelation=0.5)


def test_survivals_past_the_measured_ones_keep_falling():
    longer = survivals("mtp", Workload.CHAT, 6)
    assert longer[:3] == (0.74, 0.49, 0.31)
    assert list(longer) == sorted(longer, reverse=True)
    assert len(longer) == 6


def test_the_formula_for_independent_tokens():
    assert iid_tokens_per_pass(0.5, 3) == pytest.approx((1 - 0.5**4) / (1 - 0.5))
    assert iid_tokens_per_pass(1.0, 3) == 4
    # Fitted at k = 1 to GSM8K's EAGLE-3 (1.70 tokens a pass) it says 3.26 at k = 10; it was 2.80.
    assert iid_tokens_per_pass(0.70, 10) == pytest.approx(3.27, abs=0.01)
    with pytest.raises(ValueError, match="not an acceptance"):
        iid_tokens_per_pass(1.5, 3)
