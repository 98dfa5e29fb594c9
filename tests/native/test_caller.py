"""The compiled reading of who calls is that of `core/caller.py`."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core import caller as law
from paceline.core import compiled
from paceline.core.caller import HEADERS, MAX_CONVERSATION_CHARS, SESSION_HEADERS
from paceline.core.types import Caller, Endpoint, RequestView, Turn
from paceline.errors import InvalidRequest

twin = pytest.importorskip("paceline.native.caller", reason="it was not built")
assert compiled.IS_COMPILED  # which gave it its law

texts = st.text(max_size=8) | st.sampled_from(
    [
        "a" * MAX_CONVERSATION_CHARS,
        "ä" * (MAX_CONVERSATION_CHARS + 1),
        "a" * 5000 + "€",
        "😀\0\ud800",
    ]
)
turns = st.lists(
    st.builds(Turn, role=st.sampled_from(["user", "assistant", "tool", "use"]), text=texts),
    max_size=4,
).map(tuple)
views = st.builds(
    RequestView,
    endpoint=st.just(Endpoint.CHAT_COMPLETIONS),
    model=st.just("m"),
    stream=st.booleans(),
    system=texts,
    turns=turns,
    num_tools=st.sampled_from([0, 0, 1]),
)
headers = st.dictionaries(
    st.sampled_from(
        [
            *HEADERS,
            *SESSION_HEADERS,
            "accept",
            "host",
            "my-x-paceline-workload",
            "x-paceline-",
            "x-pace",
        ]
    ),
    st.sampled_from(["", "1", "edit", "batch", "s"]),
    max_size=4,
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "prompt_cache_key": st.none() | st.text(max_size=3),
        "tools": st.just([{"name": "t"}]),
    },
)


Asked = tuple[RequestView, dict[str, Any], dict[str, str], str | None, str, str, bool]
asked: st.SearchStrategy[Asked] = st.tuples(
    views, bodies, headers, st.none() | texts, texts, texts, st.booleans()
)


def called(by: Callable[..., Caller], asked: Asked) -> Caller | tuple[str, str | None]:
    """The caller, or why there is none."""
    try:
        return by(*asked)
    except InvalidRequest as refused:
        return refused.message, refused.param


@given(asked)
def test_a_caller_is_the_laws(asked: Asked) -> None:
    found, expected = called(twin.caller_of, asked), called(law.caller_of, asked)
    assert found == expected
    if isinstance(found, Caller):
        assert found.headers is asked[2]


def test_nothing_is_kept() -> None:
    view = RequestView(
        endpoint=Endpoint.CHAT_COMPLETIONS, model="m", stream=False, system="s",
        turns=(Turn(role="user", text="x" * 2000),),
    )  # fmt: skip
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        twin.caller_of(view, {}, {"host": "h"}, None, "m", "r", True)
        twin.caller_of(view, {}, {"session-id": "h"}, "k", "m", "r", True)
    gc.collect()
    assert len(gc.get_objects()) - before < 200
