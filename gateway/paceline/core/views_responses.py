"""The body of OpenAI's Responses API → `RequestView`.

Its input is a text or a list of items: messages, calls and what they returned, and kinds that say
nothing of the text to come. Calls are turns of the assistant without text, as in chat, and so the
same conversation reads the same through either endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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

_LOGPROBS = "message.output_text.logprobs"
_SYSTEM = ("system", "developer")


def responses_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """`endpoint` is RESPONSES. What is not understood is left out."""
    turns = list(_turns(body.get("input")))
    instructions = string(body.get("instructions"))
    system = [instructions, *(turn.text for turn in turns if turn.role in _SYSTEM)]
    spoken = tuple(turn for turn in turns if turn.role not in _SYSTEM)
    return RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        system="\n".join(text for text in system if text),
        turns=spoken,
        num_tools=len(sequence(body.get("tools"))),
        tool_choice_forced=_is_forced(body.get("tool_choice")),
        response_format=_response_format(body),
        max_tokens=integer(body.get("max_output_tokens")),
        temperature=number(body.get("temperature")),
        logprobs=bool(body.get("top_logprobs")) or _LOGPROBS in sequence(body.get("include")),
        min_p=samples_with_min_p(body),
        logit_bias=bool(body.get("logit_bias")),
        has_text=any(turn.text for turn in spoken),
    )


def _turns(given: Any) -> Iterator[Turn]:
    if isinstance(given, str):
        yield Turn(role="user", text=given)
    for item in both_ends(sequence(given)):
        turn = _turn(mapping(item))
        if turn is not None:
            yield turn


def _turn(item: Mapping[str, Any]) -> Turn | None:
    """Messages may leave their `type` out. Reasoning, files, references and so on are no turns."""
    match item.get("type", "message"):
        case "message" if "role" in item:
            return Turn(role=string(item["role"]), text=text_of(item.get("content")))
        case "function_call" | "custom_tool_call":
            return Turn(role="assistant", text="")
        case "function_call_output" | "custom_tool_call_output":
            return Turn(role="tool", text=text_of(item.get("output")))
    return None


def _response_format(body: Mapping[str, Any]) -> str | None:
    kind = mapping(mapping(body.get("text")).get("format")).get("type")
    if isinstance(kind, str) and kind != "text":
        return kind
    return "grammar" if body.get("structured_outputs") else None


def _is_forced(tool_choice: Any) -> bool:
    """A tool by name, any tool; one of a list only where the list must be used."""
    if mapping(tool_choice).get("type") == "allowed_tools":
        return mapping(tool_choice).get("mode") == "required"
    return tool_choice == "required" or isinstance(tool_choice, Mapping)
