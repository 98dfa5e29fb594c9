"""Request body → `RequestView`: each endpoint's body in the one shape that decisions read.

Never fails: what is not understood is left out, since the worker is the judge of a body, not we.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.core.types import Endpoint, RequestView, Turn

SAMPLING_EPS = 1e-5
"""vLLM's bound below which a sampling parameter counts as 0."""
MAX_MESSAGES = 1024
"""Messages looked at, half from each end: an agent's longest conversations have some hundreds."""
MAX_PARTS = 256
"""Content parts looked at in one message."""


def view_of(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """What a body says, in the shape that all endpoints share. Wrong types read as absent."""
    builder = _completion_prompt if endpoint is Endpoint.COMPLETIONS else _chat_messages
    return RequestView(
        endpoint=endpoint,
        model=_string(body.get("model")),
        stream=body.get("stream") is True,
        num_tools=len(_list(body.get("tools"))),
        tool_choice_forced=_is_forced(body.get("tool_choice")),
        response_format=_response_format(body),
        max_tokens=_integer(body.get("max_completion_tokens")) or _integer(body.get("max_tokens")),
        temperature=_number(body.get("temperature")),
        n=_integer(body.get("n")) or 1,
        num_choices=(_integer(body.get("n")) or 1) * _num_prompts(body.get("prompt")),
        logprobs=bool(body.get("logprobs")),
        min_p=_samples_with_min_p(body),
        logit_bias=bool(body.get("logit_bias")),
        prediction=_text_of(_mapping(body.get("prediction")).get("content")),
        **builder(body),
    )


def _chat_messages(body: Mapping[str, Any]) -> dict[str, Any]:
    system: list[str] = []
    turns: list[Turn] = []
    messages = _list(body.get("messages"))
    if len(messages) > MAX_MESSAGES:
        messages = [*messages[: MAX_MESSAGES // 2], *messages[-MAX_MESSAGES // 2 :]]
    for message in messages:
        role = _string(_mapping(message).get("role"))
        text = _text_of(_mapping(message).get("content"))
        if role in ("system", "developer"):
            system.append(text)
        else:
            turns.append(Turn(role=role, text=text))
    has_text = any(turn.text for turn in turns)
    return {"system": "\n".join(system), "turns": tuple(turns), "has_text": has_text}


def _completion_prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    text = _text_of(body.get("prompt"))
    turns = (Turn(role="user", text=text),) if text else ()
    return {"turns": turns, "suffix": _string(body.get("suffix")), "has_text": bool(text)}


def _num_prompts(prompt: Any) -> int:
    """Of a list of texts or of token lists, as many as there are; else one."""
    is_batch = bool(_list(prompt)) and isinstance(prompt[0], str | list)
    return len(prompt) if is_batch else 1


def _text_of(content: Any) -> str:
    """The text of a string, or of any list of strings and parts that carry a `text`."""
    if isinstance(content, str):
        return content
    return "\n".join(_part_texts(_list(content)))


def _part_texts(parts: Sequence[Any]) -> Iterator[str]:
    for part in parts[:MAX_PARTS]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]


def _response_format(body: Mapping[str, Any]) -> str | None:
    kind = _mapping(body.get("response_format")).get("type")
    if isinstance(kind, str) and kind != "text":
        return kind
    return "grammar" if body.get("structured_outputs") else None


def _samples_with_min_p(body: Mapping[str, Any]) -> bool:
    """Whether vLLM would apply min_p: it takes tiny values for 0, and drops it in greedy requests
    (`vllm/sampling_params.py`)."""
    min_p, temperature = body.get("min_p"), _number(body.get("temperature"))
    if isinstance(min_p, int | float) and abs(min_p) < SAMPLING_EPS:
        return False
    return bool(min_p) and (temperature is None or temperature >= SAMPLING_EPS)


def _is_forced(tool_choice: Any) -> bool:
    return tool_choice == "required" or isinstance(tool_choice, Mapping)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    """Of an integer too, unless it is beyond what a float can hold."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
