"""`/v1/completions`: its body."""

from __future__ import annotations

from paceline.testing.sim_worker.fields import Body, flag, integer, require
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import text_prompts
from paceline.testing.sim_worker.requests import (
    GenerateRequest,
    accepted,
    check_model,
    listed_alternatives,
    output_limit,
    stream_options,
)

DEFAULT_TOKENS = 16  # vLLM's default for this endpoint


def read_completions(body: Body, options: SimWorkerOptions) -> GenerateRequest:
    """Raises Refusal with vLLM's status and body."""
    stream = flag(body, "stream")
    streaming = stream_options(body, stream)
    require(body, "prompt")
    prompts = text_prompts(body["prompt"])
    check_model(body, options)
    usage = bool(streaming.get("include_usage"))
    return accepted(
        body,
        options,
        prompts,
        output_limit(body, options, "max_tokens", DEFAULT_TOKENS),
        stream=stream,
        include_usage=usage,
        continuous_usage=usage and bool(streaming.get("continuous_usage_stats")),
        top_logprobs=listed_alternatives(integer(body, "logprobs"), "logprobs"),
    )
