"""Cutting an answer to what a request allows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.sim.script import Finish, Script, make_script
from paceline.sim.words import END, tokenize

TEXT = "One stone. Two stones. Three stones."


def shown(script: Script) -> str:
    return script.text_between(0, len(script.tokens), 0)


def test_a_text_that_fits_ends_by_itself():
    script = make_script(TEXT, max_tokens=100)
    assert shown(script) == TEXT
    assert script.tokens[-1] == END
    assert (script.finish, script.stop_reason) == (Finish.STOP, None)


def test_the_end_counts_as_a_token():
    number = len(tokenize(TEXT))
    assert make_script(TEXT, max_tokens=number).finish is Finish.LENGTH
    assert make_script(TEXT, max_tokens=number + 1).finish is Finish.STOP


def test_a_stop_string_is_generated_but_not_shown():
    script = make_script(TEXT, max_tokens=100, stop=[" Three", " Two"])
    assert shown(script) == "One stone."
    assert "".join(script.tokens) == "One stone. Two"
    assert (script.finish, script.stop_reason) == (Finish.STOP, " Two")


def test_a_stop_string_can_be_kept():
    script = make_script(TEXT, max_tokens=100, stop=[" Two"], keep_stop=True)
    assert shown(script) == "One stone. Two"


def test_the_limit_comes_before_a_later_stop_string():
    script = make_script(TEXT, max_tokens=3, stop=[" Three"])
    assert (shown(script), script.finish, script.stop_reason) == ("One stone.", Finish.LENGTH, None)


def test_ignoring_the_end_runs_into_the_limit():
    script = make_script(TEXT * 9, max_tokens=20, ends=False)
    assert (len(script.tokens), script.finish) == (20, Finish.LENGTH)


def test_an_empty_answer_is_one_token_long():
    script = make_script("", max_tokens=5)
    assert (script.tokens, shown(script)) == ((END,), "")


def test_no_tokens_at_all_is_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        make_script(TEXT, max_tokens=0)


@given(
    st.text(alphabet="ab .\n", max_size=40),
    st.integers(1, 40),
    st.lists(st.text(alphabet="ab .", min_size=1, max_size=3), max_size=2),
    st.lists(st.integers(0, 50), max_size=6),
)
def test_any_cut_into_pieces_shows_the_same_text(
    text: str, max_tokens: int, stop: list[str], cuts: list[int]
):
    script = make_script(text, max_tokens=max_tokens, stop=stop)
    number = len(script.tokens)
    edges = [0, *sorted(min(cut, number) for cut in cuts), number]
    pieces = ""
    for start, end in pairwise(edges):
        pieces += script.text_between(start, end, len(pieces))
    assert pieces == shown(script)
    assert text.startswith(pieces)
    assert 1 <= number <= max_tokens
    assert not any(string in pieces for string in stop)
