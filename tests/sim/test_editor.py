"""Edits: what was asked is done, and everything else is kept."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.sim.editor import edit

WORDS = st.sampled_from(["stone", "river", "alpha", "beta", "walks", "over", "12", "x_1"])


@pytest.mark.parametrize(
    ("instruction", "before", "after"),
    [
        ("Rename add_numbers to sum_values", "x = add_numbers(1)", "x = sum_values(1)"),
        ("with the function `add` renamed to `plus`", "add(addend)", "plus(addend)"),
        ('replace "old thing" with "new"', "an old thing", "an new"),
        ("Replace dog by cat", "The dog. Dog! dogma", "The cat. Cat! dogma"),
        ("change the timeout to 30", "timeout = 10\nx = 10", "timeout = 30\nx = 10"),
        ("change port to 80 and level to debug", "port: 8\nlevel: 'x'", "port: 80\nlevel: 'debug'"),
        ("change foo to bar", "foo(foo=1)", "bar(bar=1)"),
        ("rename a to b and replace c with d", "a c", "b d"),
        ("make it upper case", "so it is", "SO IT IS"),
        ("uppercase the SQL keywords", "select a from t", "SELECT a FROM t"),
        ("fix the spelling", "Teh RECIEVE beleived", "The RECEIVE believed"),
        ("remove all comments", "a = 1\n# gone\nb = 2", "a = 1\nb = 2"),
        ("remove the print statements", "a = 1\nprint(a)\nb = 2", "a = 1\nb = 2"),
        ("sort the lines", "b\na\nC", "a\nb\nC"),
        ("add type hints", "def f(n=2):\n    g()", "def f(n: int = 2) -> None:\n    g()"),
        ("add docstrings", "def go():\n    g()", 'def go():\n    """Go."""\n    g()'),
        ("make it shine", "ends in spaces  \n  stays indented", "ends in spaces\n  stays indented"),
    ],
)
def test_what_was_asked_is_done(instruction: str, before: str, after: str):
    assert edit(before, instruction).text == after


def test_what_was_done_is_told():
    done = edit("def f(n):\n    return n", "rename f to g and add type hints")
    assert done.changes == ("`f` changed to `g`", "type hints added")
    assert done.text == "def g(n: int) -> object:\n    return n"


def test_nothing_to_do_changes_nothing():
    done = edit("All is well.", "fix the spelling")
    assert (done.text, done.changes) == ("All is well.", ())


def test_hints_and_docstrings_that_are_there_stay():
    text = 'def f(n: int) -> int:\n    """Doubles."""\n    return 2 * n'
    assert edit(text, "add type hints and docstrings").text == text


@given(st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=12).map("\n".join))
def test_a_rename_keeps_everything_else(text: str):
    renamed = edit(text, "rename alpha to omega")
    assert renamed.text.replace("omega", "alpha") == text


@given(st.text(alphabet="aé漢 \t\n.(#", max_size=200))
def test_an_edit_that_is_not_understood_keeps_all_but_spaces_at_line_ends(text: str):
    kept = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    assert edit(text, "make it nicer").text == kept


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("def f(a):\n    pass\n" * 5_000, "add type hints and docstrings"),
        (" " * 200_000, "clean up"),
        ("x", "rename " + "a" * 200_000),
        ("x", "replace all the " * 20_000),
    ],
)
def test_time_does_not_explode(text: str, instruction: str):
    began = time.perf_counter()
    edit(text, instruction)
    assert time.perf_counter() - began < 1.0
