"""What the keys of one `speculation` must have in common, by vLLM's rules (`speculation` has the
keys one by one)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.settings.fields import offered
from paceline.settings.problems import Path, Problems, nearest
from paceline.settings.schedule import schedule_problems
from paceline.settings.speculation import LOOKUP, METHODS, WITH_DRAFT, SpeculationSection

Fault = tuple[str, str]  # a key, and what is wrong with it

_NEEDS_MODEL = frozenset({"draft_model", "eagle", "eagle3", "dflash", "custom_class"})
_DRAFT_SIDE = WITH_DRAFT | {"custom_class"}
_METHODS_OF_KEY: Mapping[str, frozenset[str]] = {
    "prompt_lookup_min": LOOKUP,
    "prompt_lookup_max": LOOKUP,
    "suffix_decoding_max_tree_depth": frozenset({"suffix"}),
    "suffix_decoding_max_cached_requests": frozenset({"suffix"}),
    "suffix_decoding_max_spec_factor": frozenset({"suffix"}),
    "suffix_decoding_min_token_prob": frozenset({"suffix"}),
    "num_speculative_tokens_per_batch_size": LOOKUP | WITH_DRAFT,
    "use_heterogeneous_vocab": frozenset({"draft_model"}),
    "parallel_drafting": frozenset({"draft_model", "eagle", "eagle3", "dflash", "dspark"}),
    "draft_lm_head_quantization": frozenset({"eagle", "eagle3", "mtp"}),
    "index_share_for_mtp_iteration": frozenset({"mtp"}),
    "dspark_draft_topk": frozenset({"dspark"}),
    "xpress_topc": frozenset({"dflash"}),
    "enable_adaptive_verification": WITH_DRAFT,
    "draft_sample_method": _DRAFT_SIDE,
    "draft_tensor_parallel_size": _DRAFT_SIDE,
    "quantization": _DRAFT_SIDE,
    "moe_backend": _DRAFT_SIDE,
    "attention_backend": _DRAFT_SIDE,
    "kv_cache_dtype": _DRAFT_SIDE,
    "draft_load_config": _DRAFT_SIDE,
    "revision": _DRAFT_SIDE,
    "code_revision": _DRAFT_SIDE,
    "max_model_len": _DRAFT_SIDE,
    "use_local_argmax_reduction": _DRAFT_SIDE,
    "disable_padded_drafter_batch": _DRAFT_SIDE,
    "disable_eagle_block_drop": _DRAFT_SIDE,
    "disable_lookahead_block_hashes": _DRAFT_SIDE,
}
"""Keys that vLLM takes with any method and uses with these alone."""

_DOTTED_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\Z", re.ASCII)


def check_speculation(raw: Mapping[str, Any], path: Path, problems: Problems) -> None:
    """Checks what is well-formed; keys that have a problem of their own are left out."""
    keys = {key: value for key, value in raw.items() if not problems.has((*path, key))}
    section = SpeculationSection.model_validate({"method": METHODS[0], **keys})
    misspelt = {nearest(key, offered(SpeculationSection)) for key in raw.keys() - keys.keys()}
    for key, message in _faults(section, knows_method="method" in keys):
        if key not in misspelt:
            problems.add((*path, key), message)
    if section.num_speculative_tokens_per_batch_size is not None:
        at = (*path, "num_speculative_tokens_per_batch_size")
        schedule_problems(section, at, problems)


def _faults(section: SpeculationSection, *, knows_method: bool) -> Iterator[Fault]:
    if knows_method:
        yield from _missing(section)
        yield from _unused(section)
        yield from _model(section)
    yield from _lookup(section)
    yield from _draft_sampling(section)
    yield from _fly(section)


def _missing(section: SpeculationSection) -> Iterator[Fault]:
    if section.num_speculative_tokens is None and section.method != "suffix":
        yield "num_speculative_tokens", "required, but missing"
    if section.model is None and section.method in _NEEDS_MODEL:
        what = "an import path" if section.method == "custom_class" else "the draft's name"
        yield "model", f"required by method {section.method}: {what}"


def _unused(section: SpeculationSection) -> Iterator[Fault]:
    for key, methods in _METHODS_OF_KEY.items():
        is_default = getattr(section, key) == SpeculationSection.model_fields[key].default
        if section.method not in methods and not is_default:
            users = ", ".join(sorted(methods))
            yield key, f"has no effect with method {section.method}, only with {users}"


def _lookup(section: SpeculationSection) -> Iterator[Fault]:
    """With one of the two given vLLM takes it for both, with none 5 and 5: always in order."""
    low, high = section.prompt_lookup_min, section.prompt_lookup_max
    if low is not None and high is not None and low > high:
        yield "prompt_lookup_min", f"is {low}, more than prompt_lookup_max, which is {high}"


def _model(section: SpeculationSection) -> Iterator[Fault]:
    model, method = section.model, section.method
    if method in LOOKUP | {"suffix"} and model not in (None, method, "[ngram]"):
        yield "model", f"has no effect with method {method}, which needs no model"
    if method == "custom_class" and model is not None and not _DOTTED_PATH.match(model):
        yield "model", 'must be an import path such as "my_package.MyProposer"'


def _draft_sampling(section: SpeculationSection) -> Iterator[Fault]:
    if section.draft_sample_method == "probabilistic":
        for key in ("use_local_argmax_reduction", "use_heterogeneous_vocab"):
            if getattr(section, key):
                yield key, "needs draft_sample_method: greedy"
    elif section.use_heterogeneous_vocab and section.use_local_argmax_reduction:
        yield "use_local_argmax_reduction", "cannot be used with use_heterogeneous_vocab"


def _fly(section: SpeculationSection) -> Iterator[Fault]:
    tokens, window = section.num_speculative_tokens, section.fly_window_size
    if section.rejection_sample_method != "fly":
        for key in ("fly_window_size", "fly_entropy_threshold", "fly_entropy_top_k"):
            if getattr(section, key) is not None:
                yield key, "has no effect without rejection_sample_method: fly"
    elif tokens is not None and tokens < 2:
        yield "rejection_sample_method", "fly needs num_speculative_tokens of at least 2"
    elif tokens is not None and window is not None and window >= tokens:
        yield "fly_window_size", f"must be less than num_speculative_tokens, which is {tokens}"
