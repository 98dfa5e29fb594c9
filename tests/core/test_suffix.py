"""Suffix decoding: drafts as long as the match, along the more frequent branch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.suffix import SuffixDrafter, SuffixIndex, SuffixRules

FEW_WORDS = st.lists(st.sampled_from("abc"), max_size=40)
RULES = SuffixRules()


def proposal(prompt: str, rules: SuffixRules = RULES, limit: int = 24) -> str:
    return "".join(SuffixDrafter(prompt, rules).proposal(limit))


def test_a_draft_is_as_long_as_its_match():
    assert proposal("abcdefgh-xy-abc") == "def"
    assert proposal("abcdefgh-xy-abcd") == "efgh"
    assert proposal("abcdefgh-xy-abc", SuffixRules(max_spec_factor=2.0)) == "defgh-"
    assert proposal("abcdefgh-xy-abc", limit=2) == "de"


def test_the_more_frequent_branch_is_taken_until_it_is_unlikely():
    assert proposal("1abX 2abY 3abY 4ab") == "Y "
    rules = SuffixRules(min_token_prob=0.7)  # two of three are too few
    assert proposal("1abX 2abY 3abY 4ab", rules) == ""


def test_no_match_is_no_draft():
    assert proposal("abc") == ""
    assert proposal("") == ""


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 8))
def test_a_draft_stands_somewhere_after_the_latest_token(
    prompt: list[str], output: list[str], limit: int
):
    drafter = SuffixDrafter(prompt, RULES)
    drafter.extend(output)
    written, drafted = "".join(prompt + output), "".join(drafter.proposal(limit))
    assert len(drafted) <= limit
    assert not drafted or written[-1] + drafted[0] in written


@given(FEW_WORDS, FEW_WORDS)
def test_accepted_tokens_are_the_text_to_come(prompt: list[str], upcoming: list[str]):
    drafter = SuffixDrafter(prompt, RULES)
    proposed, draft = drafter.proposal(8), drafter.draft(upcoming, 8)
    assert draft.drafted == len(proposed)
    assert proposed[: draft.accepted] == upcoming[: draft.accepted]


def test_outputs_of_other_requests_are_remembered():
    shared = SuffixIndex(max_texts=2)
    first = SuffixDrafter("p", RULES, shared)
    first.extend("the quick brown fox")
    second = SuffixDrafter("q", RULES, shared)
    second.extend("the q")
    assert "".join(second.proposal(9)) == "uick "


def test_the_oldest_outputs_are_forgotten():
    shared = SuffixIndex(max_texts=2)
    for text in ("the quick brown fox", "1", "2"):
        SuffixDrafter("", RULES, shared).extend(text)
    late = SuffixDrafter("", RULES, shared)
    late.extend("the q")
    assert late.proposal(9) == []


@given(st.lists(FEW_WORDS, max_size=6))
def test_what_is_forgotten_takes_no_room(texts: list[list[str]]):
    shared = SuffixIndex(max_texts=1)
    for text in texts:
        shared.extend(shared.begin(), text)
    only = SuffixIndex(max_texts=1)
    only.extend(only.begin(), texts[-1] if texts else [])
    assert shared.num_places == only.num_places


def test_without_room_nothing_is_shared():
    shared = SuffixIndex(max_texts=0)
    SuffixDrafter("", RULES, shared).extend("the quick brown fox")
    assert shared.matches("the q", 24) == []


def test_options_are_vllms():
    rules = SuffixRules.of(7, {"suffix_decoding_max_tree_depth": 9, "model": "x"})
    assert (rules.num_tokens, rules.max_tree_depth, rules.min_token_prob) == (7, 9, 0.1)
    with pytest.raises(ValueError, match="suffix_decoding_min_token_prob cannot be"):
        SuffixRules.of(7, {"suffix_decoding_min_token_prob": "0.1"})
    with pytest.raises(ValueError, match="not suffix decoding"):
        SuffixRules.of(7, {"suffix_decoding_max_tree_depth": 0})
