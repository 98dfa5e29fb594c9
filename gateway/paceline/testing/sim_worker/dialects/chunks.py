"""What the dialects made of OpenAI's chunks share: `data:` events, usage, metrics, `[DONE]`.

An event is put together from bytes that are the same for the whole request and the JSON of what is
new, since a worker may have to send many thousands a second.
"""

from __future__ import annotations

from typing import Any

import orjson

from paceline.sim.counters import SpecCounts
from paceline.testing.sim_worker.times import NAMES
from paceline.testing.sim_worker.writers import Ending, Envelope

DONE = b"data: [DONE]\n\n"


class Chunks:
    """The events of one stream of chunks; `kind` is their `object`."""

    def __init__(self, envelope: Envelope, kind: str) -> None:
        self.request = envelope.request
        head: dict[str, Any] = {"id": envelope.id, "object": kind}
        head |= {"created": envelope.created, "model": envelope.model}
        self.open = b"data: " + orjson.dumps(head)[:-1] + b',"choices":['
        self._fingerprint = b',"system_fingerprint":' + orjson.dumps(envelope.fingerprint)

    def chunk(self, choice: bytes, completion_tokens: int, *, last: bool) -> bytes:
        """One choice's event; `last` if it says how the choice ended."""
        # The fingerprint rides on the usage event, or on the finish where there will be none.
        rides = last and not self.request.include_usage
        usage = self.usage_so_far(completion_tokens)
        return b"".join((self.open, choice, b"]", usage, self._fingerprint * rides, b"}\n\n"))

    def usage_so_far(self, completion_tokens: int) -> bytes:
        if not self.request.continuous_usage:
            return b""
        usage = usage_of(self.request.num_prompt_tokens, completion_tokens)
        return b',"usage":' + orjson.dumps({**usage, "completion_tokens_details": None})

    def closing(self, ending: Ending) -> bytes:
        """The usage, if it was asked for, then `[DONE]`."""
        return (self._usage(ending) if self.request.include_usage else b"") + DONE

    def _usage(self, ending: Ending) -> bytes:
        """No choices, the usage, what was drafted, what it took."""
        usage = usage_of(self.request.num_prompt_tokens, ending.completion_tokens)
        told: dict[str, Any] = ending.times.as_json() if ending.times else {}
        if ending.spec is not None:
            told["speculative_decoding"] = _spec(ending.spec)
        metrics = b',"metrics":' + orjson.dumps(told) if told else b""
        return b"".join(
            (self.open, b'],"usage":', orjson.dumps(usage), self._fingerprint, metrics, b"}\n\n")
        )


def usage_of(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def whole_usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """The usage of an answer that is not streamed, with the details that vLLM leaves null."""
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    return usage_of(prompt_tokens, completion_tokens) | details


def whole_metrics(ending: Ending) -> dict[str, Any] | None:
    """`metrics` of an answer that is not streamed."""
    if ending.spec is None and ending.times is None:
        return None
    told = ending.times.as_json() if ending.times else dict.fromkeys(NAMES)
    return {**told, "speculative_decoding": _detailed(ending.spec) if ending.spec else None}


def _spec(spec: SpecCounts) -> dict[str, Any]:
    return {
        "mean_acceptance_length": spec.mean_acceptance_length,
        "draft_acceptance_rate": spec.acceptance_rate,
        "acceptance_histogram": spec.by_accepted,
        "num_spec_steps": spec.drafts,
        "num_accepted_draft_tokens": spec.accepted,
        "num_draft_tokens": spec.draft_tokens,
        "num_spec_tokens": len(spec.by_accepted) - 1,
    }


def _detailed(spec: SpecCounts) -> dict[str, Any]:
    return {**_spec(spec), "per_step_accepted": None, "per_step_drafted": None}
