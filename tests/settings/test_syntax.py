"""What is not YAML: the line at which it began, in words that say what would be right."""

import pytest

from paceline.errors import ConfigurationError
from paceline.settings.document import read
from paceline.settings.problems import Problems

NO_COLON = 'a key needs a colon and a space after it, as in "key: value"'
ENDS_ONLY = "the quote that begins here ends only on line {}, and what follows there does not fit"
DOES_NOT_FIT = "this does not fit the lines above it"


def refused(text: str) -> str:
    """The line and message, without the file's name and `not valid YAML`."""
    with pytest.raises(ConfigurationError) as caught:
        read(text, Problems(file="f"))
    (problem,) = caught.value.problems
    line, what = problem.removeprefix("f:").split(": not valid YAML: ")
    return f"{line}: {what}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 'x\nc: 1\n", "2: the quote that begins here is never closed"),
        ('a: {b: "x}\nc: 1\n', "1: the quote that begins here is never closed"),
        (
            'a: 1\nb: "x\nc: 1\nd: 1\ne: "y"\nf: 1\n',
            "2: " + ENDS_ONLY.format(5),
        ),
        (
            '- {url: "x}\n- {url: "y"}\n',
            "1: " + ENDS_ONLY.format(2),
        ),
        (
            'a: "x\nb: ""\nc: 1\n',
            "1: " + ENDS_ONLY.format(2),
        ),
        ("a: 'it's'\n", "1: text after the end of a value; is there a quote within quotes?"),
    ],
)
def test_quotes(text: str, problem: str) -> None:
    assert refused(text) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "a: {x: 1\nb: 2\n",
            "1: the { that begins here is not closed, or a comma is missing; noticed on line 2",
        ),
        (
            "a: {x: 1,\nb: {y: 1}\nc:\n  - 2\n",
            "1: the { that begins here is not closed, or a comma is missing; noticed on line 3",
        ),
        (
            "a: 1\nb: [x,\n- y\n",
            "2: the [ that begins here is not closed, or a comma is missing; noticed on line 3",
        ),
        ("a: {x: 1\n\n\n", "1: the { that begins here is never closed"),
        ("a: {x: y: 1}\n", "1: a comma is missing, or what closes the {"),
        (
            "{a: http://[::1]:80}\n",
            "1: a comma is missing, or what closes the {; text with brackets in it needs quotes",
        ),
        ("a: {x: 1}}\n", "1: nothing before it asks for a }"),
        (
            "a: {x: 1,\nb: >\n  y\n",
            "2: text cannot begin with >; put it in quotes (or the { of line 1 is not closed)",
        ),
    ],
)
def test_braces_and_brackets(text: str, problem: str) -> None:
    assert refused(text) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb 2\nc: 3\n", f"2: {NO_COLON}"),
        ("a: 1\nb:2\nc: 3\n", f"2: {NO_COLON}"),
        ("a:2\nb: 3\n", f"1: {NO_COLON}"),
        ("a: 1\nmodels\n  - name: m\n", f"2: {NO_COLON}"),
        ("a:\n  - name m\n    b: 1\n", f"2: {NO_COLON}"),
        ("a:\n  - name m  # its name\n    b: 1\n", f"2: {NO_COLON}"),
        ("a:\n  b 1  # one\n  c: 2\n", f"2: {NO_COLON}"),
        ("a: 1\n  b: 2\n", "2: indented as if it went on with the value of line 1"),
        ("a: b: c\n", '1: a value with ": " in it must be in quotes'),
    ],
)
def test_colons(text: str, problem: str) -> None:
    assert refused(text) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "x: 1\na:\n    b: 1\n  c: 2\n",
            f"4: {DOES_NOT_FIT}; look at its indentation (the mapping around it begins on line 1)",
        ),
        (
            "a:\n  - b: 1\n  c: 2\n",
            f"3: {DOES_NOT_FIT}; look at its indentation (the list around it begins on line 2)",
        ),
        (" a: 1\nb: 2\n", f"2: {DOES_NOT_FIT}; is the first of them indented?"),
        ("a:\n\tb: 1\n", "2: a tab; only spaces can indent"),
    ],
)
def test_indentation(text: str, problem: str) -> None:
    assert refused(text) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: @x\n", "2: text cannot begin with @; put it in quotes"),
        ("a: %x\n", "1: text cannot begin with %; put it in quotes"),
        ("{a: !=0.5}\n", "1: text cannot begin with !; put it in quotes"),
        ("a: &\n", "1: text cannot begin with &; put it in quotes"),
        ("a: >=0.5\n", '1: text cannot begin with > here; put it in quotes: ">=0.5"'),
        ("a: [> 0.5]\n", '1: text cannot begin with > here; put it in quotes: ">0.5"'),
        (
            "a: >x\n",
            "1: > begins a block of text, which starts on the next line; "
            "put the value in quotes if it is none",
        ),
        (
            'a: "\\q"\n',
            "1: found unknown escape character 'q' (while scanning a double-quoted scalar)",
        ),
    ],
)
def test_text_that_needs_quotes(text: str, problem: str) -> None:
    assert refused(text) == problem
