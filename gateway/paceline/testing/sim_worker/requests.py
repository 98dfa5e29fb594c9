"""What a body of any generating endpoint comes to, and the checks that they share.

Unknown fields are ignored, as in vLLM. So are, here, the sampling parameters, apart from their
ranges: the text does not depend on them. `dialects` read the bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.sim.writer import Writing
from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.fields import Body, flag, integer, number
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import Prompt
from paceline.testing.sim_worker.refusals import Refusal, bad_shape, bad_value
from paceline.testing.sim_worker.tools import ToolCall

MAX_SEQUENCES = 256  # of one request: prompts times n
MAX_TOP_LOGPROBS = 20
_GREEDY = 1e-5  # temperatures below are greedy, which ignores min_p


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """One accepted body. `late_refusal` is what vLLM notices only after a stream has begun.

    `given` is what the model writes where that does not follow from the conversation alone: a tool
    call (which `tool_call` takes apart), structured output, a transcript. `pooled` requests are for
    vectors, not for text. `told` is what of the body the answer repeats or depends on, in the
    dialect's own terms.
    """

    prompts: tuple[Prompt, ...]
    n: int = 1
    max_tokens: int
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    keep_stop: bool = False
    ignore_eos: bool = False
    seed: int | None = None
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    return_token_ids: bool = False
    top_logprobs: int | None = None
    stream_interval: int = 1
    max_draft_tokens: int | None = None
    late_refusal: Refusal | None = None
    given: Writing | None = None
    tool_call: ToolCall | None = None
    pooled: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_sequences(self) -> int:
        return len(self.prompts) * self.n

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(prompt.tokens) for prompt in self.prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many tokens may be written: the field that says so, and its value or the default."""

    param: str
    max_tokens: int


def accepted(
    body: Body,
    options: SimWorkerOptions,
    prompts: Sequence[Prompt],
    limit: Limit,
    **own: Any,
) -> GenerateRequest:
    """The fields that all bodies share, checked in vLLM's order, and a dialect's `own`.

    `limit` is what `output_limit` says. Raises Refusal with vLLM's status and body.
    """
    longest = check_lengths(prompts, options)
    _check_sampling(body)
    n = _count(body, len(prompts))
    max_tokens = min(limit.max_tokens, options.max_model_len - longest)
    if max_tokens < 1:
        text = f"max_tokens must be at least 1, got {max_tokens}."
        raise bad_value(text, "max_tokens", max_tokens)
    return GenerateRequest(
        prompts=tuple(prompts),
        n=n,
        max_tokens=max_tokens,
        min_tokens=max(0, integer(body, "min_tokens") or 0),
        stop=_stop(body),
        keep_stop=flag(body, "include_stop_str_in_output"),
        ignore_eos=flag(body, "ignore_eos"),
        seed=integer(body, "seed"),
        return_token_ids=flag(body, "return_token_ids"),
        stream_interval=max(options.stream_interval, integer(body, "stream_interval") or 1),
        max_draft_tokens=_own_k(body) if options.per_request_k else None,
        late_refusal=_late_refusal(body, options),
        **own,
    )


# --- checks ---------------------------------------------------------------------------------------


def check_model(body: Body, options: SimWorkerOptions) -> None:
    asked = body.get("model")
    if asked is None or asked == "":
        return
    if not isinstance(asked, str):
        raise bad_shape("string_type", "body.model", "Input should be a valid string", asked)
    if asked != options.model:
        raise refusals.unknown_model(asked, options.model)


def check_lengths(prompts: Sequence[Prompt], options: SimWorkerOptions) -> int:
    """The longest prompt's tokens. Raises Refusal if they are too many."""
    longest = max(prompts, key=lambda prompt: len(prompt.tokens))
    length, limit = len(longest.tokens), options.max_model_len
    if length > limit:
        counted = longest.given_ids is not None
        raise refusals.prompt_too_long(length, limit, counted_whole=counted)
    return length


def output_limit(body: Body, options: SimWorkerOptions, param: str, default: int) -> Limit:
    """The value of `param`, or the default. Raises Refusal where no model is that long."""
    value = integer(body, param)
    if value is None:
        return Limit(param=param, max_tokens=default)
    if value > options.max_model_len:
        raise refusals.too_many_output_tokens(param, value, options.max_model_len)
    return Limit(param=param, max_tokens=value)


def _check_sampling(body: Body) -> None:
    temperature = number(body, "temperature", 1.0)
    if temperature < 0:
        text = f"temperature must be non-negative, got {temperature}."
        raise bad_value(text, "temperature", temperature)
    if temperature > 2:
        text = f"temperature must be in [0, 2], got {temperature}."
        raise bad_value(text, "temperature", temperature)
    top_p = number(body, "top_p", 1.0)
    if not 0 < top_p <= 1:
        raise bad_value(f"top_p must be in (0, 1], got {top_p}.", "top_p", top_p)
    if not 0 <= (min_p := number(body, "min_p", 0.0)) <= 1:
        raise bad_value(f"min_p must be in [0, 1], got {min_p}.")


def _count(body: Body, num_prompts: int) -> int:
    given = integer(body, "n")
    n = 1 if given is None else given
    if n < 1:
        raise bad_value(f"n must be at least 1, got {n}.")
    if n > 1 and number(body, "temperature", 1.0) < _GREEDY:
        raise bad_value(f"n must be 1 when using greedy sampling, got {n}.")
    if n * num_prompts > MAX_SEQUENCES:
        raise bad_value(f"n must be at most {MAX_SEQUENCES // num_prompts}, got {n}.")
    return n


def _late_refusal(body: Body, options: SimWorkerOptions) -> Refusal | None:
    greedy = number(body, "temperature", 1.0) < _GREEDY
    min_p = number(body, "min_p", 0.0) > _GREEDY and not greedy
    if options.speculation is not None and (min_p or body.get("logit_bias")):
        return refusals.not_with_speculation()
    return None


# --- fields ---------------------------------------------------------------------------------------


def stream_options(body: Body, stream: bool) -> Body:
    """Raises Refusal for options of a stream that there is not."""
    given = body.get("stream_options")
    if not given:
        return {}
    if not stream:
        text = "Stream options can only be defined when `stream=True`."
        raise bad_value(text, "stream_options")
    if not isinstance(given, dict):
        text = "Input should be a valid dictionary"
        raise bad_shape("dict_type", "body.stream_options", text, given)
    return given


def _own_k(body: Body) -> int | None:
    """`vllm_xargs.paceline_k`; anything but a whole number from 0 is no wish, as in our scheduler
    class, which must not fail a pass over one request."""
    given = body.get("vllm_xargs")
    k = given.get("paceline_k") if isinstance(given, dict) else None
    return k if isinstance(k, int) and not isinstance(k, bool) and k >= 0 else None


def _stop(body: Body) -> tuple[str, ...]:
    stop = body.get("stop") or ()
    strings = (stop,) if isinstance(stop, str) else stop
    if not isinstance(strings, (list, tuple)) or not all(isinstance(s, str) for s in strings):
        raise bad_shape("string_type", "body.stop", "Input should be a valid string", stop)
    if not all(strings):
        raise bad_value("stop cannot contain an empty string.")
    return tuple(strings)


def listed_alternatives(top: int | None, param: str) -> int | None:
    """How many alternatives to list with each token, if vLLM lists that many. Raises Refusal."""
    if top is not None and not 0 <= top <= MAX_TOP_LOGPROBS:
        text = (
            f"Requested sample logprobs of {top}, which is greater than max allowed: "
            f"{MAX_TOP_LOGPROBS}"
        )
        raise bad_value(text, param, top)
    return top
