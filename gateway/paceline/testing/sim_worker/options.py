"""What a simulated worker can be told, checked before its port opens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core.cost import PassCosts
from paceline.core.lookup import lookup_sizes
from paceline.core.suffix import SuffixRules
from paceline.core.types import Speculation
from paceline.sim.cost import pass_costs
from paceline.sim.drafter import METHODS
from paceline.sim.engine import KV_CACHE_TOKENS
from paceline.sim.hardware import HARDWARE, MODELS, kv_cache_tokens
from paceline.sim.schedule import BatchSizeSchedule

_SCHEDULE = "num_speculative_tokens_per_batch_size"
_SUFFIX_KEYS = frozenset(
    f"suffix_decoding_{key}"
    for key in ("max_tree_depth", "max_cached_requests", "max_spec_factor", "min_token_prob")
)
_LOOKUP_KEYS = frozenset({"prompt_lookup_min", "prompt_lookup_max"})
# Keys of vLLM's that say how a drafter is run and nothing about what it drafts.
_INERT_KEYS = frozenset(
    {"model", "revision", "code_revision", "quantization", "draft_tensor_parallel_size"}
    | {"draft_load_config", "max_model_len", "enforce_eager", "attention_backend"}
    | {"moe_backend", "kv_cache_dtype"}
)
_KEYS = (
    frozenset({"method", "num_speculative_tokens", _SCHEDULE})
    | _LOOKUP_KEYS
    | _SUFFIX_KEYS
    | _INERT_KEYS
)
SUFFIX_TOKENS = 24  # vLLM's default for suffix decoding: the depth of its tree
MAX_SPECULATIVE_TOKENS = 64
MAX_MODEL_LEN = 131_072  # of Llama 3.1, unless the KV cache is too small for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SimWorkerOptions:
    """Raises ValueError for values that no worker could run with.

    Passes take what `sim.cost` says of `model_profile` on `tensor_parallel` of `hardware`; without
    hardware, `step_s` and 21 µs a token. `time_scale` 10 runs ten times as fast. `engines` are data
    parallel ranks. `per_request_k` honours `vllm_xargs.paceline_k`, as a worker with our scheduler
    class does. `max_num_queued_reqs` bounds waiting and running together, `max_num_queued_tokens`
    prompt tokens not yet computed, as vLLM's flags do; None is no bound.
    """

    model: str = "smollm2"
    speculation: Speculation | None = None
    step_s: float = 0.012
    hardware: str | None = None
    model_profile: str = "llama-3.1-8b"
    tensor_parallel: int = 1
    time_scale: float = 1.0
    engines: int = 1
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int = MAX_MODEL_LEN
    kv_tokens: int | None = None
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    per_request_k: bool = False
    stream_interval: int = 1
    api_key: str | None = None
    seed: int = 0
    per_request_spec_decode_metrics: bool = True
    per_request_metrics: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.step_s < 3600:
            raise ValueError(f"a step must take between 0 and 3600 s, not {self.step_s}")
        if self.max_num_seqs < 1 or self.max_model_len < 2:
            raise ValueError("max_num_seqs must be at least 1 and max_model_len at least 2")
        if min(self.max_num_queued_reqs or 0, self.max_num_queued_tokens or 0) < 0:
            raise ValueError("max_num_queued_reqs and max_num_queued_tokens must not be negative")
        if not 0 < self.time_scale <= 1000 or not 1 <= self.engines <= 64:
            raise ValueError("time_scale must be in (0, 1000], engines 1 to 64")
        if self.max_num_batched_tokens < 1 or self.stream_interval < 1:
            raise ValueError("max_num_batched_tokens and stream_interval must be at least 1")
        self._check_profile()
        if self.kv_cache_tokens < self.max_model_len + self.num_speculative_tokens:
            raise ValueError(
                f"a KV cache of {self.kv_cache_tokens} tokens cannot hold one sequence of "
                f"max_model_len {self.max_model_len}; lower it"
            )
        if not self.model:
            raise ValueError("the model needs a name")

    @classmethod
    def fitting(cls, *, max_model_len: int | None, **options: Any) -> SimWorkerOptions:
        """With the length given, or the longest up to the default that the KV cache can hold."""
        if max_model_len is None:
            least = cls(max_model_len=2, **options)
            room = least.kv_cache_tokens - least.num_speculative_tokens
            max_model_len = min(MAX_MODEL_LEN, room)
        return cls(max_model_len=max_model_len, **options)

    def _check_profile(self) -> None:
        if self.hardware is not None and self.hardware not in HARDWARE:
            raise ValueError(f"hardware must be one of {', '.join(HARDWARE)}")
        if self.model_profile not in MODELS:
            raise ValueError(f"model_profile must be one of {', '.join(MODELS)}")

    @property
    def costs(self) -> PassCosts:
        """Seconds of a pass."""
        if self.hardware is None:
            return PassCosts(host_s=self.step_s, weights_s=0.0)
        return pass_costs(
            HARDWARE[self.hardware],
            MODELS[self.model_profile],
            method=self.speculation.method if self.speculation else None,
            tensor_parallel=self.tensor_parallel,
        )

    @property
    def kv_cache_tokens(self) -> int:
        """Of one engine."""
        if self.kv_tokens is not None:
            return self.kv_tokens
        if self.hardware is None:
            return KV_CACHE_TOKENS
        model = MODELS[self.model_profile]
        return kv_cache_tokens(HARDWARE[self.hardware], model, tensor_parallel=self.tensor_parallel)

    @property
    def schedule(self) -> BatchSizeSchedule | None:
        """The batch-size schedule, where vLLM keeps to it: it drops the schedule of suffix decoding
        and of data parallel engines, and drafts `num_speculative_tokens` always."""
        if self.speculation is None or self.engines > 1 or self.speculation.method == "suffix":
            return None
        ranges = self.speculation.options.get(_SCHEDULE)
        return None if ranges is None else BatchSizeSchedule.of(ranges, self.num_speculative_tokens)

    @property
    def pads_lookups(self) -> bool:
        return self.hardware is not None and HARDWARE[self.hardware].pads_lookups

    @property
    def num_speculative_tokens(self) -> int:
        return self.speculation.num_speculative_tokens if self.speculation else 0

    @property
    def reports_spec_decode(self) -> bool:
        """Whether answers carry `metrics.speculative_decoding`."""
        return self.per_request_spec_decode_metrics and self.speculation is not None


def parse_speculation(text: str) -> Speculation | None:
    """vLLM's `--speculative-config` JSON, or `none`.

    Raises ValueError naming what is wrong: a key that is not simulated is refused, not ignored.
    """
    if text.strip().lower() in ("none", "null", ""):
        return None
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError('must be an object such as {"method": "ngram", …}, or none')
    if unknown := sorted(config.keys() - _KEYS):
        raise ValueError(
            f"{', '.join(unknown)}: not simulated; known are {', '.join(sorted(_KEYS))}"
        )
    return _speculation(config)


def _speculation(config: Mapping[str, object]) -> Speculation:
    method, number = config.get("method"), config.get("num_speculative_tokens")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if method == "suffix" and number is None:
        number = SUFFIX_TOKENS
    if not isinstance(number, int) or not 1 <= number <= MAX_SPECULATIVE_TOKENS:
        raise ValueError(
            f"num_speculative_tokens must be 1 to {MAX_SPECULATIVE_TOKENS}: {number!r}"
        )
    options = {key: config[key] for key in config.keys() - {"method", "num_speculative_tokens"}}
    if method == "ngram":
        lookup_sizes(options)
    elif method == "suffix":
        SuffixRules.of(number, options)
    if (ranges := options.get(_SCHEDULE)) is not None:
        try:
            BatchSizeSchedule.of(ranges, number)
        except ValueError as problem:
            raise ValueError(f"{_SCHEDULE}: {problem}") from None
    return Speculation(method=str(method), num_speculative_tokens=number, options=options)
