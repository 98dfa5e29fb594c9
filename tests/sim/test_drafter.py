"""Drafts: lookups that are really matched, heads that keep to their survivals."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.types import Speculation, Workload
from paceline.sim.drafter import (
    SURVIVALS,
    Draft,
    HeadDrafter,
    NgramDrafter,
    drafter_for,
    lookup_sizes,
    survivals,
)

FEW_WORDS = st.lists(st.sampled_from("abc"), max_size=40)


def look_up(tokens: Sequence[str], k: int, shortest: int, longest: int) -> list[str]:
    """vLLM's rule, spelled out: the longest n-gram first, the earliest place first."""
    for size in range(longest, shortest - 1, -1):
        if size >= len(tokens):
            continue
        last = list(tokens[-size:])
        for start in range(len(tokens) - size):
            if list(tokens[start : start + size]) == last:
                return list(tokens[start + size : start + size + k])
    return []


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 6), st.integers(1, 4), st.integers(0, 3))
def test_a_lookup_proposes_what_followed_the_first_longest_match(
    prompt: list[str], output: list[str], k: int, shortest: int, more: int
):
    drafter = NgramDrafter(prompt, num_tokens=k, shortest=shortest, longest=shortest + more)
    for i, token in enumerate(output):
        drafter.extend([token])
        written = prompt + output[: i + 1]
        assert drafter.proposal() == look_up(written, k, shortest, shortest + more)


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 6))
def test_accepted_tokens_are_the_text_to_come(prompt: list[str], upcoming: list[str], k: int):
    drafter = NgramDrafter(prompt, num_tokens=k, shortest=1, longest=3)
    proposal, draft = drafter.proposal(), drafter.draft(upcoming)
    assert draft.drafted == len(proposal) <= k
    assert proposal[: draft.accepted] == upcoming[: draft.accepted]
    following = slice(draft.accepted, draft.accepted + 1)
    assert not proposal[following] or proposal[following] != upcoming[following]


def test_the_earliest_of_several_places_is_taken():
    drafter = NgramDrafter("abXabYab", num_tokens=1, shortest=2, longest=2)
    assert drafter.proposal() == ["X"]


def test_a_longer_match_wins_over_an_earlier_one():
    drafter = NgramDrafter("bcXabcYabc", num_tokens=1, shortest=2, longest=3)
    assert drafter.proposal() == ["Y"]


def test_no_match_is_no_draft():
    drafter = NgramDrafter(["a", "b"], num_tokens=3, shortest=1, longest=2)
    assert drafter.draft(["c"]) == Draft(drafted=0, accepted=0)


@pytest.mark.parametrize("method", SURVIVALS)
@pytest.mark.parametrize("workload", Workload)
def test_heads_accept_as_often_as_was_measured(method: str, workload: Workload):
    expected = survivals(method, workload, 5)
    drafter = HeadDrafter(expected, random.Random(7))
    drafts = [drafter.draft(["x"] * 9) for _ in range(20_000)]
    for i, survival in enumerate(expected):
        share = sum(draft.accepted > i for draft in drafts) / len(drafts)
        assert share == pytest.approx(survival, abs=0.015)


def test_a_head_accepts_no_more_than_there_is():
    drafter = HeadDrafter((1.0, 1.0, 1.0), random.Random(1))
    assert drafter.draft(["x"]) == Draft(drafted=3, accepted=1)


def test_survivals_past_the_measured_ones_keep_falling():
    longer = survivals("mtp", Workload.CHAT, 6)
    assert longer[:3] == (0.74, 0.49, 0.31)
    assert list(longer) == sorted(longer, reverse=True)
    assert len(longer) == 6


def test_lookup_sizes_are_filled_in_as_vllm_does():
    assert lookup_sizes({}) == (5, 5)
    assert lookup_sizes({"prompt_lookup_max": 3}) == (3, 3)
    assert lookup_sizes({"prompt_lookup_min": 2, "prompt_lookup_max": 4}) == (2, 4)
    with pytest.raises(ValueError, match="ascend"):
        lookup_sizes({"prompt_lookup_min": 4, "prompt_lookup_max": 2})


def test_a_method_that_is_not_simulated_is_refused():
    suffix = Speculation(method="suffix", num_speculative_tokens=8)
    with pytest.raises(ValueError, match="suffix"):
        drafter_for(suffix, Workload.CHAT, [], random.Random(1))
