"""A pool's `speculation`: vLLM's `--speculative-config` in vLLM's own names and types.

Follows vLLM 0.33 (`vllm/config/speculative.py`), and is stricter because the gateway must know what
a pool does: `method` is written out, where vLLM may infer it from the checkpoint; so is
`num_speculative_tokens`, but for `suffix`, whose default is its tree's depth; a key that vLLM would
take and not use is refused, and so is `synthetic` rejection sampling, which changes the text.

Not checked here, since only the checkpoints can tell: vocabularies, `n_predict`, memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from paceline.core.types import Speculation
from paceline.settings.fields import NotOffered, Section, must, one_of, refused
from paceline.settings.problems import WRITE_NULL

LOOKUP = frozenset({"ngram", "ngram_gpu"})
WITH_DRAFT = frozenset({"draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark"})
METHODS = (
    "ngram", "ngram_gpu", "suffix", "draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark",
    "custom_class",
)  # fmt: skip

SUFFIX_TREE_DEPTH = 24
"""vLLM's default of `suffix_decoding_max_tree_depth`, and so of suffix's token count."""

_REFUSED_METHODS = {
    "medusa": "medusa was removed in vLLM 0.33; eagle3 and mtp are its successors",
    "mlp_speculator": "mlp_speculator was removed in vLLM 0.33; eagle3 and mtp are its successors",
    "extract_hidden_states": "extract_hidden_states extracts data and drafts nothing",
    "[ngram]": 'write "ngram"',
}

_SCHEDULE_INSTEAD = (
    "removed in vLLM 0.17; use num_speculative_tokens_per_batch_size with 0 tokens above that "
    "batch size, such as [[1, 31, 5], [32, 512, 0]], or send such requests to a plain pool"
)
_NOTHING_INSTEAD = "removed from vLLM; nothing replaces it, leave it out"
_REJECTION_INSTEAD = "removed from vLLM; use rejection_sample_method: standard, block or fly"

REMOVED_KEYS: Mapping[str, str] = {
    "disable_by_batch_size": _SCHEDULE_INSTEAD,
    "speculative_disable_by_batch_size": _SCHEDULE_INSTEAD,
    "acceptance_method": _REJECTION_INSTEAD,
    "spec_decoding_acceptance_method": _REJECTION_INSTEAD,
    "posterior_threshold": _REJECTION_INSTEAD,
    "posterior_alpha": _REJECTION_INSTEAD,
    "disable_logprobs": _NOTHING_INSTEAD,
    "disable_mqa_scorer": _NOTHING_INSTEAD,
    "speculative_token_tree": _NOTHING_INSTEAD,
    "speculative_model": "removed from vLLM; use model",
    "ngram_prompt_lookup_min": "removed from vLLM; use prompt_lookup_min",
    "ngram_prompt_lookup_max": "removed from vLLM; use prompt_lookup_max",
    "adaptive_verification": "vLLM's key is enable_adaptive_verification",
    "synthetic_acceptance_rate": (
        "vLLM's key is synthetic_acceptance_rates, but synthetic acceptance is for benchmarks, "
        "not for serving"
    ),
}
"""Keys of older vLLM versions and of its documentation, each with what replaced it."""


def says_none(value: Any) -> bool:
    """Whether `value` looks like someone's word for no speculation."""
    words = ("none", "off", "no", "false", "disabled", "plain")
    return value is False or (isinstance(value, str) and value.lower() in words)


def null_or_section(value: Any) -> Any:
    """For a pool's `speculation`, ahead of its section."""
    if says_none(value):
        raise must(WRITE_NULL)
    return value


def _method(value: Any) -> Any:
    if value is None or says_none(value):
        raise refused("needs a method; write speculation: null for a pool that does not speculate")
    if not isinstance(value, str):
        return value
    if value in _REFUSED_METHODS:
        raise refused(_REFUSED_METHODS[value])
    if value.endswith("_mtp"):
        raise refused('the names of models\' own MTP are deprecated in vLLM; write "mtp"')
    return value


def _rejection(value: Any) -> Any:
    if value == "synthetic":
        raise refused("synthetic accepts drafts by chance, which changes the text; not for serving")
    if value in ("strict", "probabilistic"):
        raise refused(f'{value} was renamed in vLLM 0.21; write "standard"')
    return value


def _not_for_serving(value: Any) -> Any:
    raise refused("synthetic acceptance is for benchmarks, not for serving")


def _trap(value: Any) -> Any:
    raise refused("vLLM refuses it here; use draft_tensor_parallel_size")


Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
NotServed = Annotated[None, NotOffered(_not_for_serving)]


class SpeculationSection(Section):
    """Every key vLLM has, with its type and range. None is vLLM's own default."""

    method: Annotated[str, one_of("method", METHODS), BeforeValidator(_method)]
    model: str | None = None
    num_speculative_tokens: Count | None = None
    num_speculative_tokens_per_batch_size: Any = None  # `schedule` reads it
    prompt_lookup_min: Count | None = None
    prompt_lookup_max: Count | None = None
    suffix_decoding_max_tree_depth: Count | None = None
    suffix_decoding_max_cached_requests: CountOrZero | None = None
    suffix_decoding_max_spec_factor: Annotated[float, Field(ge=0)] | None = None
    suffix_decoding_min_token_prob: Annotated[float, Field(ge=0, le=1)] | None = None
    draft_tensor_parallel_size: Count | None = None
    tensor_parallel_size: Annotated[None, NotOffered(_trap)] = None
    quantization: str | None = None
    moe_backend: str | None = None
    attention_backend: str | None = None
    kv_cache_dtype: str | None = None
    draft_load_config: dict[str, Any] | None = None
    revision: str | None = None
    code_revision: str | None = None
    max_model_len: Count | None = None
    enforce_eager: bool | None = None
    parallel_drafting: bool = False
    use_heterogeneous_vocab: bool = False
    use_local_argmax_reduction: bool = False
    disable_padded_drafter_batch: bool = False
    disable_eagle_block_drop: bool = False
    disable_lookahead_block_hashes: bool = False
    draft_lm_head_quantization: (
        Annotated[str, one_of("draft_lm_head_quantization", ["fp8", "nvfp4"])] | None
    ) = None
    index_share_for_mtp_iteration: bool | None = None
    dspark_draft_topk: Count | None = None
    xpress_topc: Count | None = None
    draft_sample_method: Annotated[
        str, one_of("draft_sample_method", ["greedy", "probabilistic"])
    ] = "greedy"
    rejection_sample_method: Annotated[
        str,
        one_of("rejection_sample_method", ["standard", "block", "fly"]),
        BeforeValidator(_rejection),
    ] = "standard"
    synthetic_acceptance_rates: NotServed = None
    synthetic_acceptance_length: NotServed = None
    enable_adaptive_verification: bool = False
    fly_window_size: Count | None = None
    fly_entropy_threshold: Annotated[float, Field(ge=0)] | None = None
    fly_entropy_top_k: Count | None = None


def speculation(section: SpeculationSection) -> Speculation:
    """The core's value; `options` holds what the file wrote, and none of vLLM's defaults."""
    written = section.model_dump(exclude_unset=True, exclude_none=True)
    method, tokens = written.pop("method"), written.pop("num_speculative_tokens", None)
    if tokens is None:
        tokens = written.get("suffix_decoding_max_tree_depth", SUFFIX_TREE_DEPTH)
    return Speculation(method=method, num_speculative_tokens=tokens, options=written)
