"""P(the first i draft tokens are all accepted) by method and workload: what drawn drafts keep to.

Sources:
- eagle3: SpecDecode-Bench, Llama-3.1-8B, k = 5; chat is ShareGPT, code InstructCoder, outputs that
  loop left out. On edits, which no trace holds: EAGLE on BlazEdit, k = 3 (vLLM #24344).
- mtp and draft_model: those of `core/priors.py`, for every workload; a local SPEED-Bench run found
  the same acceptance of an MTP head in all categories (llama.cpp PR #23869).
- ngram: over all passes, with a match or without. The same traces for chat and code. Edits:
  BlazEdit (vLLM #24344), 0.81 to 0.66 over drafted passes, 2.96 tokens a pass over all, so that a
  share of (2.96 - 1) / 3.59 = 0.55 of the passes drafts.
"""

from __future__ import annotations

from collections.abc import Mapping

from paceline.core.priors import MEASURED, extended
from paceline.core.types import Workload

SURVIVALS: Mapping[str, Mapping[Workload, tuple[float, ...]]] = {
    "eagle3": {
        Workload.CHAT: (0.61, 0.37, 0.25, 0.17, 0.12),
        Workload.CODE: (0.70, 0.52, 0.38, 0.29, 0.22),
        Workload.EDIT: (0.77, 0.45, 0.24),
    },
    "mtp": dict.fromkeys(Workload, MEASURED["mtp"]),
    "draft_model": dict.fromkeys(Workload, MEASURED["draft_model"]),
    "ngram": {
        Workload.CHAT: (0.10, 0.07, 0.06, 0.05, 0.04),
        Workload.CODE: (0.21, 0.19, 0.17, 0.16, 0.14),
        Workload.EDIT: (0.45, 0.41, 0.39, 0.37, 0.36),
    },
}
# Lag-1 autocorrelation of tokens a pass for n-gram: 0.55 to 0.64 on ShareGPT and InstructCoder,
# 0.04 to 0.17 on GSM8K and CNN/DM (SpecDecode-Bench traces); unknown for edits, which copy in runs.
NGRAM_AUTOCORRELATION: Mapping[Workload, float] = {
    Workload.CHAT: 0.55,
    Workload.CODE: 0.6,
    Workload.EDIT: 0.6,
}


def survivals(method: str, workload: Workload, num_tokens: int) -> tuple[float, ...]:
    """The first `num_tokens` survivals; past the measured ones each falls as the last one did.

    Raises KeyError for a method without a table.
    """
    return extended(SURVIVALS[method][workload], num_tokens)


def check_survivals(given: tuple[float, ...]) -> None:
    """Raises ValueError unless they fall within [0, 1]."""
    bounded = all(0.0 <= survival <= 1.0 for survival in given)
    if not given or not bounded or list(given) != sorted(given, reverse=True):
        raise ValueError(f"survivals must fall within [0, 1]: {given}")


def iid_tokens_per_pass(acceptance: float, num_tokens: int) -> float:
    """(1 - a^(k+1)) / (1 - a): tokens a pass if each draft token held with probability `a`, alone.

    For comparison only, never for planning: fitted at k = 1 it is 10 to 16 % too high for EAGLE-3
    and 6 to 21 % too low for n-gram at k = 10 on the SpecDecode-Bench traces. Source: Leviathan,
    Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", 2023.
    """
    if not 0.0 <= acceptance <= 1.0 or num_tokens < 0:
        raise ValueError(f"not an acceptance or not a draft: {acceptance=} {num_tokens=}")
    return sum(acceptance**i for i in range(num_tokens + 1))
