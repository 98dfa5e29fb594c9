"""A worker's answer, as bytes → the text that the model wrote: reasoning, answer, tool calls.

Of whole answers and of streams, in every family; of a stream also where it was cut off, up to its
last whole event. Of tool calls the name and the arguments, since models write both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paceline.core.chunks import json_or_none
from paceline.core.fields import mapping, sequence, string
from paceline.core.prompt_text import json_text
from paceline.core.types import Endpoint
from paceline_client.sse import SseError, SseSplitter, event_data

Pieces = Iterator[str]


def output_text(endpoint: Endpoint, answer: bytes, *, is_stream: bool) -> str | None:
    """The text of an answer with one choice; None where nothing was said or can be read."""
    if endpoint not in _OF_ANSWER:
        return None
    if is_stream:
        of_event = _OF_EVENT[endpoint]
        text = "".join(piece for event in _events(answer) for piece in of_event(event))
    else:
        text = "".join(_OF_ANSWER[endpoint](mapping(json_or_none(answer))))
    return text or None


def _events(stream: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        blocks = SseSplitter().feed(stream)
    except SseError:
        return
    for block in blocks:
        event = mapping(json_or_none(event_data(block, first=True)))
        if event:
            yield event


# -- chat, completions ---------------------------------------------------------------------------


def _chat_answer(answer: Mapping[str, Any]) -> Pieces:
    for choice in map(mapping, sequence(answer.get("choices"))):
        yield from _chat_message(mapping(choice.get("message")))


def _chat_event(event: Mapping[str, Any]) -> Pieces:
    for choice in map(mapping, sequence(event.get("choices"))):
        yield from _chat_message(mapping(choice.get("delta")))


def _chat_message(message: Mapping[str, Any]) -> Pieces:
    """vLLM calls it `reasoning`, its older versions `reasoning_content`, and some send both."""
    yield string(message.get("reasoning")) or string(message.get("reasoning_content"))
    yield string(message.get("content"))
    yield string(message.get("refusal"))
    for call in map(mapping, sequence(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        yield from _named(function.get("name"))
        yield string(function.get("arguments"))


def _completion(answer: Mapping[str, Any]) -> Pieces:
    for choice in map(mapping, sequence(answer.get("choices"))):
        yield string(choice.get("text"))


# -- responses -----------------------------------------------------------------------------------

_RESPONSE_DELTAS = frozenset(
    f"response.{kind}.delta"
    for kind in (
        *("output_text", "reasoning_text", "refusal"),
        *("function_call_arguments", "custom_tool_call_input"),
    )
)


def _responses_answer(answer: Mapping[str, Any]) -> Pieces:
    for item in map(mapping, sequence(answer.get("output"))):
        for part in map(mapping, sequence(item.get("content"))):
            yield string(part.get("text")) or string(part.get("refusal"))
        yield from _named(item.get("name"))
        yield string(item.get("arguments")) or string(item.get("input"))


def _responses_event(event: Mapping[str, Any]) -> Pieces:
    kind = event.get("type")
    if kind in _RESPONSE_DELTAS:
        yield string(event.get("delta"))
    elif kind == "response.output_item.added":
        yield from _named(mapping(event.get("item")).get("name"))


# -- messages ------------------------------------------------------------------------------------


def _messages_answer(answer: Mapping[str, Any]) -> Pieces:
    for block in map(mapping, sequence(answer.get("content"))):
        yield string(block.get("thinking")) or string(block.get("text"))
        if block.get("type") == "tool_use":
            yield from _named(block.get("name"))
            yield json_text(block.get("input"))


def _messages_event(event: Mapping[str, Any]) -> Pieces:
    match event.get("type"):
        case "content_block_start":
            yield from _named(mapping(event.get("content_block")).get("name"))
        case "content_block_delta":
            delta = mapping(event.get("delta"))
            for field in ("thinking", "text", "partial_json"):
                yield string(delta.get(field))


def _named(name: Any) -> Pieces:
    """A called function's name, apart from the words around it."""
    if isinstance(name, str):
        yield f"\n{name}\n"


_OF_ANSWER: Mapping[Endpoint, Callable[[Mapping[str, Any]], Pieces]] = {
    Endpoint.CHAT_COMPLETIONS: _chat_answer,
    Endpoint.COMPLETIONS: _completion,
    Endpoint.RESPONSES: _responses_answer,
    Endpoint.MESSAGES: _messages_answer,
}
_OF_EVENT: Mapping[Endpoint, Callable[[Mapping[str, Any]], Pieces]] = {
    Endpoint.CHAT_COMPLETIONS: _chat_event,
    Endpoint.COMPLETIONS: _completion,
    Endpoint.RESPONSES: _responses_event,
    Endpoint.MESSAGES: _messages_event,
}
