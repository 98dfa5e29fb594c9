"""`native/look.c` sees in every text what `core/look.py` does, to the letter."""

from __future__ import annotations

from importlib.util import find_spec, module_from_spec
from itertools import count, islice
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.bench.labelled import own
from paceline.core import compiled
from paceline.core.compiled import LOOK_TABLES
from paceline.core.lexicon import STEMS, WORDS
from paceline.core.look import Look, look
from paceline.core.material import ASK_CHARS, LOOK_CHARS, SHORT_PARAGRAPH_CHARS
from paceline.core.signals import END_CHARS, LANGUAGES, TO
from through import absent


def fresh() -> ModuleType:
    """The module anew, with tables of its own."""
    spec = find_spec("paceline.native.look")
    if spec is None or spec.loader is None:
        absent("native/look.c is not built")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def twin() -> ModuleType:
    def no_law(text: str, is_first: bool) -> Look:
        raise AssertionError(f"handed to the law: {text!r}")

    module = fresh()
    module.configure(no_law, LOOK_TABLES)
    return module


def ascii_of(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


# ---- texts made of what matters ------------------------------------------------------------------

MARKS = [
    *("?", ":", ": ", ":\n\n", ".", ". ", ".\n", "..", ".. ", ".\t", ",", "(", ")", "()", "{", "}"),
    *("`", "```", "```python\n", "[SUFFIX]", "@@ ", "--- a/", "<fim", "<CURSOR>", "<PRE>", "<SUF>"),
    *("<", ">", "</a>", "=", ";", "|", '"""', "'''", "*/", "file", "new file", "New File", "FILE"),
    *("own file", "read only", "Read-only", "do not edit", "reference", "src/main.py", "a.b", "./"),
]
BLANKS = [" ", "  ", "\n", "\n\n", "\n\n\n", "\r\n", "\r", "\t", "\n  ", "\n\t"]
CONTROLS = ["\x00", "\x0b", "\x0c", "\x1c", "\x1f", "\x7f"]
LINES = [
    *("return x", "import", "def f(x):", "class A:", "    x = 1\n", "from a b c d e f import"),
    *("let it be as it was once before", "foo(x, y)", "<a>Rename it.</a>", "a.b[0] += c;\n"),
    *("The quick brown fox jumps.\n", "for all of the words that are here in total (few)\n"),
]
LENGTHS = [20, 40, 80, SHORT_PARAGRAPH_CHARS, ASK_CHARS, 2 * END_CHARS, LOOK_CHARS // 2, LOOK_CHARS]

known = st.sampled_from(sorted(filter(str.isascii, {*WORDS, *STEMS, *LANGUAGES, *TO})))
words = st.builds(
    str.__add__, known | st.builds(str.title, known), st.sampled_from(["", " ", ". ", ", ", "s "])
)
long = st.builds(
    lambda unit, size, more: (unit * size)[: size + more],
    st.sampled_from(["x", "y ", "lorem ipsum ", "a {b}\n", "no such word. "]),
    st.sampled_from(LENGTHS),
    st.integers(-3, 3),
)
pieces = st.sampled_from(MARKS) | words | st.sampled_from([*BLANKS, *LINES]) | words
texts = st.lists(pieces | st.sampled_from(CONTROLS) | long | pieces, max_size=30).map(
    "".join
) | st.lists(pieces, max_size=60).map("".join)


@settings(max_examples=1000)
@given(text=texts, is_first=st.booleans())
@example(text="", is_first=True)
@example(text="?", is_first=True)
@example(text="````", is_first=False)
@example(text="..", is_first=False)
@example(text="in c. in", is_first=False)
@example(text="\r", is_first=False)
@example(text="x" * LOOK_CHARS + "\r\n", is_first=False)
@example(text=f"{'x' * (END_CHARS - 2)}@@{'y' * LOOK_CHARS}{' ' * END_CHARS}", is_first=False)
def test_made_texts_look_the_same(twin: ModuleType, text: str, is_first: bool) -> None:
    assert twin.look(text, is_first) == look(text, is_first)


@given(text=st.text(st.characters(max_codepoint=127), max_size=300))
def test_any_characters_look_the_same(twin: ModuleType, text: str) -> None:
    assert twin.look(text, True) == look(text, True)


EDGES = {
    "a colon": [
        f"{'a' * head}: {'b' * tail}"
        for head in (7, 8, 9, 14, 15, 199, 200)
        for tail in (11, 12, 13, 17, 18, 19, 200, 201)
    ],
    "a first line": [
        f"{'a' * line}\n{'b' * rest}\n\nSo."
        for line in (50, 159, 160)
        for rest in (3 * line, 3 * line + 1)
    ],
    "a last line": [f"So:\n\n{'b' * rest}\n{'a' * 50}" for rest in (150, 151)],
    "words of a line": [
        f"{'k = {}; ' * 5}\n\n{opener} {'a ' * words}\n{'k = {}; ' * 5}\nx"
        for opener in ("let", "Let", "be")
        for words in (0, 2, 3, 5, 6)
    ],
    "a line of code alone": [
        f"{opener} {'a ' * words}{end}"
        for opener in ("let", "Else", "<a>", "\x1c", "let import")
        for words in (0, 2, 3, 6)
        for end in (":", "(", "(:", "</a>:")
    ],
    "a language named twice": ["Go slower in go.", "It is in go as in go.", "c to c", "x in c. c"],
    "blank lines before code": [
        f"Fix it:\n\nalpha\n  beta\n  gamma\n{lines}{gap}{'word ' * 40}"
        for gap in ("", "\n\n")
        for lines in ("delta\n" * number for number in range(6))
    ],
}


@pytest.mark.parametrize("edge", EDGES)
def test_at_the_edges_of_the_law_texts_look_the_same(twin: ModuleType, edge: str) -> None:
    for text in EDGES[edge]:
        assert twin.look(text, True) == look(text, True), text


# ---- the project's own prompts -------------------------------------------------------------------


@pytest.fixture(scope="module")
def prompts() -> list[str]:
    turns = (turn for row in own() for turn in row.features.view.turns)
    found = sorted({ascii_of(turn.text) for turn in turns})
    assert len(found) > 200
    return found


def test_our_prompts_look_the_same(twin: ModuleType, prompts: list[str]) -> None:
    for text in prompts:
        for is_first in (True, False):
            assert twin.look(text, is_first) == look(text, is_first)


def test_parts_of_them_and_several_together_look_the_same(
    twin: ModuleType, prompts: list[str]
) -> None:
    seen: set[str] = set()
    for text in islice(_mutations(prompts, Random(1)), 4000):
        expected = look(text, True)
        assert twin.look(text, True) == expected, text
        seen |= expected[3]
    rare = {signal for signal in seen if not signal.partition(":")[1]}
    assert rare == {
        *("no-ask", "to-language", "ends-in-question", "code-in-ask", "fill-in-the-middle"),
        *("diff", "unfinished-code", "new-file", "read-only"),
    }


def _mutations(prompts: list[str], random: Random):
    for number in count():
        text = prompts[number % len(prompts)]
        place = random.randrange(len(text) + 1)
        text = random.choice([text[place:], text[:place], text])
        text += random.choice(["", "\n\n", *MARKS]) + random.choice(["", *prompts])
        text = random.choice([str, str, str, str.upper, str.title])(text)
        if random.random() < 0.3:
            text = text.replace("\n", random.choice(["\r\n", " ", "\n\n", ". "]))
        yield text


# ---- what is the law's ---------------------------------------------------------------------------


class OddStr(str):
    pass


@pytest.mark.parametrize(
    "text",
    ["Corrige cet été.", "\x80", "修复", "fix \ud800", "\udfff", OddStr("fix it")],
    ids=ascii,
)
def test_other_texts_are_handed_to_the_law(text: str) -> None:
    handed: list[tuple[str, bool]] = []

    def law(text: str, is_first: bool) -> Look:
        handed.append((text, is_first))
        return look(text, is_first)

    module = fresh()
    module.configure(law, LOOK_TABLES)
    assert module.look("fix it", False) == look("fix it", False)
    assert not handed
    assert module.look(text, True) == look(text, True)
    assert handed == [(text, True)]


def test_what_the_law_raises_is_raised() -> None:
    module = fresh()
    module.configure(look, LOOK_TABLES)
    with pytest.raises(TypeError):
        module.look(None, True)
    with pytest.raises(TypeError, match="2 arguments"):
        module.look("fix it")


# ---- the tables ----------------------------------------------------------------------------------


def test_the_gateway_looks_by_it(twin: ModuleType) -> None:
    assert compiled.look.__module__ == twin.__name__


def test_it_is_configured_once() -> None:
    module = fresh()
    with pytest.raises(RuntimeError, match="not configured"):
        module.look("fix it", True)
    module.configure(look, LOOK_TABLES)
    with pytest.raises(RuntimeError, match="already"):
        module.configure(look, LOOK_TABLES)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("concepts", [f"c{number}" for number in range(64)]),
        ("words", {f"w{number}": "fix" for number in range(1 << 16)}),
        ("languages", [f"l{number}" for number in range(257)]),
        ("openers", ["a" * 17]),
        ("to_words", bytes(range(127))),
        ("to_words", bytes(256)),
        ("to_words", bytes(range(128)).replace(b",", b"\t") + bytes(128)),
        ("look_chars", LOOK_CHARS + 1),
        ("end_chars", 0),
        ("ask_sizes", range(9)),
        ("new_file", ["n"]),
        ("fill_marks", ["é"]),
        ("reading_marks", [f"mark {number}" for number in range(17)]),
        ("symbols", "é"),
    ],
)
def test_tables_that_it_was_not_written_for_are_refused(name: str, table: Any) -> None:
    module = fresh()
    with pytest.raises(ValueError, match=name):
        module.configure(look, {**LOOK_TABLES, name: table})
    module.configure(look, LOOK_TABLES)
    assert module.look("Fix it.", True) == look("Fix it.", True)


@pytest.mark.parametrize("name", sorted(LOOK_TABLES))
def test_every_table_is_asked_for(name: str) -> None:
    module = fresh()
    with pytest.raises(KeyError, match=name):
        module.configure(look, {key: LOOK_TABLES[key] for key in LOOK_TABLES if key != name})
