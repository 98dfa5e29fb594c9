"""The compiled rules say what those of `core/rules.py` say, of any request."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.core import compiled, decide, types
from paceline.core import rules as law
from paceline.core.rules import FIELDS, Action, Comparison, Condition, Rule, RuleOutcome
from paceline.core.types import (
    Caller,
    Classification,
    CopyRatio,
    Endpoint,
    Material,
    Priority,
    RequestFeatures,
    RequestView,
    Workload,
)

twin = pytest.importorskip("paceline.native.rules", reason="it was not built")
assert compiled.IS_COMPILED  # which gave it its law

POOLS = ["a", "b", "c", "d"]
HEADERS = ["x-tier", "x-größe", "x-none"]
BEYOND = 2**53  # where doubles begin to leave integers out

texts = st.sampled_from(["m", "edit", "batch", "json_schema", "größe", "größer", "", "chat"])
wholes = st.integers(-2, 5) | st.sampled_from([BEYOND, BEYOND + 1, -BEYOND - 1, 10**400])
ratios = st.sampled_from([0.0, 0.5, 0.9, 1.0, 2.0, float(BEYOND), float("inf"), float("nan")])
numbers = wholes | ratios
comparisons = st.builds(
    Comparison,
    sign=st.sampled_from([">=", "<=", "==", "!=", ">", "<"]),
    value=ratios | st.floats(-1.0, 5.0) | st.sampled_from([0, 2, BEYOND + 1]),
)
words = texts | st.sampled_from([*Endpoint, *Workload, *Priority])
wanted = words | st.booleans() | numbers | comparisons
USUAL: dict[str, st.SearchStrategy[Any]] = {
    "copy_ratio": comparisons,
    "label_confidence": comparisons,
    "tools": st.booleans(),
    "response_format": st.booleans() | texts,
    "prompt_chars": numbers | comparisons,
    "max_tokens": numbers | comparisons,
    "stream": st.booleans(),
    "header": st.just(True) | texts,
}


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """Mostly as the configuration writes them, now and then with values of other kinds."""
    name = draw(st.sampled_from(FIELDS))
    values = draw(st.sampled_from([USUAL.get(name, words)] * 3 + [wanted]))
    return Condition(
        field=name,
        any_of=tuple(draw(st.lists(values, max_size=3))),
        header=draw(st.sampled_from(HEADERS)) if name == "header" else None,
        negate=draw(st.booleans()),
    )


pools = st.sampled_from(POOLS)
actions = (
    st.builds(Action, pool=pools, prefer=st.sampled_from([None, ""]))
    | st.builds(Action, prefer=pools, pool=st.sampled_from([None, ""]))
    | st.builds(Action, forbid=st.lists(pools, min_size=1, max_size=4).map(tuple))
    | st.builds(Action, weight=st.just({"a": 1.0, "b": 2.0}))
)
ruled = st.builds(
    Rule,
    name=st.sampled_from(["first", "second", "größe"]),
    when=st.lists(conditions(), max_size=2).map(tuple),
    then=actions,
)
views = st.builds(
    RequestView,
    endpoint=st.sampled_from(Endpoint),
    model=texts,
    stream=st.booleans(),
    num_tools=st.integers(0, 2),
    response_format=st.none() | texts,
    max_tokens=st.none() | wholes,
)
featured = st.builds(
    RequestFeatures,
    view=views,
    material=st.just(Material.NONE),
    material_chars=st.just(0),
    prompt_chars=wholes,
)
classified = st.builds(
    Classification,
    workload=st.sampled_from(Workload),
    label_confidence=st.sampled_from([0.0, 0, 0.5, 1.0, 1]),
    copy_ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]).map(
        lambda at: CopyRatio(quantiles=(at,) * 5)
    ),
)
callers = st.builds(
    Caller,
    key_name=st.none() | texts,
    headers=st.dictionaries(st.sampled_from(HEADERS[:2]), texts)
    | st.just(MappingProxyType({"x-tier": "batch"})),
    priority=st.sampled_from(Priority),
    conversation=texts,
)


def said(outcome: RuleOutcome) -> tuple[object, ...]:
    """All that can be asked of it: values that are equal may still be of other types."""
    return (
        repr(outcome),
        [type(verdict) for verdict in outcome.verdicts],
        [verdict.why_not for verdict in outcome.verdicts],
    )


def both(*asked: Any) -> list[RuleOutcome | str]:
    """What the law and its twin say, or how they refuse."""
    answers: list[RuleOutcome | str] = []
    for outcome_of in (law.outcome_of, twin.outcome_of):
        try:
            answers.append(outcome_of(*asked))
        except Exception as error:
            answers.append(repr(error))
    return answers


@given(
    st.lists(ruled, max_size=4).map(tuple) | st.lists(ruled, max_size=4),
    st.tuples(featured, classified, callers, st.frozensets(pools, min_size=1)),
)
def test_the_rules_say_what_the_laws_say(rules: Sequence[Rule], known: tuple[Any, ...]) -> None:
    expected, found = both(rules, *known)
    assert found == expected
    if isinstance(found, RuleOutcome) and isinstance(expected, RuleOutcome):
        assert said(found) == said(expected)


@given(conditions(), st.tuples(featured, classified, callers))
def test_so_does_each_condition(condition: Condition, known: tuple[Any, ...]) -> None:
    rules = (Rule(name="r", when=(condition,), then=Action(pool="a")),)
    expected, found = both(rules, *known, frozenset("a"))
    assert found == expected


VIEW = RequestView(
    endpoint=Endpoint.CHAT_COMPLETIONS, model="m", stream=True, num_tools=1, max_tokens=7,
    response_format="json_object",
)  # fmt: skip
FEATURES = RequestFeatures(
    view=VIEW, material=Material.NONE, material_chars=0, prompt_chars=120
)  # fmt: skip
CLASSIFICATION = Classification(
    workload=Workload.EDIT, label_confidence=0.9, copy_ratio=CopyRatio(quantiles=(0.7,) * 5)
)
CALLER = Caller(key_name="team-a", headers={"x-tier": "batch"})
REQUEST = FEATURES, CLASSIFICATION, CALLER, frozenset("ab")


def rule(then: Action, **when: Any) -> Rule:
    held = [Condition(field=name, any_of=(value,)) for name, value in when.items()]
    return Rule(name="r", when=tuple(held), then=then)


USUAL_RULES = (
    rule(Action(pool="a"), workload="chat"),
    rule(Action(pool="a"), response_format=False),
    rule(Action(pool="elsewhere"), model="m"),
    rule(Action(forbid=("a", "b")), stream=True),
    rule(Action(pool="a"), key="team-b"),
    rule(Action(pool="a"), label_confidence=Comparison(sign="<", value=0.5)),
    rule(Action(prefer="b"), tools=True, prompt_chars=120, endpoint="chat_completions"),
)


def test_usual_rules_are_answered_without_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the two would agree for no other reason than that the law answers for both."""
    expected = law.outcome_of(USUAL_RULES, *REQUEST)
    assert expected.preferred == "b"
    tier = Condition(field="header", header="x-tier", any_of=("batch",))
    by_header = (Rule(name="r", when=(tier,), then=Action(forbid=("a",))),)
    expected_by_header = law.outcome_of(by_header, *REQUEST)
    assert expected_by_header.forbidden == {"a"}
    with monkeypatch.context() as patched:
        patched.setattr(law, "outcome_of", None)
        twin.configure(law, types)
        try:
            assert twin.outcome_of(USUAL_RULES, *REQUEST) == expected
            assert twin.outcome_of([*USUAL_RULES], *REQUEST) == expected
            assert twin.outcome_of(by_header, *REQUEST) == expected_by_header
            with pytest.raises(TypeError):
                twin.outcome_of((rule(Action(weight={"a": 1.0})),), *REQUEST)
        finally:
            patched.undo()
            twin.configure(law, types)
    assert twin.outcome_of(USUAL_RULES, *REQUEST) == expected


def test_a_field_is_known_by_its_text_too() -> None:
    condition = Condition(field="stream", any_of=(True,))
    object.__setattr__(condition, "field", "".join(["str", "eam"]))
    rules = (Rule(name="r", when=(condition,), then=Action(pool="a")),)
    assert twin.outcome_of(rules, *REQUEST).pool == "a"


@pytest.mark.parametrize("num_rules", [0, 1, 31, 32, 33, 200])
def test_there_may_be_any_number_of_rules(num_rules: int) -> None:
    many = (rule(Action(pool="a"), stream=False),) * num_rules
    for rules in (many, (*many, rule(Action(pool="a")))):
        expected, found = both(rules, *REQUEST)
        assert found == expected


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"features": None}, AttributeError),
        ({"caller": None}, AttributeError),
        ({"classification": replace(CLASSIFICATION, copy_ratio=None)}, AttributeError),
        ({"classification": replace(CLASSIFICATION, label_confidence="1")}, TypeError),
        ({"features": replace(FEATURES, view=replace(VIEW, num_tools=None))}, TypeError),
        ({"features": replace(FEATURES, prompt_chars="120")}, TypeError),
        ({"rules": None}, TypeError),
        ({"rules": (None,)}, AttributeError),
        ({"rules": (rule(Action(pool="a"), unknown="m"),)}, KeyError),
        ({"rules": (rule(Action(pool="a"), model=Comparison(sign=">", value=1)),)}, TypeError),
        ({"rules": (rule(Action(forbid=([],))),)}, TypeError),
    ],
)
def test_nonsense_is_refused_as_the_law_refuses_it(
    change: dict[str, Any], error: type[Exception]
) -> None:
    """Where a rule asks about it: what none asks about is not looked at."""
    asked = {
        "rules": (
            rule(Action(pool="c"), tools=True, copy_ratio=Comparison(sign=">", value=0.1)),
            rule(Action(pool="c"), prompt_chars=Comparison(sign=">", value=0.1)),
            Rule(
                name="h",
                when=(Condition(field="header", header="x-tier", any_of=(True,)),),
                then=Action(pool="c"),
            ),
        ),
        "features": FEATURES,
        "classification": CLASSIFICATION,
        "caller": CALLER,
        "allowed": frozenset("ab"),
    } | change
    for outcome_of in (law.outcome_of, twin.outcome_of):
        with pytest.raises(error):
            outcome_of(*asked.values())


def test_decisions_ask_the_twin() -> None:
    assert decide.outcome_of is compiled.outcome_of
    assert compiled.outcome_of is twin.outcome_of


def test_nothing_is_kept() -> None:
    weighed = (*USUAL_RULES[:-1], rule(Action(weight={"a": 1.0})))
    refused = (*USUAL_RULES[:-1], rule(Action(forbid=([],))))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        twin.outcome_of(USUAL_RULES, *REQUEST)
        twin.outcome_of([*USUAL_RULES] * 10, *REQUEST)
        twin.outcome_of(weighed, *REQUEST)
        twin.outcome_of((rule(Action(forbid=("a",))),), *REQUEST)
        with pytest.raises(TypeError):
            twin.outcome_of(refused, *REQUEST)
    gc.collect()
    assert len(gc.get_objects()) - before < 200
