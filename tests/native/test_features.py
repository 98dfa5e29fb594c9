"""Requests measured by `native/features.c` are measured as by `core/features.py`."""

from __future__ import annotations

import gc
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.bench.labelled import own
from paceline.core import compiled, signals, types
from paceline.core.features import (
    MIN_MATERIAL_CHARS,
    SHORT_MATERIAL_CHARS,
    measure,
    measure_law,
)
from paceline.core.signals import SHORT_ANSWER_TOKENS, SYSTEM_MARK_CHARS
from paceline.core.types import Endpoint, Material, RequestView, Turn

features = pytest.importorskip("paceline.native.features", reason="it was not built")
assert compiled.IS_COMPILED  # which lets the law give itself

pieces = st.sampled_from(
    [
        *(
            "Fix this:\n\n",
            "Write a poem.",
            "Why?",
            "in Go",
            "```python\nx = 1\n```\n",
            "read only",
        ),
        *("a b c d. " * 30, "x = f(1);\n" * 9, "{", "@@ ", "\n\n", "é", "修正", "\ud800", "🙂"),
        *("Proofread it. ", "<<<<<<< SEARCH", "You are kind. "),
    ]
)
texts = st.lists(pieces | st.text(max_size=5), max_size=4).map("".join)
roles = st.sampled_from(["user", "user", "assistant", "tool", "function", "", "usér", "User"])
turns = st.builds(Turn, role=roles, text=texts)
views = st.builds(
    RequestView,
    endpoint=st.just(Endpoint.CHAT_COMPLETIONS),
    model=st.just("m"),
    stream=st.booleans(),
    system=st.just("") | texts | texts.map(lambda text: text * 40),
    turns=st.lists(turns, max_size=4).map(tuple)
    | turns.map(lambda turn: (Turn(role="user", text=turn.text),)),
)
seldom = st.fixed_dictionaries(
    {},
    optional={
        "suffix": texts,
        "prediction": texts,
        "num_tools": st.integers(0, 3),
        "response_format": st.sampled_from([None, "", "json_object"]),
        "max_tokens": st.none() | st.integers(-2, 200) | st.sampled_from([10**30, -(10**30), True]),
        "has_text": st.booleans(),
    },
)

VIEW = RequestView(
    endpoint=Endpoint.CHAT_COMPLETIONS,
    model="m",
    stream=True,
    system="Proofread it.",
    turns=(Turn(role="user", text="Write a poem about the sea."),),
)


@given(views)
def test_a_request_is_measured_as_by_the_law(view: RequestView) -> None:
    assert features.measure(view) == measure_law(view)


@given(views, seldom)
def test_so_is_one_that_asks_for_more(view: RequestView, more: dict[str, Any]) -> None:
    view = replace(view, **more)
    assert features.measure(view) == measure_law(view)


def test_so_are_our_own_prompts() -> None:
    for row in own():
        found, expected = features.measure(row.features.view), measure_law(row.features.view)
        assert found == expected
        assert found.material is expected.material
        assert [*found.signals] == [*expected.signals]  # weights are added up in this order


@pytest.mark.parametrize("num_chars", [*range(MIN_MATERIAL_CHARS + 3), *range(158, 164), 5000])
@pytest.mark.parametrize("letter", ["x", ";", "é"])
def test_material_of_any_size_is_told_by_the_law(num_chars: int, letter: str) -> None:
    assert 158 < SHORT_MATERIAL_CHARS < 163
    text = f"Correct the grammar: {letter * num_chars}"
    view = replace(VIEW, turns=(Turn(role="user", text=text),))
    assert features.measure(view) == measure_law(view)


@pytest.mark.parametrize("num_chars", [0, 1, SYSTEM_MARK_CHARS - 7, SYSTEM_MARK_CHARS, 5000])
def test_so_is_a_system_text(num_chars: int) -> None:
    for text in ("x" * num_chars, "x" * num_chars + "<<<<<<<", "Fix it " + "x" * num_chars):
        view = replace(VIEW, system=text)
        assert features.measure(view) == measure_law(view)


@pytest.mark.parametrize("num_tokens", range(SHORT_ANSWER_TOKENS - 1, SHORT_ANSWER_TOKENS + 2))
def test_so_is_the_length_of_an_answer(num_tokens: int) -> None:
    view = replace(VIEW, max_tokens=num_tokens)
    assert features.measure(view) == measure_law(view)


def test_usual_requests_are_not_handed_to_the_law() -> None:
    """Of a module of its own, whose law refuses."""
    spec = find_spec("paceline.native.features")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)

    def no_law(view: RequestView) -> Any:
        raise AssertionError(f"handed to the law: {view!r}")

    numbers = {
        "system_chars": SYSTEM_MARK_CHARS,
        "min_material_chars": MIN_MATERIAL_CHARS,
        "short_material_chars": SHORT_MATERIAL_CHARS,
        "short_answer_tokens": SHORT_ANSWER_TOKENS,
    }
    with pytest.raises(RuntimeError):
        module.measure(VIEW)
    module.configure(no_law, compiled.look, signals.system_signals, types, numbers)
    turn = Turn(role="user", text="x = f(1);\n" * 30)
    answered = (turn, Turn(role="assistant", text="Sure:"))
    for view in (
        VIEW,
        replace(VIEW, system=""),
        replace(VIEW, max_tokens=500),
        replace(VIEW, turns=(turn,)),
        replace(VIEW, turns=answered),
        replace(VIEW, turns=()),
    ):
        assert module.measure(view) == measure_law(view)
    with pytest.raises(AssertionError):
        module.measure(replace(VIEW, num_tools=1))


@pytest.mark.parametrize("view", [None, 3, Material.NONE, Turn(role="user", text="")])
def test_nonsense_is_refused_as_the_law_refuses_it(view: Any) -> None:
    for asked in (measure_law, measure):
        with pytest.raises(AttributeError):
            asked(view)


@pytest.mark.parametrize(
    "change",
    [
        {"turns": None},
        {"system": 3},
        {"turns": (None,)},
        {"turns": (Turn(role="user", text=3),)},  # type: ignore[arg-type]
    ],
)
def test_so_are_odd_fields(change: dict[str, Any]) -> None:
    view = replace(VIEW, **change)
    for asked in (measure_law, measure):
        with pytest.raises((AttributeError, TypeError)):
            asked(view)


def test_nothing_is_kept() -> None:
    long = replace(VIEW, turns=(Turn(role="user", text="x = f(1);\n" * 300),), system="s" * 3000)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        features.measure(VIEW)
        features.measure(long)
        features.measure(replace(VIEW, num_tools=1))
        with pytest.raises(TypeError):
            features.measure(replace(VIEW, turns=None))
    gc.collect()
    assert len(gc.get_objects()) - before < 200
