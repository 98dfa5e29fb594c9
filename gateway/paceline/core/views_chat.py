"""The body of a chat → `RequestView`. Most bodies are chats, so this has a compiled twin,
`native/bodies.c` (`compiled.py` chooses); a change here is a change there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from paceline.core.fields import (
    MAX_MESSAGES,
    both_ends,
    integer,
    mapping,
    number,
    samples_with_min_p,
    sequence,
    string,
    text_of,
)
from paceline.core.types import Endpoint, RequestView, Turn

__all__ = ["MAX_MESSAGES", "SELDOM_SAID", "chat_view", "max_tokens", "seldom_said"]

SELDOM_SAID = frozenset([
    "tools", "tool_choice", "response_format", "structured_outputs", "n", "logprobs", "min_p",
    "logit_bias", "prediction",
])  # fmt: skip
"""Of a body without these, the defaults of a view say it."""


def chat_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    system: list[str] = []
    turns: list[Turn] = []
    has_text = False
    for message in both_ends(sequence(body.get("messages"))):
        said = message if isinstance(message, dict) else {}
        role, content = string(said.get("role")), said.get("content")
        text = content if isinstance(content, str) else text_of(content)
        if role in ("system", "developer"):
            system.append(text)
        else:
            turns.append(Turn(role=role, text=text))
            has_text = has_text or text != ""
    view = RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        system="\n".join(system),
        turns=tuple(turns),
        max_tokens=max_tokens(body),
        temperature=number(body.get("temperature")),
        has_text=has_text,
    )
    return view if SELDOM_SAID.isdisjoint(body) else replace(view, **seldom_said(body))


def max_tokens(body: Mapping[str, Any]) -> int | None:
    return integer(body.get("max_completion_tokens")) or integer(body.get("max_tokens"))


def seldom_said(body: Mapping[str, Any]) -> dict[str, Any]:
    """What chat and completions both may say, and seldom do."""
    n = integer(body.get("n")) or 1
    return {
        "num_tools": len(sequence(body.get("tools"))),
        "tool_choice_forced": _is_forced(body.get("tool_choice")),
        "response_format": _response_format(body),
        "n": n,
        "num_choices": n,
        "logprobs": bool(body.get("logprobs")),
        "min_p": samples_with_min_p(body),
        "logit_bias": bool(body.get("logit_bias")),
        "prediction": text_of(mapping(body.get("prediction")).get("content")),
    }


def _response_format(body: Mapping[str, Any]) -> str | None:
    kind = mapping(body.get("response_format")).get("type")
    if isinstance(kind, str) and kind != "text":
        return kind
    return "grammar" if body.get("structured_outputs") else None


def _is_forced(tool_choice: Any) -> bool:
    return tool_choice == "required" or isinstance(tool_choice, dict)
