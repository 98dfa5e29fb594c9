"""Drafts: lookups that are really matched, heads that keep to their survivals."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.types import Speculation, Workload
from paceline.sim.draft import Draft
from paceline.sim.drafter import HEADS, NgramDrafter, drafter_for, lookup_sizes

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
    drafter = NgramDrafter(prompt, shortest=shortest, longest=shortest + more)
    for i, token in enumerate(output):
        drafter.extend([token])
        written = prompt + output[: i + 1]
        assert drafter.proposal(k) == look_up(written, k, shortest, shortest + more)


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 6))
def test_accepted_tokens_are_the_text_to_come(prompt: list[str], upcoming: list[str], k: int):
    drafter = NgramDrafter(prompt, shortest=1, longest=3)
    proposal, draft = drafter.proposal(k), drafter.draft(upcoming, k)
    assert draft.drafted == len(proposal) <= k
    assert proposal[: draft.accepted] == upcoming[: draft.accepted]
    following = slice(draft.accepted, draft.accepted + 1)
    assert not proposal[following] or proposal[following] != upcoming[following]


def test_the_earliest_of_several_places_is_taken():
    drafter = NgramDrafter("abXabYab", shortest=2, longest=2)
    assert drafter.proposal(1) == ["X"]


def test_a_longer_match_wins_over_an_earlier_one():
    drafter = NgramDrafter("bcXabcYabc", shortest=2, longest=3)
    assert drafter.proposal(1) == ["Y"]


def test_no_match_is_no_draft():
    drafter = NgramDrafter(["a", "b"], shortest=1, longest=2)
    assert drafter.draft(["c"], 3) == Draft(drafted=0, accepted=0)


def test_a_padded_lookup_always_drafts_all_it_may():
    drafter = NgramDrafter("abcab", shortest=2, longest=2, padded=True)
    assert drafter.proposal(4) == ["c", "a", "b", "b"]
    unmatched = NgramDrafter("abc", shortest=2, longest=2, padded=True)
    assert unmatched.draft(["c", "c", "x"], 3) == Draft(drafted=3, accepted=2)
    assert NgramDrafter("", shortest=1, longest=1, padded=True).proposal(3) == []


def test_a_draft_can_be_cut():
    draft = Draft(drafted=5, accepted=3)
    assert draft.cut_to(9) is draft
    assert draft.cut_to(4) == Draft(drafted=4, accepted=3)
    assert draft.cut_to(2) == Draft(drafted=2, accepted=2)
    with pytest.raises(ValueError, match="accepted must be within drafted"):
        Draft(drafted=1, accepted=2)


def test_lookup_sizes_are_filled_in_as_vllm_does():
    assert lookup_sizes({}) == (5, 5)
    assert lookup_sizes({"prompt_lookup_max": 3}) == (3, 3)
    assert lookup_sizes({"prompt_lookup_min": 2, "prompt_lookup_max": 4}) == (2, 4)
    with pytest.raises(ValueError, match="ascend"):
        lookup_sizes({"prompt_lookup_min": 4, "prompt_lookup_max": 2})


@pytest.mark.parametrize("method", [*HEADS, "ngram", "suffix"])
def test_every_method_has_a_drafter(method: str):
    speculation = Speculation(method=method, num_speculative_tokens=4)
    drafter = drafter_for(speculation, Workload.CHAT, "abcabca", random.Random(1))
    assert drafter is not None
    assert drafter.draft("bcabc", 2).drafted <= 2
    assert drafter_for(None, Workload.CHAT, "abc", random.Random(1)) is None


def test_a_method_that_is_not_simulated_is_refused():
    dspark = Speculation(method="dspark", num_speculative_tokens=8)
    with pytest.raises(ValueError, match="dspark"):
        drafter_for(dspark, Workload.CHAT, [], random.Random(1))
