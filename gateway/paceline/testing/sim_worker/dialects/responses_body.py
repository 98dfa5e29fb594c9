"""`/v1/responses`: its body, as a conversation in chat messages.

The fields of sampling are named as in chat completions but for `max_output_tokens`; those that vLLM
has only there (`n`, `min_tokens`, `return_token_ids`, …) are unknown here, and so ignored. Nothing
is stored: as on a server without `VLLM_ENABLE_RESPONSES_API_STORE`, `store` is ignored and
`background` refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.fields import Body, flag, integer, number, require
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.plans import StructuredOutput, plan
from paceline.testing.sim_worker.prompts import chat_prompt
from paceline.testing.sim_worker.refusals import bad_shape, bad_value
from paceline.testing.sim_worker.requests import (
    GenerateRequest,
    accepted,
    check_model,
    listed_alternatives,
    output_limit,
)
from paceline.testing.sim_worker.tools import Choice, Tool, Toolbox

_SAMPLING = ("temperature", "top_p", "min_p", "logit_bias", "seed", "stop")
_SHARED = (*_SAMPLING, "include_stop_str_in_output", "ignore_eos", "vllm_xargs")
_LOGPROBS = "message.output_text.logprobs"


def read_responses(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """Raises Refusal with vLLM's status and body."""
    stream = flag(body, "stream")
    require(body, "input")
    toolbox = _toolbox(body)
    structured, text = _structured(body.get("text"))
    messages = _messages(body)
    check_model(body, options)
    _check_store(body)
    prompt = chat_prompt(messages, toolbox.tools)
    limit = output_limit(body, options, "max_output_tokens", options.max_model_len)
    request = accepted(
        {key: body[key] for key in _SHARED if key in body},
        options,
        (prompt,),
        limit,
        stream=stream,
        top_logprobs=_top_logprobs(body),
        **plan(prompt, toolbox, structured),
    )
    return _telling(request, body, toolbox, text)


def _telling(
    request: GenerateRequest, body: Body, toolbox: Toolbox, text: Mapping[str, Any] | None
) -> GenerateRequest:
    """With what the response repeats of its request."""
    named = toolbox.choice is Choice.NAMED
    choice = {"name": toolbox.name, "type": "function"} if named else toolbox.choice.value
    told = {
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata"),
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "temperature": number(body, "temperature", 1.0),
        "tool_choice": choice if toolbox.tools else "none",
        "tools": [_told_tool(tool) for tool in body.get("tools") or ()],
        "top_p": number(body, "top_p", 1.0),
        "max_tool_calls": body.get("max_tool_calls"),
        "reasoning": body.get("reasoning"),
        "service_tier": body.get("service_tier") or "auto",
        "text": text,
        "truncation": body.get("truncation") or "disabled",
        "user": body.get("user"),
        "presence_penalty": number(body, "presence_penalty", 0.0),
        "frequency_penalty": number(body, "frequency_penalty", 0.0),
    }
    return replace(request, told=told)


def _top_logprobs(body: Body) -> int | None:
    include = body.get("include") or ()
    top = integer(body, "top_logprobs") or 0
    return listed_alternatives(top if _LOGPROBS in include else None, "top_logprobs")


def _check_store(body: Body) -> None:
    if body.get("background"):
        text = (
            "This vLLM engine does not support `store=True` and therefore does not support the "
            "background mode. To enable these features, set the environment variable "
            "`VLLM_ENABLE_RESPONSES_API_STORE=1` when launching the vLLM server."
        )
        raise refusals.error(400, "invalid_request_error", text, param="background")
    if (previous := body.get("previous_response_id")) is not None:
        text = f"Response with id '{previous}' not found."
        raise refusals.error(404, "invalid_request_error", text, param="response_id")


# --- tools and text -------------------------------------------------------------------------------


def _toolbox(body: Body) -> Toolbox:
    """Function tools; others are run by servers that have them, and ignored here."""
    given, choice = body.get("tools") or [], body.get("tool_choice") or "auto"
    if not isinstance(given, list):
        raise bad_shape("list_type", "body.tools", "Input should be a valid list", given)
    tools = tuple(_tool(i, tool) for i, tool in enumerate(given) if _is_function(tool))
    if isinstance(choice, dict):
        name = choice.get("name")
        if name not in {tool.name for tool in tools}:
            text = "Tool choice 'function' not found in 'tools' parameter."
            raise bad_value(text, "tool_choice")
        return Toolbox(tools=tools, choice=Choice.NAMED, name=name)
    if choice not in (Choice.NONE, Choice.AUTO, Choice.REQUIRED):
        expected = "'none', 'auto' or 'required'"
        context = {"ctx": {"expected": expected}}
        text = f"Input should be {expected}"
        raise bad_shape("literal_error", "body.tool_choice", text, choice, **context)
    if choice == Choice.REQUIRED and not tools:
        text = "Tool choice 'required' must be specified with 'tools' parameter."
        raise bad_value(text, "tool_choice")
    return Toolbox(tools=tools, choice=Choice(choice))


def _is_function(tool: object) -> bool:
    return not isinstance(tool, dict) or tool.get("type") == "function"


def _tool(i: int, tool: object) -> Tool:
    where = f"body.tools.{i}"
    if not isinstance(tool, dict):
        raise bad_shape("model_attributes_type", where, "Input should be a valid dictionary", tool)
    if not isinstance(tool.get("name"), str):
        raise bad_shape("missing", f"{where}.function.name", "Field required", tool)
    parameters = tool.get("parameters")
    return Tool(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        parameters=parameters if isinstance(parameters, dict) else {"type": "object"},
    )


def _told_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool as the response repeats it: every field of the schema, in its order."""
    if not _is_function(tool):
        return tool
    names = ("name", "parameters", "strict", "type", "allowed_callers", "async", "defer_loading")
    return {name: tool.get(name) for name in (*names, "description", "output_schema")}


def _structured(text: object) -> tuple[StructuredOutput | None, Mapping[str, Any] | None]:
    """What `text.format` demands, and how the response repeats `text`."""
    if text is None:
        return None, None
    wanted = text.get("format") if isinstance(text, dict) else None
    if not isinstance(text, dict) or not isinstance(wanted, dict | None):
        raise bad_shape("dict_type", "body.text", "Input should be a valid dictionary", text)
    told: dict[str, Any] = {"format": wanted, "verbosity": text.get("verbosity")}
    match (wanted or {}).get("type"):
        case "json_object":
            return StructuredOutput(), told
        case "json_schema" if wanted is not None:
            names = ("name", "schema", "type", "description", "strict")
            told["format"] = {name: wanted.get(name) for name in names}
            schema = wanted.get("schema")
            return StructuredOutput(schema if isinstance(schema, dict) else None), told
    return None, told


# --- input ----------------------------------------------------------------------------------------


def _messages(body: Body) -> list[dict[str, Any]]:
    """`instructions` and `input` as chat messages. Raises Refusal."""
    messages: list[dict[str, Any]] = []
    if isinstance(instructions := body.get("instructions"), str):
        messages.append({"role": "system", "content": instructions})
    given = body["input"]
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list):
        raise bad_shape("string_type", "body.input", "Input should be a valid string", given)
    for i, item in enumerate(given):
        messages += _message(i, item)
    return messages


def _message(i: int, item: object) -> list[dict[str, Any]]:
    """One item of `input`; none for reasoning, which templates leave out of earlier turns."""
    where = f"body.input.{i}"
    if not isinstance(item, dict):
        raise bad_shape("dict_type", where, "Input should be a valid dictionary", item)
    match item.get("type", "message"):
        case "message" if isinstance(item.get("role"), str):
            return [{"role": item["role"], "content": item.get("content")}]
        case "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            return [{"role": "assistant", "content": None, "tool_calls": [{"function": function}]}]
        case "function_call_output":
            return [{"role": "tool", "content": item.get("output")}]
        case "reasoning":
            return []
    raise bad_shape("missing", f"{where}.role", "Field required", item)
