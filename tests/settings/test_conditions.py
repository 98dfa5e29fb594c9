"""A rule's `when` → conditions, and what its language refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.rules import FIELDS, Comparison, Condition
from paceline.settings.conditions import conditions
from paceline.settings.names import names_in
from paceline.settings.problems import Problems

NAMES = names_in(
    {
        "models": [{"name": "m", "aliases": ["gpt", "o"]}, {"name": "n"}],
        "auth": {"keys": [{"name": "team-a"}]},
    }
)


def read(when: dict[str, object]) -> tuple[Condition, ...]:
    problems = Problems(file="f")
    found = conditions(when, ("when",), NAMES, problems)
    assert problems.in_file_order() == ()
    return found


@pytest.mark.parametrize(
    ("when", "condition"),
    [
        ({"workload": "edit"}, Condition(field="workload", any_of=("edit",))),
        ({"workload": ["edit", "code"]}, Condition(field="workload", any_of=("edit", "code"))),
        ({"workload": {"not": "chat"}}, Condition(field="workload", any_of=("chat",), negate=True)),
        (
            {"workload": {"not": ["chat", "code"]}},
            Condition(field="workload", any_of=("chat", "code"), negate=True),
        ),
        ({"endpoint": "completions"}, Condition(field="endpoint", any_of=("completions",))),
        ({"priority": "batch"}, Condition(field="priority", any_of=("batch",))),
        ({"key": "team-a"}, Condition(field="key", any_of=("team-a",))),
        ({"tools": True}, Condition(field="tools", any_of=(True,))),
        ({"stream": False}, Condition(field="stream", any_of=(False,))),
        ({"response_format": True}, Condition(field="response_format", any_of=(True,))),
        ({"response_format": "grammar"}, Condition(field="response_format", any_of=("grammar",))),
        (
            {"copy_ratio": ">=0.6"},
            Condition(field="copy_ratio", any_of=(Comparison(sign=">=", value=0.6),)),
        ),
        ({"max_tokens": 256}, Condition(field="max_tokens", any_of=(256,))),
        (
            {"prompt_chars": ["<100", "> 8000"]},
            Condition(
                field="prompt_chars",
                any_of=(Comparison(sign="<", value=100), Comparison(sign=">", value=8000)),
            ),
        ),
        ({"model": "m"}, Condition(field="model", any_of=("m", "gpt", "o"))),
        ({"model": "gpt"}, Condition(field="model", any_of=("gpt",))),
        (
            {"header": {"X-Tier": "batch"}},
            Condition(field="header", header="x-tier", any_of=("batch",)),
        ),
        ({"header": {"x": ["a", "b"]}}, Condition(field="header", header="x", any_of=("a", "b"))),
        ({"header": {"x": True}}, Condition(field="header", header="x", any_of=(True,))),
        (
            {"header": {"x": False}},
            Condition(field="header", header="x", any_of=(True,), negate=True),
        ),
        (
            {"header": {"x": {"not": "a"}}},
            Condition(field="header", header="x", any_of=("a",), negate=True),
        ),
        (
            {"header": {"not": {"x": "a"}}},
            Condition(field="header", header="x", any_of=("a",), negate=True),
        ),
        ({"not": {"stream": True}}, Condition(field="stream", any_of=(True,), negate=True)),
        ({"not": {"workload": {"not": "chat"}}}, Condition(field="workload", any_of=("chat",))),
    ],
)
def test_one_condition(when: dict[str, object], condition: Condition) -> None:
    assert read(when) == (condition,)


def test_all_must_hold_and_of_a_not_none_may() -> None:
    assert read({"tools": True, "not": {"workload": "chat", "header": {"x": True}}}) == (
        Condition(field="tools", any_of=(True,)),
        Condition(field="workload", any_of=("chat",), negate=True),
        Condition(field="header", header="x", any_of=(True,), negate=True),
    )


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ({"workloda": "edit"}, 'workloda: unknown field; did you mean "workload"?'),
        ({"workload": "edits"}, 'workload: unknown workload "edits"; did you mean "edit"?'),
        ({"workload": ["edit", 1]}, "workload[1]: unknown workload 1; known: code, chat, edit"),
        ({"workload": {"not": "x"}}, 'workload.not: unknown workload "x"; known: code, chat, edit'),
        ({"workload": []}, "workload: must name at least one value"),
        ({"workload": None}, "workload: unknown workload null; known: code, chat, edit"),
        ({"workload": {"is": "x"}}, "workload: must be a value, a list of values, or {not: …}"),
        ({"endpoint": "chat"}, 'endpoint: unknown endpoint "chat"; known: chat_completions, comp'),
        ({"priority": "low"}, 'priority: unknown priority "low"; known: interactive, batch'),
        ({"model": "mm"}, 'model: unknown model "mm"; did you mean "m"?'),
        ({"key": "team-b"}, 'key: unknown key "team-b"; did you mean "team-a"?'),
        ({"tools": "yes"}, 'tools: must be true or false, not "yes"'),
        ({"stream": 1}, "stream: must be true or false, not 1"),
        ({"response_format": "json"}, 'response_format: unknown response_format "json"; known'),
        ({"copy_ratio": ">= x"}, 'copy_ratio: must be a comparison such as ">=0.5", not ">= x"'),
        ({"copy_ratio": ">=1.5"}, 'copy_ratio: must compare with at least 0 and at most 1, not ">'),
        ({"copy_ratio": True}, 'copy_ratio: must be a comparison such as ">=0.5", not true'),
        ({"copy_ratio": 1.5}, "copy_ratio: must compare with at least 0 and at most 1, not 1.5"),
        (
            {"max_tokens": "x"},
            'max_tokens: must be a whole number or a comparison such as ">=1000"',
        ),
        ({"max_tokens": "<-1"}, 'max_tokens: must compare with at least 0, not "<-1"'),
        ({"max_tokens": "<" + "9" * 400}, "max_tokens: must compare with at least 0, not"),
        ({"header": "x"}, "header: must be a mapping such as {x-tier: batch}"),
        ({"header": {"x y": "a"}}, 'header["x y"]: is not a header\'s name'),
        ({"header": {"x": 3}}, "header.x: must be the header's text in quotes, true (it is there)"),
        ({"header": {"x": [True, "a"]}}, "header.x[0]: true and false stand alone, not in a list"),
        ({"not": "chat"}, "not: must be a mapping of fields, of which none may hold; only once"),
        ({"not": {"not": {"tools": True}}}, "not.not: must be a mapping of fields, of which none"),
    ],
)
def test_refused(when: dict[str, object], problem: str) -> None:
    problems = Problems(file="f")

    conditions(when, ("when",), NAMES, problems)

    (found,) = problems.in_file_order()
    assert found.startswith(f"f:1: when{'' if problem[0] == '[' else '.'}{problem}")


@pytest.mark.parametrize("field", ["copy_ratio", "label_confidence"])
@pytest.mark.parametrize("written", [0, 0.5, 1, "==0.5", "!= 1"])
def test_a_ratio_is_never_met_exactly(field: str, written: object) -> None:
    problems = Problems(file="f")

    conditions({field: [">0.9", {"not": 1}, written]}, (), NAMES, problems)
    conditions({"not": {field: {"not": written}}}, (), NAMES, problems)

    assert [problem.partition(" would ")[2] for problem in problems.in_file_order()] == [
        "",
        'have to be met exactly; write for example ">=0.5"',
        'have to be met exactly; write for example ">=0.5"',
    ]


@pytest.mark.parametrize("field", ["prompt_chars", "max_tokens"])
def test_a_count_can_be_met_exactly_if_it_is_whole(field: str) -> None:
    assert read({field: [100, 2.0, "==5", "!=7"]})[0].any_of == (
        100,
        2.0,
        Comparison(sign="==", value=5),
        Comparison(sign="!=", value=7),
    )
    for written in (0.5, "==0.5", "!=0.5"):
        problems = Problems(file="f")
        conditions({field: written}, (), NAMES, problems)
        (found,) = problems.in_file_order()
        assert found.endswith('would have to be met exactly; write for example ">=1000"')


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELDS, "not", "x-tier"]), inner, max_size=3)
    ),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*FIELDS, "not"]), anything))
def test_anything_gives_conditions_or_problems(when: dict[str, object]) -> None:
    problems = Problems(file="f")

    found = conditions(when, ("when",), NAMES, problems)

    assert all(condition.any_of and condition.field in FIELDS for condition in found)
    assert len(found) + len(problems.in_file_order()) >= len(when)
