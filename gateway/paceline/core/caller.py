"""What a request says beside its body: labels, priority, and which conversation it belongs to.

One reading of the headers for the gateway and for the configuration's tests, so that a test that
passes is a promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from paceline.core.fields import mapping, sequence, string
from paceline.core.types import Caller, Priority, RequestView, Workload
from paceline.errors import InvalidRequest

SESSION_HEADERS = (
    "x-paceline-session", "x-session-id", "x-claude-code-session-id", "session-id",
)  # fmt: skip
"""Ours, vLLM's, then those of coding agents, as vllm-project/router reads them too."""

_SESSIONS = frozenset(SESSION_HEADERS)

MAX_CONVERSATION_CHARS = 1024
"""Of the first user turn, which says which conversation a request belongs to."""
MAX_TOOLS = 64
"""Tools whose names are looked at."""

OURS = "x-paceline-"
HEADERS = tuple(OURS + name for name in ("workload", "priority", "session", "explain", "hints"))
"""All headers of ours that a request may have: a mistake in a name would be a wish unheard."""

_Choice = TypeVar("_Choice", bound=StrEnum)


def caller_of(
    view: RequestView,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    key_name: str | None,
    model: str,
    request_id: str = "",
    with_template: bool = False,
) -> Caller:
    """`headers` have lower-case names; `model` is the model's own name; the template is worked out
    only where somebody asks. Raises InvalidRequest."""
    workload, priority = None, Priority.INTERACTIVE
    if OURS in "\n".join(headers):
        _check_names(headers)
        workload = _choice(Workload, headers, "x-paceline-workload")
        priority = _choice(Priority, headers, "x-paceline-priority") or priority
    conversation = _conversation(view, body, headers)
    return Caller(
        key_name=key_name,
        headers=headers,
        workload=workload,
        priority=priority,
        conversation=f"{key_name or ''}\0{model}\0{conversation}" if conversation else "",
        request_id=request_id,
        template=_template(view, body, key_name, model) if with_template else 0,
    )


def flag(headers: Mapping[str, str], name: str) -> bool:
    """A header that is 1 or 0 (true and false will do). Raises InvalidRequest for anything else."""
    value = headers.get(name, "0").strip().lower()
    if value in ("1", "true"):
        return True
    if value in ("0", "false"):
        return False
    raise InvalidRequest(f"{name} may be 1 or 0; not {value[:64]!r}", param=name)


def _check_names(headers: Mapping[str, str]) -> None:
    """Raises InvalidRequest."""
    for name in headers:
        if name.startswith(OURS) and name not in HEADERS:
            known = ", ".join(HEADERS)
            raise InvalidRequest(f"there is no header {name[:64]!r}; known: {known}", param=name)


def _conversation(view: RequestView, body: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """What stays the same through a conversation and differs between two.

    A session header, `prompt_cache_key`, else the first user turn (its first characters).
    Empty where none of these says anything, as of token ids: such requests have nothing in common.
    """
    if not _SESSIONS.isdisjoint(headers):
        for name in SESSION_HEADERS:
            if headers.get(name):
                return headers[name]
    cache_key = body.get("prompt_cache_key")
    if isinstance(cache_key, str) and cache_key:
        return cache_key
    for turn in view.turns:
        if turn.role == "user":
            return turn.text[:MAX_CONVERSATION_CHARS]
    return ""


def _template(view: RequestView, body: Mapping[str, Any], key_name: str | None, model: str) -> int:
    """What an application's requests have in common: system text and tools, for one key and model.

    Python's own hash, whose salt is another in each process: it never leaves this one. 0 for a
    request with neither.
    """
    if not view.num_tools:
        return hash((key_name, model, view.system)) if view.system else 0
    tools = sequence(body.get("tools"))[:MAX_TOOLS]
    return hash((key_name, model, view.system, *map(_tool_name, tools)))


def _tool_name(tool: Any) -> str:
    said = mapping(tool)
    return string(said.get("name")) or string(mapping(said.get("function")).get("name"))


def _choice(kind: type[_Choice], headers: Mapping[str, str], name: str) -> _Choice | None:
    """A header whose value is one of few. Raises InvalidRequest, naming them."""
    value = headers.get(name)
    if value is None:
        return None
    try:
        return kind(value.strip().lower())
    except ValueError:
        known = ", ".join(kind)
        raise InvalidRequest(f"{name} may be {known}; not {value[:64]!r}", param=name) from None
