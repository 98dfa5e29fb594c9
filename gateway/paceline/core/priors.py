"""What is believed of a draft method before anything was measured: survivals by copy ratio.

A survival is P(the first i draft tokens of a pass are all accepted), over all passes, with a draft
or without. How well a lookup drafts hangs on how much of the output stands in the prompt, and a
trained head's acceptance rises with it too, so both are given for bands of the copy ratio. The
bands lie closest where the choice between the two turns.

Sources:
- ngram and eagle3: tokens per pass by prompt-to-output 4-gram overlap, at k = 5 and k = 3, worked
  out from the SpecDecode-Bench traces (Llama-3.1-8B, H100; outputs that loop left out). Within a
  draft n-gram's tokens hold together: once the first is right, the next is in 80 % of cases where
  little is copied and in 97 % where nearly all is. EAGLE-3's hold one by one, each a little
  likelier than the first (0.61, then 0.61 to 0.70, on ShareGPT).
- suffix: as n-gram, of which no comparison by overlap is published.
- eagle: MT-bench, Llama-3.1-8B, 2.10, 2.29 and 2.39 tokens a pass at k = 2, 3, 4 (vLLM #20780).
- mtp: a ShareGPT replay of an MTP-like head at k = 3.
- draft_model: geometric, 0.58 a step, so that k = 5 gives the 2.28 of SpS on Spec-Bench.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache, lru_cache

from paceline.core.cost import PassCosts
from paceline.core.step_time import StepTime
from paceline.core.types import CopyRatio, Speculation

BAND_EDGES = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9)
"""Where a band of copy ratios ends and the next begins; an edge belongs to the upper one."""
NUM_BANDS = len(BAND_EDGES) + 1

PRIOR_PASSES = 200.0
"""How many passes of evidence a prior is worth: some six requests (`posterior.py` counts at most 32
of each)."""

_NGRAM = (
    (0.059, 0.80), (0.108, 0.86), (0.193, 0.90), (0.304, 0.93), (0.376, 0.95), (0.522, 0.96),
    (0.686, 0.97),
)  # fmt: skip
"""For each band the first survival, and what each further one is of the one before."""
_EAGLE3 = (
    (0.583, 0.613), (0.636, 0.666), (0.696, 0.726), (0.743, 0.773), (0.761, 0.791), (0.799, 0.829),
    (0.801, 0.831),
)  # fmt: skip
_GEOMETRIC = {"ngram": _NGRAM, "suffix": _NGRAM, "eagle3": _EAGLE3}

MEASURED: Mapping[str, tuple[float, ...]] = {
    "eagle": (0.68, 0.42, 0.19, 0.10),
    "mtp": (0.74, 0.49, 0.31),
    "draft_model": (0.58, 0.33, 0.19, 0.11, 0.06),
}
"""The first survivals of methods for which they are not known by copy ratio."""


def band_of(copy_ratio: float) -> int:
    return bisect_right(BAND_EDGES, copy_ratio)


DOUBT = 0.01
"""Of the classifier, in each band. What it ruled out could never be learned."""


@lru_cache(maxsize=16384)
def band_shares(copy_ratio: CopyRatio) -> tuple[float, ...]:
    """The probability of each band, by a belief about the copy ratio."""
    bands = [band_of(quantile) for quantile in copy_ratio.quantiles]
    sure = (1.0 - NUM_BANDS * DOUBT) / len(bands)
    return tuple(DOUBT + sure * bands.count(band) for band in range(NUM_BANDS))


@cache
def prior_survivals(method: str | None, num_tokens: int) -> tuple[tuple[float, ...], ...]:
    """For each band the survivals at positions 1 to `num_tokens`.

    A method that is not known (None, or one without published acceptance) is believed to draft like
    a small draft model, whose acceptance is the lowest of the trained ones.
    """
    if method in _GEOMETRIC:
        return tuple(
            tuple(first * further**i for i in range(num_tokens))
            for first, further in _GEOMETRIC[method]
        )
    return (extended(MEASURED.get(method or "", MEASURED["draft_model"]), num_tokens),) * NUM_BANDS


def extended(known: tuple[float, ...], num_tokens: int) -> tuple[float, ...]:
    """The first `num_tokens` survivals; past the known ones each falls as the last one did."""
    ratio = known[-1] / known[-2]
    further = (known[-1] * ratio**i for i in range(1, num_tokens - len(known) + 1))
    return (*known, *further)[:num_tokens]


DRAFTING_S: Mapping[str, tuple[float, float]] = {
    "ngram": (0.95e-3, 0.0),
    "suffix": (0.95e-3, 0.0),
    "eagle": (0.6e-3, 0.74e-3),
    "eagle3": (0.9e-3, 0.95e-3),
    "mtp": (0.6e-3, 0.74e-3),
    "draft_model": (0.9e-3, 1.9e-3),
}
"""What drafting adds to a pass of an 8B model on an H100, and what each drafted token adds, in
seconds (`sim/cost.py` works them out, with what each was fitted to)."""


@cache
def prior_step_time(method: str | None, num_tokens: int) -> StepTime:
    """The shape of a pass's time in a pool that drafts `num_tokens` tokens, an H100's for an 8B
    model. Of a method whose costs are not known, a draft model's."""
    plain = StepTime.of(PassCosts(), 0)
    if num_tokens == 0:
        return plain
    pass_s, step_s = DRAFTING_S.get(method or "", DRAFTING_S["draft_model"])
    return StepTime(
        fixed_s=plain.fixed_s + pass_s + step_s * num_tokens,
        token_s=plain.token_s,
        kv_token_s=plain.kv_token_s,
    )


def draft_limit(speculation: Speculation | None) -> int:
    """How many tokens a pool drafts a pass; 0 for a plain one."""
    return speculation.num_speculative_tokens if speculation is not None else 0
