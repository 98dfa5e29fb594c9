"""YAML → plain values and lines: what is read, and what is refused where."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import ConfigurationError
from paceline.settings.document import MAX_DEPTH, read
from paceline.settings.problems import Problems

keys = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80
)  # PyYAML reads keys of up to 1,024 characters, which with escapes are soon together
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | keys
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=10
)


def found(text: str) -> list[str]:
    """The problems of reading `text`, whether or not it could be read to its end."""
    problems = Problems(file="f")
    try:
        read(text, problems)
    except ConfigurationError as error:
        return list(error.problems)
    return list(problems.in_file_order())


@settings(deadline=None)
@given(values)
def test_json_reads_as_json(value: object) -> None:
    problems = Problems(file="f")

    assert read(f"root: {json.dumps(value)}", problems) == {"root": value}
    assert problems.in_file_order() == ()


@settings(deadline=None)
@given(st.text() | st.text("{}[]:,-?&*!|>'\"%@#~ \n\tab\\u0", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for problem in found(text):
        assert problem.startswith("f:")


def test_each_key_and_item_has_its_line() -> None:
    problems = Problems(file="f")

    read("a: 1\nlist:\n  - x\n  -\n    y:\n      z\nlong: >\n  text\n", problems)

    assert problems.lines == {
        (): 1,
        ("a",): 1,
        ("list",): 2,
        ("list", 0): 3,
        ("list", 1): 5,
        ("list", 1, "y"): 5,
        ("long",): 7,
    }


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("8080", 8080),
        ("-0.5", -0.5),
        ("1e3", 1000.0),
        ('"8080"', "8080"),
        ("'yes'", "yes"),
        ("y", "y"),
        ("2024-01-01", "2024-01-01"),
        (".inf", ".inf"),
        ("1" * 5000, "1" * 5000),
        ("1e999", "1e999"),
        ("http://127.0.0.1:8101", "http://127.0.0.1:8101"),
    ],
)
def test_plain_scalars_are_read_as_in_json_and_else_as_text(written: str, value: object) -> None:
    problems = Problems(file="f")

    assert read(f"a: {written}", problems) == {"a": value}
    assert problems.in_file_order() == ()


@pytest.mark.parametrize("written", ["yes", "No", "ON", "off", "010", "0x1F", "1_000", "12:30:00"])
def test_what_yaml_versions_read_differently_is_refused(written: str) -> None:
    (problem,) = found(f"a: 1\nb: {written}")

    assert problem.startswith(f'f:2: b: YAML readers disagree about "{written}"; write ')


@pytest.mark.parametrize("written", ["off", "No", "{speculation: OFF}"])
def test_what_most_would_write_for_no_speculation_has_its_own_advice(written: str) -> None:
    (problem,) = found(f"speculation: {written}")

    assert problem.endswith("; write null for a pool that does not speculate")


@pytest.mark.parametrize("written", [">5", ">5  # at least", "> 5", ">=0.5", ">0.5", ">= 8000"])
def test_a_comparison_without_quotes_is_told_from_a_block_of_text(written: str) -> None:
    quoted = written.partition("#")[0].replace(" ", "")
    for text in (f"a: {written}\nb: 1\n", f"x:\n  a: {written}\n", f"x: {{a: {written}}}\n"):
        (problem,) = found(text)
        assert problem.endswith(f'text cannot begin with > here; put it in quotes: "{quoted}"')


def test_blocks_of_text_are_read() -> None:
    problems = Problems(file="f")

    assert read("a: >\n  x\n  y\nb: >2\n   z\nc: |+\n  w\nd: >-\n", problems) == {
        "a": "x y\n", "b": " z\n", "c": "w\n", "d": "",
    }  # fmt: skip
    assert problems.in_file_order() == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f:1: the file says nothing; it needs at least models"),
        ("# nothing\n", "f:1: the file says nothing; it needs at least models"),
        ("a: 1\nb: 2\na: 3", "f:3: a: duplicate key; first on line 1"),
        ("x: {a: 1, a: 2}", "f:1: x.a: duplicate key; first on line 1"),
        ("a: !!str 1", "f:1: a: tags (!name) are not supported; quote it if it is text"),
        ("a: !x {}", "f:1: a: tags (!name) are not supported; quote it if it is text"),
        ("a: &x 1", "f:1: a: anchors (&name) are not supported"),
        ("a: *x", "f:1: a: aliases (*name) are not supported; quote it if it is text"),
        ("a: {<<: {b: 1}}", "f:1: a.<<: merge keys are not supported; write the keys out"),
        ("a: 1\n---\nb: 2", "f:2: a second document; there may be only one"),
        ("? [a]\n: 1", "f:1: a key must be plain text"),
        ("a: 1\n\tb: 2", "f:2: not valid YAML: a tab; only spaces can indent"),
        ("a: 1\nb: [1", "f:2: not valid YAML: the [ that begins here is never closed"),
        ("a: 1\nb: \x07", "f:2: character U+0007 is not allowed"),
        ('a: 1\nb: "\\UFFFFFFFF"', "f:2: an escape or number out of range"),
        ('a: "\\ud800"', "f:1: a: half of a surrogate pair is not a character"),
        ("a: 1\nb: " + "[" * (MAX_DEPTH + 1), f"f:2: nested more than {MAX_DEPTH} deep"),
    ],
)
def test_refused_with_its_line(text: str, problem: str) -> None:
    assert found(text)[0].replace('["<<"]', ".<<").startswith(problem)


def test_reading_goes_on_after_what_can_be_passed_over() -> None:
    assert found("a: &x 1\nb: *x\nb: 2\nc: yes") == [
        "f:1: a: anchors (&name) are not supported",
        "f:2: b: aliases (*name) are not supported; quote it if it is text",
        'f:4: c: YAML readers disagree about "yes"; write true or false, or quote it if it is text',
    ]
