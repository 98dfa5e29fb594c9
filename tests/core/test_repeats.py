"""Word tokens, copy ratios and loops."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.repeats import LOOP_TOKENS, copy_ratio, loops
from paceline.core.word_tokens import cut_to_share, word_tokens

WORDS = st.lists(st.sampled_from("abcd"), max_size=30)


def test_words_marks_and_wide_characters_are_tokens():
    assert word_tokens("def f_1(x):\n    return  x-2") == [
        *("def", "f_1", "(", "x", ")", ":", "return", "x", "-", "2"),
    ]
    assert word_tokens("日本 テスト 한국 abc漢def") == [*"日本テスト한국", "abc", "漢", "def"]
    assert word_tokens(" \n\t") == []


@given(st.text())
def test_no_character_but_white_space_is_lost(text: str):
    assert "".join(word_tokens(text)) == "".join(text.split())


def test_the_copy_ratio_is_the_share_of_four_grams():
    """Five 4-grams, of which abcd and bcde stand in the prompt."""
    assert copy_ratio("xabcdey", "abcdefgh") == pytest.approx(2 / 5)
    assert copy_ratio("abcd", "abc") is None
    assert copy_ratio("", "abcd") == 0.0


@given(WORDS, WORDS)
def test_a_copy_ratio_is_a_share(prompt: list[str], output: list[str]):
    ratio = copy_ratio(prompt, output)
    assert ratio is None or 0.0 <= ratio <= 1.0
    assert copy_ratio(prompt + output, output) in (None, 1.0)


def test_an_output_that_repeats_itself_loops():
    beginning = [str(i) for i in range(LOOP_TOKENS)]
    sentence = ["and", "then", "it", "said", "the", "same", "thing", "once", "again"]
    assert loops(beginning + sentence * 100)
    assert loops(["a"] * LOOP_TOKENS)
    assert not loops(beginning)
    assert not loops(["a"] * (LOOP_TOKENS - 1))  # too short to say


def test_text_that_shares_many_words_does_not_loop():
    rng = random.Random(3)
    assert not loops(rng.choices("abcdefgh", k=3000))


@given(st.text(max_size=200), st.text(max_size=200), st.integers(2, 100))
def test_cut_texts_are_within_the_bound_and_have_both_ends(
    prompt: str, output: str, limit_bytes: int
):
    asked, answered = cut_to_share(prompt, output, limit_bytes)
    assert len(asked.encode()) + len(answered.encode()) <= limit_bytes
    for whole, cut in ((prompt, asked), (output, answered)):
        if len(whole.encode("utf-8", "replace")) <= limit_bytes // 2:
            assert cut == whole.encode("utf-8", "replace").decode()


def test_of_a_long_text_both_ends_are_kept():
    assert cut_to_share("a" * 50 + "b" * 50, "", 20) == ("a" * 10 + "\n" + "b" * 9, "")
    assert cut_to_share("a" * 100, "bb", 20) == ("a" * 9 + "\n" + "a" * 8, "bb")
    assert cut_to_share("a" * 100, "é" * 50, 20)[1] == "é" * 2 + "\n" + "é" * 2
