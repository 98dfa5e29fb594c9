"""What a request says beside its body: one reading for the gateway and for `paceline check`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.caller import caller_of, flag
from paceline.core.types import Endpoint, Priority, Workload
from paceline.core.views import view_of
from paceline.errors import InvalidRequest

no_nul = st.text().filter(lambda text: "\0" not in text)  # the scope's own separator


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def caller(**headers: str):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    view = view_of(Endpoint.CHAT_COMPLETIONS, {})
    return caller_of(view, {}, named, key_name=None, model="m")


def test_labels_and_priorities_are_read_in_any_case() -> None:
    assert caller(x_paceline_workload=" Edit").workload is Workload.EDIT
    assert caller(x_paceline_priority="BATCH").priority is Priority.BATCH
    assert caller().workload is None
    assert caller().priority is Priority.INTERACTIVE


@pytest.mark.parametrize("name", ["x-paceline-workload", "x-paceline-priority"])
def test_an_unknown_label_is_the_callers_mistake(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} may be .*; not 'poem'"):
        caller(**{name: "poem"})


def test_a_wish_in_a_header_that_is_none_of_ours_is_not_unheard() -> None:
    with pytest.raises(InvalidRequest, match="no header 'x-paceline-workoad'; known: x-paceline-w"):
        caller(x_paceline_workoad="edit")


@pytest.mark.parametrize(("value", "means"), [("1", True), ("true", True), ("0", False)])
def test_a_flag_is_one_or_zero(value: str, means: bool) -> None:
    assert flag({"x": value}, "x") is means
    assert flag({}, "x") is False
    with pytest.raises(InvalidRequest, match="may be 1 or 0"):
        flag({"x": "please"}, "x")


def key_of(*messages: Any, headers: dict[str, str] | None = None, **rest: Any) -> str:
    body = {"model": "m", "messages": list(messages), **rest}
    view = view_of(Endpoint.CHAT_COMPLETIONS, body)
    caller = caller_of(view, body, headers or {}, key_name="team", model="m")
    scope, _, key = caller.conversation.rpartition("\0")
    assert scope == "team\0m"
    return key


def test_the_session_header_names_the_conversation() -> None:
    both = {"x-session-id": "theirs", "x-paceline-session": "ours"}
    assert key_of(user("hi"), headers=both, prompt_cache_key="cached") == "ours"
    assert key_of(user("hi"), headers={"x-session-id": "theirs"}) == "theirs"
    assert key_of(user("hi"), headers={"x-session-id": ""}, prompt_cache_key="cached") == "cached"
    assert key_of(user("hi"), prompt_cache_key=7) == "hi"


@given(first=no_nul.filter(bool), later=st.lists(no_nul, max_size=4), system=no_nul)
def test_a_conversation_keeps_its_key_as_it_grows(first: str, later: list, system: str) -> None:
    opening = [{"role": "system", "content": system}, user(first)]
    grown = [{"role": "assistant", "content": "ok"}, *map(user, later)]
    assert key_of(*opening) == key_of(*opening, *grown) == first[:1024]


def test_a_conversation_that_begins_with_a_long_paste_has_a_short_key() -> None:
    assert key_of(user("x" * 10**6)) == "x" * 1024


def test_without_any_user_turn_the_key_is_empty() -> None:
    body = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}]}
    view = view_of(Endpoint.CHAT_COMPLETIONS, body)
    assert caller_of(view, body, {}, key_name="team", model="m").conversation == ""
