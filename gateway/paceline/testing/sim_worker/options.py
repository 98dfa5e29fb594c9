"""What a simulated worker can be told, checked before its port opens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.core.types import Speculation
from paceline.sim.drafter import HEADS, lookup_sizes

_LOOKUP_KEYS = frozenset({"prompt_lookup_min", "prompt_lookup_max"})
# Keys of vLLM's that say how a drafter is run and nothing about what it drafts.
_INERT_KEYS = frozenset(
    {"model", "revision", "code_revision", "quantization", "draft_tensor_parallel_size"}
    | {"draft_load_config", "max_model_len", "enforce_eager", "attention_backend"}
    | {"moe_backend", "kv_cache_dtype"}
)
_KEYS = frozenset({"method", "num_speculative_tokens"}) | _LOOKUP_KEYS | _INERT_KEYS
MAX_SPECULATIVE_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SimWorkerOptions:
    """Raises ValueError for values that no worker could run with.

    `step_s` is the fixed part of a pass; `max_num_queued_reqs` bounds waiting and running together,
    as vLLM's flag of that name does, and None is no bound.
    """

    model: str = "smollm2"
    speculation: Speculation | None = None
    step_s: float = 0.012
    max_num_seqs: int = 256
    max_model_len: int = 131072
    max_num_queued_reqs: int | None = None
    api_key: str | None = None
    seed: int = 0
    per_request_spec_decode_metrics: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.step_s < 3600:
            raise ValueError(f"a step must take between 0 and 3600 s, not {self.step_s}")
        if self.max_num_seqs < 1 or self.max_model_len < 2:
            raise ValueError("max_num_seqs must be at least 1 and max_model_len at least 2")
        if self.max_num_queued_reqs is not None and self.max_num_queued_reqs < 0:
            raise ValueError("max_num_queued_reqs must not be negative")
        if not self.model:
            raise ValueError("the model needs a name")

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
    if method not in ("ngram", *HEADS):
        raise ValueError(f"method must be one of ngram, {', '.join(HEADS)}, not {method!r}")
    if not isinstance(number, int) or not 1 <= number <= MAX_SPECULATIVE_TOKENS:
        raise ValueError(
            f"num_speculative_tokens must be 1 to {MAX_SPECULATIVE_TOKENS}: {number!r}"
        )
    options = {key: config[key] for key in config.keys() - {"method", "num_speculative_tokens"}}
    if method == "ngram":
        lookup_sizes(options)
    return Speculation(method=str(method), num_speculative_tokens=number, options=options)
