"""Prompt lookup: drafts that are really matched, by vLLM's rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.draft import Draft
from paceline.core.lookup import NgramDrafter, lookup_sizes

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


class Counted(str):
    """A token that counts how often it is compared or hashed."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Counted.looks += 1
        return str.__hash__(self)


@pytest.mark.parametrize(
    "pattern", ["a", "ab", "aab", "abcd", "aaaaaaaaaaaaaaaab"], ids=lambda it: it[-4:]
)
def test_a_lookup_costs_no_more_per_token_in_a_long_text(pattern: str):
    longest = 8

    def looks(num_tokens: int) -> int:
        Counted.looks = 0
        tokens = [Counted(pattern[i % len(pattern)]) for i in range(num_tokens)]
        NgramDrafter(tokens, shortest=2, longest=longest)
        return Counted.looks

    assert looks(4000) <= 2.2 * looks(2000)
    assert looks(4000) <= 4000 * longest * (longest + 1)
