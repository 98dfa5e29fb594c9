"""`${VAR}` in values: whole texts only, never read as YAML, never printed."""

import pytest

from paceline.errors import ConfigurationError
from paceline.settings import parse
from paceline.settings.problems import Problems
from paceline.settings.variables import expand

ENVIRON = {"KEY": "sk-1", "EMPTY": "", "TREE": "{a: [1, 2]}", "MONEY": "a$$b${KEY}", "BELL": "\a"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${KEY}", "sk-1"),
        ("${EMPTY}", ""),
        ("${TREE}", "{a: [1, 2]}"),
        ("${MONEY}", "a$$b${KEY}"),
        ("${NONE:-}", ""),
        ("${NONE:-a b$$}", "a b$"),
        ("${EMPTY:-other}", "other"),
        ("${KEY:-other}", "sk-1"),
        ("$${KEY}", "${KEY}"),
        ("cost: $5, $$5", "cost: $5, $5"),
        ("$KEY", "$KEY"),
    ],
)
def test_a_whole_value_expands_once(written: str, value: str) -> None:
    problems = Problems(file="f")

    assert expand({"a": [written]}, ENVIRON, problems) == {"a": [value]}
    assert problems.in_file_order() == ()


def test_only_values_expand() -> None:
    assert expand({"${KEY}": 1, "b": None}, ENVIRON, Problems(file="f")) == {"${KEY}": 1, "b": None}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("${NONE}", "the environment variable NONE is not set"),
        ("${BELL}", "the environment variable BELL is not printable text on one line"),
        ("http://${KEY}", "variables expand only as a whole value"),
        ("${KEY}${KEY}", "variables expand only as a whole value"),
        ("${KEY:-${EMPTY}}", "variables expand only as a whole value"),
        ("${KEY:?needed}", "variables expand only as a whole value"),
        ("${}", "variables expand only as a whole value"),
        ("$$${KEY}", "variables expand only as a whole value"),
    ],
)
def test_what_does_not_expand_is_refused_at_its_path(written: str, message: str) -> None:
    problems = Problems(file="f")

    expand({"a": {"b": written}}, ENVIRON, problems)

    (problem,) = problems.in_file_order()
    assert problem.startswith(f"f:1: a.b: {message}")


def test_a_variable_is_text_and_stays_out_of_messages() -> None:
    text = 'listen: {port: "${PORT}", host: "${HOST}"}\nmodels: []'

    with pytest.raises(ConfigurationError) as caught:
        parse(text, {"PORT": "s3cret", "HOST": "s3cret host"}, name="f")

    assert caught.value.problems == (
        "f:1: listen.port: must be a whole number, not the text that ${PORT} holds",
        'f:1: listen.host: must be a host name or address such as "127.0.0.1", '
        "not the text that ${HOST} holds",
        "f:2: models: must have at least one entry",
    )
