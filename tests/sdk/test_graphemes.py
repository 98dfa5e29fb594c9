"""Where text may be cut: clusters, escape sequences and fences stay whole, at linear cost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline_client.graphemes import atoms, may_grow

FAMILY = "👨‍👩‍👧‍👦"
CLUSTERS = [
    "a", "é", "e\u0301", "字", "か\u3099", " ", "\n", "\r\n",
    FAMILY, "👍🏽", "❤️", "🇩🇪", "🇫🇷", "1️⃣", "🏴\U000e0067\U000e0062\U000e007f",
    "की", "क्ष", "ที่", "한", "\u1112\u1161\u11ab",
]  # fmt: skip


INDENT = {True: "\n", False: ""}


def pieces(text: str, *, line_start: bool = True) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *atoms(text, indent=INDENT[line_start])])]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_is_one_piece(cluster: str) -> None:
    assert pieces(cluster) == [cluster]


@given(st.lists(st.sampled_from(CLUSTERS), max_size=30))
def test_clusters_in_a_row_stay_apart(clusters: list[str]) -> None:
    assert pieces("x" + "".join(clusters)) == ["x", *clusters]


@given(st.text(max_size=80), st.booleans())
def test_the_pieces_are_the_text(text: str, line_start: bool) -> None:
    found = pieces(text, line_start=line_start)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize(
    "whole",
    [
        "\x1b[31m",
        "\x1b[0;1;38;5;208m",
        "\x1b[2K",
        "\x1b]8;;http://x\x1b\\",
        "\x1b]0;t\x07",
        "\x1bM",
    ],
)
def test_an_escape_sequence_is_one_piece(whole: str) -> None:
    assert pieces(f"a{whole}b") == ["a", whole, "b"]
    assert not may_grow(whole, indent="")
    for cut in range(1, len(whole)):
        assert pieces(whole[:cut])[-1] == whole[:cut]
        assert may_grow(whole[:cut], indent="") or whole[:cut] == "\x1b]8;;http://x\x1b"


def test_a_fence_at_line_start_is_one_piece_with_its_language() -> None:
    assert pieces("```python\nx") == ["```python", "\n", "x"]
    assert pieces("a\n  ```js\n") == ["a", "\n", " ", " ", "```js", "\n"]
    assert pieces("a ```js", line_start=True) == list("a ```js")
    assert pieces("```js", line_start=False) == list("```js")
    assert pieces("`code`") == list("`code`")


@pytest.mark.parametrize("indent", ["\n", "\n  "])
@pytest.mark.parametrize("tail", ["`", "``", "```", "```py"])
def test_a_fence_at_the_end_may_grow(tail: str, indent: str) -> None:
    assert may_grow(tail, indent=indent)


@pytest.mark.parametrize(("tail", "indent"), [("`", ""), ("```", "    "), (" ", "\n")])
def test_what_begins_no_fence_may_not_grow(tail: str, indent: str) -> None:
    assert not may_grow(tail, indent=indent)


@pytest.mark.parametrize("tail", ["👨", "👨‍", "🇩", "❤", "क", "क्", "\u1112"])
def test_what_is_likely_to_go_on_may_grow(tail: str) -> None:
    assert may_grow(tail, indent="")


@pytest.mark.parametrize("tail", ["a", "é", "字", ".", " ", "\n", "🇩🇪", "한"])
def test_what_is_nearly_always_whole_may_not(tail: str) -> None:
    assert not may_grow(tail, indent="")


def test_endless_marks_are_cut() -> None:
    found = pieces("e" + "\u0301" * 1000)
    assert max(map(len, found)) == 64
