"""A request's body → the text that its answer could have copied from.

That is all text of the conversation, the arguments of earlier tool calls, the tools on offer and
the response format, but not `prediction`, which is no part of a prompt. Chat templates differ in
where they put tools and calls; here these stand between the system text and the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from paceline.core.fields import both_ends, mapping, sequence
from paceline.core.types import Endpoint
from paceline.core.views import view_of


def prompt_text(endpoint: Endpoint, body: Mapping[str, Any]) -> str | None:
    """The text; None where the answer cannot be set against one prompt: token ids, images alone,
    several choices, or a completion that repeats its prompt."""
    view = view_of(endpoint, body)
    if not view.has_text or view.num_choices != 1 or body.get("echo"):
        return None
    turns = [turn.text for turn in view.turns]
    return "\n".join(
        [view.system, *_declared(endpoint, body), *_calls(endpoint, body), *turns, view.suffix]
    )


def _declared(endpoint: Endpoint, body: Mapping[str, Any]) -> Iterator[str]:
    match endpoint:
        case Endpoint.RESPONSES:
            answer_format = mapping(body.get("text")).get("format")
        case Endpoint.MESSAGES:
            answer_format = mapping(body.get("output_config")).get("format")
        case _:
            answer_format = body.get("response_format")
    for declared in (body.get("tools"), answer_format):
        if declared:
            yield json_text(declared)


def _calls(endpoint: Endpoint, body: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of the tool calls in a conversation."""
    if endpoint is Endpoint.RESPONSES:
        for item in map(mapping, both_ends(sequence(body.get("input")))):
            match item.get("type"):
                case "function_call":
                    yield json_text(item.get("arguments"))
                case "custom_tool_call":
                    yield json_text(item.get("input"))
        return
    for message in map(mapping, both_ends(sequence(body.get("messages")))):
        for call in map(mapping, sequence(message.get("tool_calls"))):
            yield json_text(mapping(call.get("function")).get("arguments"))
        for block in map(mapping, sequence(message.get("content"))):
            if block.get("type") == "tool_use":
                yield json_text(block.get("input"))


def json_text(value: Any) -> str:
    """A string as it is, nothing for None, any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
