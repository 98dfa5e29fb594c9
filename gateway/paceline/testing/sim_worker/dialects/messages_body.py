"""`/v1/messages` and its `count_tokens`: their bodies, as conversations in chat messages.

What vLLM itself does with them: it translates a body into one for chat completions and reads that,
so refusals speak of chat's fields (`max_completion_tokens`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from paceline.testing.sim_worker.fields import Body, flag, integer, require
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.plans import StructuredOutput, plan
from paceline.testing.sim_worker.prompts import Prompt, chat_prompt
from paceline.testing.sim_worker.refusals import Refusal, bad_shape, bad_value
from paceline.testing.sim_worker.requests import (
    GenerateRequest,
    accepted,
    check_lengths,
    check_model,
    output_limit,
)
from paceline.testing.sim_worker.tools import Choice, Tool, Toolbox

_ROLES = ("user", "assistant", "system")
_BLOCKS = ("text", "image", "tool_use", "tool_result", "tool_reference", "thinking")
_MORE_BLOCKS = ("redacted_thinking", "tool_addition", "tool_removal")
_CHOICES = {"auto": Choice.AUTO, "any": Choice.REQUIRED, "none": Choice.NONE, "tool": Choice.NAMED}


def read_messages(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """Raises Refusal; `refused` gives it the shape of this endpoint."""
    require(body, "max_tokens")
    max_tokens = integer(body, "max_tokens")
    if max_tokens is None or max_tokens < 1:
        text = "max_tokens must be positive"
        context = {"ctx": {"error": ValueError(text)}}
        raise bad_shape(
            "value_error", "body.max_tokens", f"Value error, {text}", max_tokens, **context
        )
    toolbox, prompt = _conversation(body, options)
    translated = {
        "max_completion_tokens": max_tokens,
        "stop": body.get("stop_sequences"),
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "vllm_xargs": body.get("vllm_xargs"),
    }
    limit = output_limit(translated, options, "max_completion_tokens", max_tokens)
    return accepted(
        translated,
        options,
        (prompt,),
        limit,
        stream=flag(body, "stream"),
        **plan(prompt, toolbox, _structured(body.get("output_config"))),
    )


def count_tokens(body: Body, options: SimWorkerOptions) -> dict[str, Any]:
    """The answer of `/v1/messages/count_tokens`. Raises Refusal."""
    _, prompt = _conversation(body, options)
    number = check_lengths((prompt,), options)
    return {"input_tokens": number, "context_management": {"original_input_tokens": number}}


def refused(refusal: Refusal) -> Refusal:
    """A refusal in Anthropic's shape, with vLLM's own types.

    What the schema refuses keeps OpenAI's shape: in vLLM it never reaches this endpoint's code.
    """
    error = refusal.body.get("error") if isinstance(refusal.body, dict) else None
    if not isinstance(error, dict) or "code" not in error or error.get("type") == "Bad Request":
        return refusal
    told = {"type": error.get("type"), "message": error.get("message")}
    return Refusal(refusal.status, {"type": "error", "error": told}, refusal.headers)


def _conversation(body: Body, options: SimWorkerOptions) -> tuple[Toolbox, Prompt]:
    require(body, "model")
    require(body, "messages")
    given = body["messages"]
    if not isinstance(given, list):
        raise bad_shape("list_type", "body.messages", "Input should be a valid list", given)
    toolbox = _toolbox(body)
    messages = [*_system(body.get("system"))]
    for i, message in enumerate(given):
        messages += _translated(i, message)
    check_model(body, options)
    return toolbox, chat_prompt(messages, toolbox.tools)


# --- tools and format -----------------------------------------------------------------------------


def _toolbox(body: Body) -> Toolbox:
    given, choice = body.get("tools"), body.get("tool_choice") or {"type": "auto"}
    if not isinstance(given, list | None):
        raise bad_shape("list_type", "body.tools", "Input should be a valid list", given)
    tools = tuple(_tool(i, tool) for i, tool in enumerate(given or ()))
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind not in _CHOICES:
        raise _not_among("body.tool_choice.type", tuple(_CHOICES), kind)
    if kind != "tool":
        return Toolbox(tools=tools, choice=_CHOICES[kind])
    name = choice.get("name")
    if name not in {tool.name for tool in tools}:
        raise bad_value(f"The tool with name '{name}' is not found in the tools list.")
    return Toolbox(tools=tools, choice=Choice.NAMED, name=name)


def _tool(i: int, tool: object) -> Tool:
    where = f"body.tools.{i}"
    if not isinstance(tool, dict):
        raise bad_shape("model_attributes_type", where, "Input should be a valid dictionary", tool)
    for key, kind in (("name", str), ("input_schema", dict)):
        if not isinstance(tool.get(key), kind):
            raise bad_shape("missing", f"{where}.{key}", "Field required", tool)
    return Tool(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        parameters=tool["input_schema"],
    )


def _structured(config: object) -> StructuredOutput | None:
    wanted = config.get("format") if isinstance(config, dict) else None
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    return StructuredOutput(schema) if isinstance(schema, dict) else None


# --- messages -------------------------------------------------------------------------------------


def _system(system: object) -> Iterable[dict[str, Any]]:
    """The system prompt, its blocks put together without anything between them."""
    if isinstance(system, list):
        blocks = (block for block in system if isinstance(block, dict))
        system = "".join(str(block.get("text") or "") for block in blocks)
    if not isinstance(system, str | None):
        text = "Input should be a valid string"
        raise bad_shape("string_type", "body.system", text, system)
    return [{"role": "system", "content": system}] if system else []


def _translated(i: int, message: object) -> list[dict[str, Any]]:
    """One message as chat's: tool results come before what else its user says."""
    where = f"body.messages.{i}"
    if not isinstance(message, dict):
        raise bad_shape("dict_type", where, "Input should be a valid dictionary", message)
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise _not_among(f"{where}.role", _ROLES, role)
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        text = "Input should be a valid string"
        raise bad_shape("string_type", f"{where}.content", text, content)
    for j, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind not in (*_BLOCKS, *_MORE_BLOCKS):
            raise _not_among(f"{where}.content.{j}.type", (*_BLOCKS, *_MORE_BLOCKS), kind)
    results = [block for block in content if block["type"] == "tool_result"]
    tool_messages = [{"role": "tool", "content": _result(block)} for block in results]
    parts = [_part(block) for block in content if block["type"] in ("text", "image")]
    calls = [_call(block) for block in content if block["type"] == "tool_use"]
    own = {"role": role, "content": parts or None, "tool_calls": calls}
    return [*tool_messages, own] if parts or calls else tool_messages


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        return {"type": "image_url"}
    return {"type": "text", "text": block.get("text") or ""}


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    return {"function": {"name": block.get("name"), "arguments": arguments}}


def _result(block: Mapping[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _not_among(where: str, allowed: tuple[str, ...], given: object) -> Refusal:
    names = [f"'{name}'" for name in allowed]
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    context = {"ctx": {"expected": expected}}
    return bad_shape("literal_error", where, f"Input should be {expected}", given, **context)
