"""What the model writes where the conversation alone does not say: calls, JSON, tool results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core.types import Workload
from paceline.sim.json_values import fitting_value
from paceline.sim.writer import Writing
from paceline.testing.sim_worker.prompts import Prompt
from paceline.testing.sim_worker.tools import Toolbox

MAX_RESULT_CHARS = 2000  # of a tool's result that an answer repeats


@dataclass(frozen=True, slots=True)
class StructuredOutput:
    """The answer must be JSON; without a schema any object will do."""

    schema: Mapping[str, Any] | None = None


def plan(prompt: Prompt, toolbox: Toolbox, output: StructuredOutput | None) -> dict[str, Any]:
    """`given` and `tool_call` of the request.

    A tool that must be called comes before structured output. What a tool has returned is repeated
    in the answer, so that a client can see that it arrived.
    """
    call = toolbox.call(prompt.turns)
    if call is not None:
        return {"given": _writing(call.markup), "tool_call": call}
    if output is not None:
        text = json.dumps(fitting_value(output.schema), ensure_ascii=False)
        return {"given": _writing(text)}
    last = prompt.turns[-1]
    if last.role == "tool":
        text = f"This is what the tool found: {last.text[:MAX_RESULT_CHARS]}"
        return {"given": Writing(workload=Workload.EDIT, text=text)}
    return {}


def _writing(text: str) -> Writing:
    return Writing(workload=Workload.CODE, text=text)
