"""Typed looks at the fields of a body that nobody has checked: a wrong type reads as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_MESSAGES = 1024
"""Messages looked at, half from each end: an agent's longest conversations have some hundreds."""
MAX_PARTS = 256
"""Content parts looked at in one message."""
SAMPLING_EPS = 1e-5
"""vLLM's bound below which a sampling parameter counts as 0."""

_NUMBER = (int, float)


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: Any) -> float | None:
    """Of an integer too, unless it is beyond what a float can hold."""
    is_number = isinstance(value, _NUMBER) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def both_ends(messages: Sequence[Any]) -> Sequence[Any]:
    """At most MAX_MESSAGES of them, from the beginning and the end."""
    if len(messages) <= MAX_MESSAGES:
        return messages
    return [*messages[: MAX_MESSAGES // 2], *messages[-MAX_MESSAGES // 2 :]]


def text_of(content: Any) -> str:
    """The text of a string, or of any list of strings and parts that carry a `text`."""
    if isinstance(content, str):
        return content
    return "\n".join(_part_texts(sequence(content)))


def _part_texts(parts: Sequence[Any]) -> Iterator[str]:
    for part in parts[:MAX_PARTS]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def samples_with_min_p(body: Mapping[str, Any]) -> bool:
    """Whether vLLM would apply min_p: it takes tiny values for 0, and drops it in greedy requests
    (`vllm/sampling_params.py`)."""
    min_p, temperature = body.get("min_p"), number(body.get("temperature"))
    if isinstance(min_p, _NUMBER) and abs(min_p) < SAMPLING_EPS:
        return False
    return bool(min_p) and (temperature is None or temperature >= SAMPLING_EPS)
