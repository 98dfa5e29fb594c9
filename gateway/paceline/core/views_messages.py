"""The body of Anthropic's Messages API → `RequestView`.

What a tool returned stands in a message of the user there; here it is a turn of its own, in the
order of the blocks, as in chat. Calls, thoughts and images have no text that anything is read from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core.fields import (
    MAX_PARTS,
    both_ends,
    integer,
    mapping,
    number,
    sequence,
    string,
    text_of,
)
from paceline.core.types import Endpoint, RequestView, Turn


def messages_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """`endpoint` is MESSAGES. What is not understood is left out.

    vLLM hands neither min_p nor logit_bias on from here (0.32: `AnthropicMessagesRequest` does not
    have them, and ignores what it does not have), so neither is an obstacle to speculation.
    """
    system = [text_of(body.get("system"))]
    turns: list[Turn] = []
    for message in both_ends(sequence(body.get("messages"))):
        role, content = string(mapping(message).get("role")), mapping(message).get("content")
        if role == "system":  # vLLM takes them among the messages too
            system.append(text_of(content))
        else:
            turns += _turns(role, content)
    return RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        system="\n".join(text for text in system if text),
        turns=tuple(turns),
        num_tools=len(sequence(body.get("tools"))),
        tool_choice_forced=mapping(body.get("tool_choice")).get("type") in ("any", "tool"),
        response_format=_response_format(body),
        max_tokens=integer(body.get("max_tokens")),
        temperature=number(body.get("temperature")),
        has_text=any(turn.text for turn in turns),
    )


def _turns(role: str, content: Any) -> Iterator[Turn]:
    """One message: its text, before and after what tools returned; at least one turn."""
    if isinstance(content, str):
        yield Turn(role=role, text=content)
        return
    said: list[str] = []
    num_turns = 0
    for block in sequence(content)[:MAX_PARTS]:
        if mapping(block).get("type") == "tool_result":
            if said:
                yield Turn(role=role, text="\n".join(said))
            yield Turn(role="tool", text=text_of(mapping(block).get("content")))
            said, num_turns = [], num_turns + 1
        elif isinstance(text := mapping(block).get("text"), str):
            said.append(text)
    if said or not num_turns:
        yield Turn(role=role, text="\n".join(said))


def _response_format(body: Mapping[str, Any]) -> str | None:
    kind = mapping(mapping(body.get("output_config")).get("format")).get("type")
    return kind if isinstance(kind, str) else None
