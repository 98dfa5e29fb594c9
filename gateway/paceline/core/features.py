"""Request body → `RequestView` → `RequestFeatures`, from a bounded look.

`view_of` maps each endpoint's body to one shape and never fails: what it does not understand it
leaves out, since the worker is the judge of a body, not we. `measure` reads at most `LOOK_CHARS`
characters of the last user turn (both ends), however long the prompt, tells the caller's own
words from the material they pasted, and names the signals (`signals.py`) that `classify` weighs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.core.signals import looks_like_code, signals
from paceline.core.types import Endpoint, RequestFeatures, RequestView, Turn

LOOK_CHARS = 8192
"""Text read per request (DESIGN §2.3), half from each end of the last user turn."""
ASK_CHARS = 1200
"""Of the caller's own words, half from each end: an instruction is long before it is unclear."""
PARAGRAPH_CHARS = 400
"""A paragraph longer than this is taken for pasted material when another one stands beside it."""


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
        logprobs=bool(body.get("logprobs")),
        min_p=bool(body.get("min_p")),
        logit_bias=bool(body.get("logit_bias")),
        prediction=_text_of(_mapping(body.get("prediction")).get("content")),
        **builder(body),
    )


def conversation_key(view: RequestView, body: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """What stays the same through a conversation and differs between two (DESIGN §2).

    A session header, `prompt_cache_key`, else the first user turn (its first 1,024 characters).
    The caller scopes it by key and model before it is used.
    """
    for name in SESSION_HEADERS:
        if headers.get(name):
            return headers[name]
    cache_key = body.get("prompt_cache_key")
    if isinstance(cache_key, str) and cache_key:
        return cache_key
    return next((turn.text[:1024] for turn in view.turns if turn.role == "user"), "")


SESSION_HEADERS = (
    "x-paceline-session", "x-session-id", "x-claude-code-session-id", "session-id",
)  # fmt: skip
"""Ours, vLLM's, then those of coding agents, as vllm-project/router reads them too."""


def measure(view: RequestView) -> RequestFeatures:
    """The features of a request. Linear in `LOOK_CHARS`, not in the prompt."""
    last = next((turn.text for turn in reversed(view.turns) if turn.role == "user"), "")
    ask, pasted = _split_paste(_both_ends(last, LOOK_CHARS))
    ask = _both_ends(ask, ASK_CHARS)
    pasted_chars = len(pasted) + max(0, len(last) - LOOK_CHARS)
    seen = frozenset(signals(view, ask, pasted, pasted_chars))
    return RequestFeatures(
        view=view,
        ask=ask,
        pasted_chars=pasted_chars,
        pasted_is_code="pasted-code" in seen,
        prompt_chars=len(view.system) + len(view.suffix) + sum(len(t.text) for t in view.turns),
        num_turns=len(view.turns),
        signals=seen,
    )


# ---- bodies ------------------------------------------------------------------------------------


def _chat_messages(body: Mapping[str, Any]) -> dict[str, Any]:
    system: list[str] = []
    turns: list[Turn] = []
    for message in _list(body.get("messages")):
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


def _text_of(content: Any) -> str:
    """The text of a string, or of any list of strings and parts that carry a `text`."""
    if isinstance(content, str):
        return content
    return "\n".join(_part_texts(_list(content)))


def _part_texts(parts: Sequence[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]


def _response_format(body: Mapping[str, Any]) -> str | None:
    kind = _mapping(body.get("response_format")).get("type")
    if isinstance(kind, str) and kind != "text":
        return kind
    return "grammar" if body.get("structured_outputs") else None


def _is_forced(tool_choice: Any) -> bool:
    return tool_choice == "required" or isinstance(tool_choice, Mapping)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


# ---- the caller's words and the material they pasted ---------------------------------------------

_FENCED = re.compile(r"```[^\n]*\n.*?(?:```|\Z)|<(\w{3,20})>\n.*?(?:</\1>|\Z)", re.DOTALL)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def _split_paste(text: str) -> tuple[str, str]:
    """The caller's own words, and what they pasted: fenced or tagged blocks, long paragraphs."""
    fenced = "".join(found[0] for found in _FENCED.finditer(text))
    rest = _FENCED.sub("\n\n", text) if fenced else text
    blocks = [block for block in _BLANK_LINE.split(rest) if block.strip()]
    if len(blocks) < 2 and not fenced:
        blocks = _one_paragraph(text)
    asked = [block for block in blocks if not _is_pasted(block)]
    if not asked and blocks:
        asked = [min(blocks[0], blocks[-1], key=len)]
    pasted = [block for block in blocks if block not in asked]
    return "\n".join(asked), fenced + "\n".join(pasted)


def _one_paragraph(text: str) -> list[str]:
    """A single paragraph, cut after an instruction that ends in a colon or a line break."""
    head, separator, tail = text.partition("\n")
    if not separator or len(tail) < len(head):
        head, separator, tail = text.partition(": ")
    return [head, tail] if separator and len(tail) > len(head) else [text]


def _is_pasted(block: str) -> bool:
    return len(block) > PARAGRAPH_CHARS or looks_like_code(block)


def _both_ends(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}\n{text[-half:]}"
