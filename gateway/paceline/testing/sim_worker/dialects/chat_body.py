"""`/v1/chat/completions`: its body, tools and response format included."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.testing.sim_worker.fields import Body, flag, integer, require
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
    stream_options,
)
from paceline.testing.sim_worker.tools import Choice, Tool, Toolbox

_NAMED = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`'


def read_chat(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """Raises Refusal with vLLM's status and body."""
    stream = flag(body, "stream")
    streaming = stream_options(body, stream)
    require(body, "messages")
    toolbox = _toolbox(body)
    output = _structured(body.get("response_format"))
    prompt = chat_prompt(body["messages"], toolbox.tools)
    check_model(body, options)
    newer = body.get("max_completion_tokens") is not None
    param = "max_completion_tokens" if newer else "max_tokens"
    usage = bool(streaming.get("include_usage"))
    return accepted(
        body,
        options,
        (prompt,),
        output_limit(body, options, param, options.max_model_len),
        stream=stream,
        include_usage=usage,
        continuous_usage=usage and bool(streaming.get("continuous_usage_stats")),
        top_logprobs=_top_logprobs(body),
        **plan(prompt, toolbox, output),
    )


def _top_logprobs(body: Body) -> int | None:
    top = (integer(body, "top_logprobs") or 0) if flag(body, "logprobs") else None
    return listed_alternatives(top, "top_logprobs")


# --- tools ----------------------------------------------------------------------------------------


def _toolbox(body: Body) -> Toolbox:
    given, choice = body.get("tools"), body.get("tool_choice")
    if given == []:
        text = (
            "`tools` must not be an empty array. Either provide at least one tool or omit the "
            "field entirely."
        )
        raise bad_value(text, "tools")
    if choice is not None and choice != "none" and given is None:
        raise bad_value("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if not isinstance(given, list | None):
        raise bad_shape("list_type", "body.tools", "Input should be a valid list", given)
    tools = tuple(_tool(i, tool) for i, tool in enumerate(given or ()))
    if choice is None:
        return Toolbox(tools=tools, choice=Choice.AUTO)
    if isinstance(choice, dict):
        return Toolbox(tools=tools, choice=Choice.NAMED, name=_named(choice, tools))
    if choice not in (Choice.NONE, Choice.AUTO, Choice.REQUIRED):
        text = (
            f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or '
            '"required" are supported.'
        )
        raise bad_value(text, "tool_choice")
    return Toolbox(tools=tools, choice=Choice(choice))


def _tool(i: int, tool: object) -> Tool:
    where = f"body.tools.{i}"
    if not isinstance(tool, dict):
        raise bad_shape("model_attributes_type", where, "Input should be a valid dictionary", tool)
    function = tool.get("function")
    if not isinstance(function, dict):
        raise bad_shape("missing", f"{where}.function", "Field required", tool)
    if not isinstance(function.get("name"), str):
        raise bad_shape("missing", f"{where}.function.name", "Field required", function)
    parameters = function.get("parameters")
    return Tool(
        name=function["name"],
        description=str(function.get("description") or ""),
        parameters=parameters if isinstance(parameters, dict) else {"type": "object"},
    )


def _named(choice: Mapping[str, object], tools: tuple[Tool, ...]) -> str:
    function = choice.get("function")
    if not isinstance(function, dict):
        text = f"Invalid value for `function`: `{function}` in `tool_choice`! {_NAMED}"
        raise bad_value(text, "tool_choice.function")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        text = f"Invalid `name` in `function`: `{name}` in `tool_choice`! {_NAMED}"
        raise bad_value(text, "tool_choice.function.name")
    if name not in {tool.name for tool in tools}:
        text = "The tool specified in `tool_choice` does not match any of the specified `tools`"
        raise bad_value(text, "tool_choice")
    return name


# --- response format ------------------------------------------------------------------------------


def _structured(given: object) -> StructuredOutput | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        text = "Input should be a valid dictionary"
        raise bad_shape("dict_type", "body.response_format", text, given)
    match given.get("type"):
        case "text":
            return None
        case "json_object":
            return StructuredOutput()
        case "json_schema":
            described = given.get("json_schema")
            if not isinstance(described, dict):
                text = (
                    "When response_format type is 'json_schema', the 'json_schema' field must be "
                    "provided."
                )
                raise bad_value(text, "response_format")
            schema = described.get("schema")
            return StructuredOutput(schema if isinstance(schema, dict) else None)
    expected = "'text', 'json_object' or 'json_schema'"
    context = {"ctx": {"expected": expected}}
    text = f"Input should be {expected}"
    raise bad_shape("literal_error", "body.response_format.type", text, given, **context)
