"""`messages` and `prompt` → what is written from and what is looked up in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.core.types import Turn
from paceline.sim.words import render_chat, token_id, tokenize
from paceline.testing.sim_worker.refusals import bad_shape, bad_value
from paceline.testing.sim_worker.tools import Tool, markup_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What the writer reads, and the tokens that the drafter looks up in.

    `given_ids` are those of a prompt that came as token ids. Ours are hashes and cannot be turned
    back into words, so such a prompt has tokens of its own kind and no text.
    """

    turns: tuple[Turn, ...]
    tokens: tuple[str, ...]
    given_ids: tuple[int, ...] | None = None

    def ids(self) -> list[int]:
        return list(self.given_ids or map(token_id, self.tokens))


def chat_prompt(messages: object, tools: Sequence[Tool] = ()) -> Prompt:
    """`messages` in the chat template, after the tools on offer. Raises Refusal."""
    turns = _turns(messages)
    rendered = render_chat(turns if not tools else (_offer(tools), *turns))
    return Prompt(turns=turns, tokens=tuple(tokenize(rendered)))


def _offer(tools: Sequence[Tool]) -> Turn:
    """The tools as templates for Hermes and Qwen models list them: a line of JSON each."""
    lines = "\n".join(json.dumps(tool.as_json(), ensure_ascii=False) for tool in tools)
    return Turn(role="system", text=_clean(f"<tools>\n{lines}\n</tools>"))


def _turns(messages: object) -> tuple[Turn, ...]:
    if not isinstance(messages, list):
        raise bad_shape("list_type", "body.messages", "Input should be a valid list", messages)
    if not messages:
        text = "Cannot apply chat template to an empty conversation. Provide at least one message."
        raise bad_value(text)
    return tuple(_turn(i, message) for i, message in enumerate(messages))


def _turn(i: int, message: object) -> Turn:
    where = f"body.messages.{i}"
    if not isinstance(message, dict):
        raise bad_shape("dict_type", where, "Input should be a valid dictionary", message)
    if not isinstance(message.get("role"), str):
        raise bad_shape("missing", f"{where}.role", "Field required", message)
    said = _content(message.get("content"), where)
    text = "\n".join(filter(None, (said, *map(_clean, markup_of(message.get("tool_calls"))))))
    return Turn(role=_clean(message["role"]), text=text)


def _content(content: object, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return _clean(content)
    if not isinstance(content, list):
        raise bad_shape(
            "string_type", f"{where}.content", "Input should be a valid string", content
        )
    return "\n".join(_part(part, f"{where}.content.{i}") for i, part in enumerate(content))


def _part(part: object, where: str) -> str:
    if isinstance(part, str):
        return _clean(part)
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return _clean(part["text"])
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("image_url", "input_image", "input_audio", "video_url", "audio_url"):
        medium = str(kind).removeprefix("input_").removesuffix("_url")
        raise bad_value(f"At most 0 {medium}(s) may be provided in one prompt.")
    raise bad_shape("dict_type", where, "Input should be a valid dictionary", part)


def text_prompts(prompt: object) -> tuple[Prompt, ...]:
    """A text, a list of texts, token ids, or a list of lists of token ids. Raises Refusal."""
    return tuple(map(_text_prompt, _listed(prompt)))


def _listed(prompt: object) -> tuple[str | list[int], ...]:
    if isinstance(prompt, str):
        return (prompt,)
    if isinstance(prompt, list) and _is_ids(prompt):
        return (prompt,)
    if isinstance(prompt, list) and prompt:
        if all(isinstance(item, str) for item in prompt) or all(map(_is_ids, prompt)):
            return tuple(prompt)
        text = "Input should be a valid string"
        raise bad_shape("string_type", "body.prompt.0", text, prompt[0])
    raise bad_value("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")


def _is_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    )


def _text_prompt(prompt: str | list[int]) -> Prompt:
    if isinstance(prompt, list):
        tokens = tuple(f"#{number}" for number in prompt)
        return Prompt(turns=(Turn(role="user", text=""),), tokens=tokens, given_ids=tuple(prompt))
    text = _clean(prompt)
    return Prompt(turns=(Turn(role="user", text=text),), tokens=tuple(tokenize(text)) or ("",))


def _clean(text: str) -> str:
    """JSON may carry halves of surrogate pairs, which no answer could repeat."""
    return text.encode("utf-8", "replace").decode()
