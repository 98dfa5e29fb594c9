"""What the simulated model writes."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.types import Turn, Workload
from paceline.sim.library import Passage, passages
from paceline.sim.words import tokenize
from paceline.sim.writer import Writing, write

PROGRAMS = passages(Workload.CODE)
IN_PYTHON = [passage for passage in PROGRAMS if passage.language == "python"]


def answer(text: str, seed: int = 1, **more: int) -> Writing:
    return write([Turn(role="user", text=text)], random.Random(seed), **more)


def source(block: str) -> str:
    return block.removeprefix("```python\n").removesuffix("\n```")


@given(st.text(max_size=80), st.integers())
def test_same_prompt_and_seed_give_the_same_text(prompt: str, seed: int):
    assert answer(prompt, seed) == answer(prompt, seed)


def test_seeds_vary_the_text():
    assert len({answer("Tell me about sleep.", seed).text for seed in range(12)}) > 6
    assert len({answer("Write an LRU cache.", seed).text for seed in range(12)}) > 3


@pytest.mark.parametrize(
    ("prompt", "word"),
    [
        ("How does speculative decoding work?", "guess"),
        ("Tell me about the history of bicycles.", "pedals"),
        ("How do I bake bread?", "flour"),
        ("Tell me a story about a lighthouse.", "lamp"),
    ],
)
def test_prose_is_about_what_was_asked(prompt: str, word: str):
    writing = answer(prompt)
    assert writing.workload is Workload.CHAT
    assert writing.text.count(word) >= 3


@pytest.mark.parametrize("passage", passages(Workload.CHAT), ids=lambda passage: passage.name)
def test_prose_is_long_enough_to_watch(passage: Passage):
    for seed in range(3):
        assert 400 <= len(answer(f"Tell me about {passage.keywords[0]}", seed).text.split()) <= 900


def test_a_prompt_that_nothing_fits_is_answered_honestly():
    assert answer("Who won the 1954 world cup?").text.startswith("I am a simulated model")


def test_a_brief_answer_is_brief():
    assert len(answer("Tell me briefly about rivers.").text.split()) < 160


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        ("Write a class LRUCache with get and put.", "class LRUCache(Generic[K, V]):"),
        ("Write an LRU cache in Python.", "class LRUCache(Generic[K, V]):"),
        ("A function that retries with backoff, please write the code.", "def retry("),
        ("Write a JavaScript function that parses a query string.", "export function parseQuery("),
        ("Write a SQL query that reports sales by month.", "WITH order_values AS ("),
        ("Implement binary search.", "def first_true("),
    ],
)
def test_programs_are_what_was_asked_for(prompt: str, line: str):
    writing = answer(prompt)
    assert writing.workload is Workload.CODE
    assert line in writing.text
    assert writing.text.count("```") == 4


def test_only_code_means_only_code():
    text = answer("Write a token bucket rate limiter. Output only code.").text
    assert text.startswith("```python\n")
    assert text.endswith("\n```")


@pytest.mark.parametrize("passage", IN_PYTHON, ids=lambda passage: passage.name)
def test_our_python_programs_pass_their_own_tests(passage: Passage):
    names: dict[str, object] = {"__name__": f"passage_{passage.name}"}
    exec("import sys, types\nsys.modules[__name__] = types.ModuleType(__name__)", names)
    exec(source(passage.body), names)
    exec(source(passage.tests), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) >= 2
    for test in tests:
        assert callable(test)
        test()


def test_an_edit_gives_the_document_back():
    document = "def first(n):\n    return n\n\n\ndef second(n):\n    return first(n) + 1"
    writing = answer(f"Rename first to primary.\n```python\n{document}\n```")
    assert writing.workload is Workload.EDIT
    assert f"```python\n{document.replace('first', 'primary')}\n```" in writing.text


def test_a_document_with_fences_gets_a_longer_fence():
    writing = answer("Fix the spelling.\n~~~\nteh\n```\ncode\n```\n~~~")
    assert "````\nthe\n```\ncode\n```\n````" in writing.text


@pytest.mark.parametrize("prompt", ["hello " * 60_000, "fix: " + "teh cat " * 40_000])
def test_a_long_prompt_takes_no_long_time(prompt: str):
    answer("warm up")
    began = time.perf_counter()
    answer(prompt)
    assert time.perf_counter() - began < 1.0


@given(st.integers(min_value=1, max_value=12_000))
def test_a_text_can_be_made_as_long_as_is_wished(at_least: int):
    assert len(tokenize(answer("Tell me about bread.", at_least=at_least).text)) >= at_least
