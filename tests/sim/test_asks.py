"""What a conversation asks for, by the simulator's own light look."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.types import Turn, Workload
from paceline.sim.asks import Ask, read_ask, split_document

CODE_BLOCK = "```python\ndef add(a, b):\n    return a + b\n```"


def ask(*texts: str) -> Ask:
    """The user speaks first, the assistant second, and so on."""
    roles = ("user", "assistant")
    return read_ask([Turn(role=roles[i % 2], text=text) for i, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        ("Tell me about rivers.", Workload.CHAT),
        ("What is the best way to sort my books?", Workload.CHAT),
        ("Explain what this code does:\n" + CODE_BLOCK, Workload.CHAT),
        ("How do I fix a flat tyre?", Workload.CHAT),
        ("", Workload.CHAT),
        ("Write a Python class for an LRU cache.", Workload.CODE),
        ("Write unit tests for this:\n" + CODE_BLOCK, Workload.CODE),
        ("I need a function that removes duplicates", Workload.CODE),
        ("def fibonacci(n):", Workload.CODE),
        ("Rename add to total.\n\n" + CODE_BLOCK, Workload.EDIT),
        (CODE_BLOCK + "\n\nPlease add type hints.", Workload.EDIT),
        ("fix the typo: teh", Workload.EDIT),
        ("Return the full file below, with add renamed to total.\n" + CODE_BLOCK, Workload.EDIT),
        ("Teh cat sat.\n\nIt purrd and purrd.\n\nCorrect the spelling above.", Workload.EDIT),
        ("What is wrong? Give me the corrected version.\n" + CODE_BLOCK, Workload.EDIT),
        (CODE_BLOCK + "\n\n`b` is not used.", Workload.EDIT),
        (CODE_BLOCK, Workload.CHAT),
        ("Fix this:\n<document>\nteh cat\n</document>", Workload.EDIT),
    ],
)
def test_kinds_of_work(text: str, workload: Workload):
    assert ask(text).workload is workload


def test_the_document_is_what_was_pasted_and_nothing_else():
    instruction, document = split_document(f"Add type hints.\n\n{CODE_BLOCK}\n\nThank you.")
    assert document is not None
    assert (document.text, document.language) == ("def add(a, b):\n    return a + b", "python")
    assert instruction.split() == ["Add", "type", "hints.", "Thank", "you."]


def test_an_unclosed_fence_runs_to_the_end():
    _, document = split_document("Fix:\n```\nteh\ncat")
    assert document is not None
    assert document.text == "teh\ncat"


def test_a_follow_up_is_about_the_newest_version():
    answer = "Done:\n\n```python\ndef total(a, b):\n    return a + b\n```"
    read = ask("Rename add to total.\n" + CODE_BLOCK, answer, "Now add a docstring.")
    assert read.document is not None
    assert read.document.text.startswith("def total")


def test_prose_that_came_back_whole_is_the_newest_version_too():
    read = ask("Correct this: I beleive it.", "I believe it.", "Now change believe to doubt.")
    assert read.document is not None
    assert read.document.text == "I believe it."


def test_without_a_document_there_is_nothing_to_edit():
    assert ask("Rename the function add to total.").workload is Workload.CODE


@given(st.text(alphabet="`~<a>/:\n fix", max_size=200))
def test_no_message_is_beyond_it(text: str):
    assert ask(text).workload in Workload


@pytest.mark.parametrize(
    "text",
    [
        "```x\n" * 20_000,
        "<a>\n" * 20_000,
        "fix " * 30_000,
        "a" * 200_000,
        "\n\n" * 50_000,
        " " * 200_000,
    ],
)
def test_time_does_not_explode(text: str):
    began = time.perf_counter()
    ask(text)
    assert time.perf_counter() - began < 1.0
