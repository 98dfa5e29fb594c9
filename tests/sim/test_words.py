"""Text to word tokens and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.core.types import Turn
from paceline.sim.words import END, END_ID, VOCABULARY, render_chat, token_id, tokenize


@given(st.text())
def test_joined_tokens_are_the_text(text: str):
    assert "".join(tokenize(text)) == text


@given(st.text(alphabet=" \t\n\r#a_é漢한😀<|>", max_size=60))
def test_joined_tokens_are_the_text_where_kinds_meet(text: str):
    tokens = tokenize(text)
    assert "".join(tokens) == text
    assert all(tokens)


def test_words_carry_the_space_before_them_and_indentation_stands_alone():
    code = "def f(x):\n    return x + 1\n"
    assert tokenize(code) == [
        *("def", " f", "(", "x", ")", ":", "\n"),
        *("   ", " return", " x", " +", " 1", "\n"),
    ]


def test_characters_of_languages_without_spaces_stand_alone():
    assert tokenize("漢字 かな") == ["漢", "字", " か", "な"]


def test_a_long_run_is_cut_so_that_prompts_cannot_hide_their_size():
    assert len(tokenize("a" * 1600)) == 100


@given(st.text(min_size=1, max_size=20))
def test_ids_stay_within_the_vocabulary(token: str):
    assert 3 <= token_id(token) < VOCABULARY or token == END


def test_ids_are_the_same_in_every_process():
    assert token_id(" river") == 1_002_932
    assert token_id(END) == END_ID


def test_a_conversation_is_framed_by_single_tokens():
    prompt = render_chat([Turn(role="user", text="hi")])
    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenize(prompt)[0] == "<|im_start|>"
