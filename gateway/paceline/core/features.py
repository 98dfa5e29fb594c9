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

SAMPLING_EPS = 1e-5
"""vLLM's bound below which a sampling parameter counts as 0."""
LOOK_CHARS = 8192
"""Text read per request, half from each end of the last user turn."""
MAX_MESSAGES = 1024
"""Messages looked at, half from each end: an agent's longest conversations have some hundreds."""
MAX_PARTS = 256
"""Content parts looked at in one message."""
ASK_CHARS = 1200
"""Of the caller's own words, half from each end: an instruction is long before it is unclear."""
PARAGRAPH_CHARS = 400
"""A paragraph longer than this is taken for pasted material."""
SHORT_PARAGRAPH_CHARS = 200
"""One longer than this is too, where another stands beside it that is much shorter."""


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


def measure(view: RequestView) -> RequestFeatures:
    """The features of a request. Linear in `LOOK_CHARS`, not in the prompt."""
    last = next((turn.text for turn in reversed(view.turns) if turn.role == "user"), "")
    look = _both_ends(last, LOOK_CHARS)
    ask, pasted = (look, "") if view.endpoint is Endpoint.COMPLETIONS else _split_paste(look)
    ask = _both_ends(ask, ASK_CHARS)
    pasted_chars = len(pasted) + max(0, len(last) - LOOK_CHARS)
    seen = frozenset(signals(view, ask, pasted, pasted_chars))
    return RequestFeatures(
        view=view,
        ask=ask,
        pasted_chars=pasted_chars,
        prompt_chars=len(view.system) + len(view.suffix) + sum(len(t.text) for t in view.turns),
        num_turns=len(view.turns),
        signals=seen,
    )


# ---- bodies ------------------------------------------------------------------------------------


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


# ---- the caller's words and the material they pasted ---------------------------------------------

_OPENING_TAG = re.compile(r"<(\w{3,20})>\r?\n")
_BLANK_LINE = re.compile(r"\n[ \t\r]*(?:\n[ \t\r]*)+")


def _split_paste(text: str) -> tuple[str, str]:
    """The caller's own words, and what they pasted: fenced or tagged blocks, long paragraphs."""
    fenced, rest = _without_fences(text)
    tagged, rest = _without_tags(rest)
    blocks = [block for block in _BLANK_LINE.split(rest) if block.strip()]
    if len(blocks) == 1 and not (fenced or tagged):
        blocks = _one_paragraph(blocks[0])
    shortest = min(map(len, blocks), default=0)
    is_pasted = [_is_pasted(block, shortest) for block in blocks]
    if blocks and all(is_pasted):  # then the shorter end is what was said of the rest
        is_pasted[0 if len(blocks[0]) <= len(blocks[-1]) else -1] = False
    asked = [block for block, pasted in zip(blocks, is_pasted, strict=True) if not pasted]
    others = [block for block, pasted in zip(blocks, is_pasted, strict=True) if pasted]
    return "\n".join(asked), "\n".join([*fenced, *tagged, *others])


def _without_fences(text: str) -> tuple[list[str], str]:
    """The blocks within code fences, the fences kept, and the text around them."""
    pieces = text.split("```")
    closed = len(pieces) % 2 == 1
    fenced = [f"```{piece}```" for piece in pieces[1::2]]
    if not closed:
        fenced[-1] = fenced[-1].removesuffix("```")
    return fenced, "\n\n".join(pieces[0::2])


def _without_tags(text: str) -> tuple[list[str], str]:
    """The blocks within `<tag>` lines, and the text around them; an open tag runs to the end."""
    inside: list[str] = []
    around: list[str] = []
    position = 0
    while found := _OPENING_TAG.search(text, position):
        end = text.find(f"</{found[1]}>", found.end())
        end = len(text) if end < 0 else end
        around.append(text[position : found.start()])
        inside.append(text[found.end() : end])
        position = min(len(text), end + len(found[1]) + 3)
    return inside, "\n\n".join([*around, text[position:]])


def _one_paragraph(text: str) -> list[str]:
    """A single paragraph, cut after an instruction that ends in a colon or a line break."""
    head, separator, tail = text.partition("\n")
    if not separator or len(tail) < len(head):
        head, separator, tail = text.partition(": ")
    return [head, tail] if separator and len(tail) > len(head) else [text]


def _is_pasted(block: str, shortest: int) -> bool:
    if len(block) > PARAGRAPH_CHARS or looks_like_code(block):
        return True
    return len(block) > SHORT_PARAGRAPH_CHARS and len(block) > 3 * shortest


def _both_ends(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}\n{text[-half:]}"
