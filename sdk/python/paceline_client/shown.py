"""The text of a chunk, whatever it is made of, fit to be shown on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline_client.client import chunk_text

_CONTROL = {code: "␛" if code == 27 else None for code in [*range(32), *range(127, 160)]}
del _CONTROL[ord("\n")], _CONTROL[ord("\t")]


def text_of(chunk: object) -> str:
    """The answer's text: of a string itself, of a chunk as a mapping or as the openai package's."""
    if isinstance(chunk, str):
        return chunk
    if isinstance(chunk, Mapping):
        return chunk_text(chunk)
    choices: list[Any] = getattr(chunk, "choices", None) or []
    for choice in choices:
        delta = getattr(choice, "delta", None)
        return getattr(delta, "content", None) or getattr(choice, "text", None) or ""
    return ""


def printable(text: str) -> str:
    """Without control characters: a model's escape sequences must not reach the terminal."""
    return text.translate(_CONTROL)
