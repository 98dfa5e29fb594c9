"""Tools that a request offers, and the call that the simulated model makes of them.

It calls a tool where `tool_choice` forces it, and with `auto` where the last message of the user
says to "use" or "call" one by its name. The call is written in the markup of Hermes and Qwen
models, `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, and taken apart on the way out as
vLLM's parser for them does (`--tool-call-parser hermes`, vllm/tool_parsers/hermes_tool_parser.py):
first the name, then the arguments as they come.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from paceline.core.types import Turn
from paceline.sim.json_values import fitting_value


class Choice(StrEnum):
    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function on offer; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """All tools of a request, and whether one must be called; `name` is the one that is named."""

    tools: tuple[Tool, ...] = ()
    choice: Choice = Choice.NONE
    name: str | None = None

    def call(self, turns: Sequence[Turn]) -> ToolCall | None:
        """What is called in answer to a conversation, if anything."""
        tool = self._called(turns)
        if tool is None:
            return None
        value = fitting_value({"type": "object", **tool.parameters})
        arguments = json.dumps(value, ensure_ascii=False)
        return ToolCall(tool.name, arguments, named=self.choice is Choice.NAMED)

    def _called(self, turns: Sequence[Turn]) -> Tool | None:
        if not self.tools:
            return None
        match self.choice:
            case Choice.NAMED:
                return next(tool for tool in self.tools if tool.name == self.name)
            case Choice.REQUIRED:
                return self._asked_for(turns) or self.tools[0]
            case Choice.AUTO if turns and turns[-1].role == "user":
                return self._asked_for(turns)
        return None

    def _asked_for(self, turns: Sequence[Turn]) -> Tool | None:
        """The tool that the last message of the user says to use or to call."""
        said = next((turn.text for turn in reversed(turns) if turn.role == "user"), "")
        for tool in self.tools:
            if re.search(rf"\b(?:use|call)\b[^.\n]{{0,80}}\b{re.escape(tool.name)}\b", said, re.I):
                return tool
        return None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call; `arguments` are JSON. `named` if the request named the tool."""

    name: str
    arguments: str
    named: bool = False

    @property
    def markup(self) -> str:
        """What the model writes."""
        return f"{self._before}{self.arguments}}}\n</tool_call>"

    @property
    def _before(self) -> str:
        return f'{self._opening}, "arguments": '

    @property
    def _opening(self) -> str:
        return f'<tool_call>\n{{"name": {json.dumps(self.name, ensure_ascii=False)}'

    def names_within(self, offset: int, text: str) -> bool:
        """Whether the name ends within `text`, a part of the markup that begins at `offset`."""
        end = len(self._opening)
        return offset < end <= offset + len(text)

    def arguments_within(self, offset: int, text: str) -> str:
        """What of the arguments stands in `text`, a part of the markup that begins at `offset`."""
        start = len(self._before)
        low, high = max(start, offset), min(start + len(self.arguments), offset + len(text))
        return text[low - offset : max(low, high) - offset]

    def is_whole(self, text: str) -> bool:
        """Whether the parser can read the call in what was written of it."""
        return text.startswith(f"{self._before}{self.arguments}}}")


def markup_of(calls: object) -> Iterator[str]:
    """The earlier `tool_calls` of a message, in the model's own markup."""
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield ToolCall(str(function.get("name")), str(function.get("arguments"))).markup
