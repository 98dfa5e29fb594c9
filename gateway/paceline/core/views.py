"""Request body → `RequestView`: each endpoint's body in the one shape that decisions read.

Never fails: what is not understood is left out, since the worker is the judge of a body, not we.
Here are the bodies of chat and completions, and those that say nothing of what will be generated;
`views_responses` and `views_messages` read the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from paceline.core.fields import (
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
from paceline.core.views_messages import messages_view
from paceline.core.views_responses import responses_view


def view_of(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """What a body says, in the shape that all endpoints share. Wrong types read as absent."""
    return _READERS.get(endpoint, _textless_view)(endpoint, body)


def _chat_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
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
        max_tokens=_max_tokens(body),
        temperature=number(body.get("temperature")),
        has_text=has_text,
    )
    return view if _SELDOM_SAID.isdisjoint(body) else replace(view, **_seldom_said(body))


def _completion_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    said = _seldom_said(body)
    text = text_of(body.get("prompt"))
    num_choices = said["n"] * _num_prompts(body.get("prompt"))
    return RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        turns=(Turn(role="user", text=text),) if text else (),
        suffix=string(body.get("suffix")),
        max_tokens=_max_tokens(body),
        temperature=number(body.get("temperature")),
        has_text=bool(text),
        **said | {"num_choices": num_choices},
    )


def _max_tokens(body: Mapping[str, Any]) -> int | None:
    return integer(body.get("max_completion_tokens")) or integer(body.get("max_tokens"))


def _seldom_said(body: Mapping[str, Any]) -> dict[str, Any]:
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


_SELDOM_SAID = frozenset([
    "tools", "tool_choice", "response_format", "structured_outputs", "n", "logprobs", "min_p",
    "logit_bias", "prediction",
])  # fmt: skip


def _textless_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """Of embeddings, scores and token counts, which generate nothing, and of transcriptions, whose
    text no prompt foretells: no text to judge by, and so the default pool."""
    return RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        has_text=False,
    )


_READERS: Mapping[Endpoint, Callable[[Endpoint, Mapping[str, Any]], RequestView]] = {
    Endpoint.CHAT_COMPLETIONS: _chat_view,
    Endpoint.COMPLETIONS: _completion_view,
    Endpoint.RESPONSES: responses_view,
    Endpoint.MESSAGES: messages_view,
}


def _num_prompts(prompt: Any) -> int:
    """Of a list of texts or of token lists, as many as there are; else one."""
    is_batch = bool(sequence(prompt)) and isinstance(prompt[0], (str, list))
    return len(prompt) if is_batch else 1


def _response_format(body: Mapping[str, Any]) -> str | None:
    kind = mapping(body.get("response_format")).get("type")
    if isinstance(kind, str) and kind != "text":
        return kind
    return "grammar" if body.get("structured_outputs") else None


def _is_forced(tool_choice: Any) -> bool:
    return tool_choice == "required" or isinstance(tool_choice, dict)
