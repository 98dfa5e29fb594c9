"""The compiled readings of a body are those of `core/views_chat.py` and `core/only_model.py`."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core import compiled, only_model, views_chat
from paceline.core.types import Endpoint
from paceline.core.views_chat import MAX_MESSAGES, SELDOM_SAID

bodies = pytest.importorskip("paceline.native.bodies", reason="it was not built")
assert compiled.IS_COMPILED  # which gave it its law

texts = st.text(max_size=12)
odd = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.lists(texts, max_size=2)
parts = st.lists(texts | st.fixed_dictionaries({"type": st.just("text"), "text": odd}), max_size=3)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]) | odd,
        "content": texts | parts | odd,
        "name": odd,
    },
)
numbers = st.integers() | st.sampled_from([0, 1, 10**400, True, None]) | st.floats() | texts
chats = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(messages | odd, max_size=5) | odd,
        "model": texts | odd,
        "stream": odd,
        "temperature": numbers,
        "max_tokens": numbers,
        "max_completion_tokens": numbers,
        "user": odd,
    },
)
seldom = st.dictionaries(st.sampled_from(sorted(SELDOM_SAID)), odd, max_size=1)


@given(chats, seldom)
def test_a_chat_is_viewed_as_by_the_law(body: dict[str, Any], more: dict[str, Any]) -> None:
    asked = Endpoint.CHAT_COMPLETIONS, body | more
    assert bodies.chat_view(*asked) == views_chat.chat_view(*asked)


@pytest.mark.parametrize("num_messages", [0, 1, 2, MAX_MESSAGES, MAX_MESSAGES + 1])
def test_a_chat_of_any_length_is(num_messages: int) -> None:
    body = {"messages": [{"role": "user", "content": str(at)} for at in range(num_messages)]}
    asked = Endpoint.CHAT_COMPLETIONS, body
    assert bodies.chat_view(*asked) == views_chat.chat_view(*asked)


@pytest.mark.parametrize("body", [None, 3, [], ["messages"]])
def test_what_is_no_body_is_refused_as_the_law_refuses_it(body: Any) -> None:
    for view in (views_chat.chat_view, bodies.chat_view):
        with pytest.raises(AttributeError):
            view(Endpoint.CHAT_COMPLETIONS, body)


spellings = st.sampled_from(["model", "mod\\u0065l", "\\u006dodel", "models", "x", "Model"])
values = st.sampled_from(
    [
        '"m"',
        '"a \\"model\\": b"',
        '"model"',
        '"mo\\\\del"',
        "3",
        "null",
        '{"model": "n"}',
        '["model"]',
        '""',
    ]
)
spaces = st.sampled_from(["", " ", "\n\t "])


@st.composite
def raw_bodies(draw: st.DrawFn) -> bytes:
    """Valid JSON objects with a top-level model, however it and others are spelt."""
    members = draw(st.lists(st.tuples(spellings, values), max_size=3))
    members.insert(draw(st.integers(0, len(members))), ("model", '"m"'))
    space = draw(spaces)
    written = f",{space}".join(f'"{key}"{space}:{space}{value}' for key, value in members)
    raw = f"{space}{{{written}}}{space}".encode()
    assert "model" in json.loads(raw)
    return raw


@given(raw_bodies(), st.sampled_from([b'"other"', b'""', b'"a longer name than before"']))
def test_a_model_is_renamed_as_by_the_law(raw: bytes, name: bytes) -> None:
    found = bodies.renamed(raw, name)
    assert found == only_model.renamed(raw, name)
    if found is not None:
        assert json.loads(found) == json.loads(raw) | {"model": json.loads(name)}


@pytest.mark.parametrize("num_bytes", [100, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 300_000])
def test_so_it_is_in_a_body_of_any_length(num_bytes: int) -> None:
    raw = b'{"model": "m", "messages": "%s"}' % (b"x" * num_bytes)
    for body in (raw, raw[:num_bytes] + b'"}'):
        assert bodies.renamed(body, b'"n"') == only_model.renamed(body, b'"n"')


@given(
    st.lists(
        st.sampled_from([b'"model"', b"\\u006", b'"mode', b"\\", b'"', b"6", b"x" * 13]),
        max_size=12,
    ),
    st.integers(0, 20),
)
def test_a_mark_is_found_wherever_it_stands(pieces: list[bytes], before: int) -> None:
    """Those that look like one, or overlap, or straddle what is looked at together."""
    raw = b"{" + b" " * before + b'"model":"m"' + b"".join(pieces)
    assert bodies.renamed(raw, b'"n"') == only_model.renamed(raw, b'"n"')


@given(raw_bodies(), st.data())
def test_what_breaks_off_reads_nothing_beyond_its_end(raw: bytes, data: st.DataObject) -> None:
    cut = raw[: data.draw(st.integers(0, len(raw)))]
    found = bodies.renamed(cut, b'"n"')
    assert found is None or found == only_model.renamed(cut, b'"n"')


def test_nothing_is_kept() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    }
    raw = json.dumps(body).encode()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        bodies.chat_view(Endpoint.CHAT_COMPLETIONS, body)
        bodies.chat_view(Endpoint.CHAT_COMPLETIONS, {"messages": [None]})
        bodies.renamed(raw, b'"n"')
    gc.collect()
    assert len(gc.get_objects()) - before < 200
