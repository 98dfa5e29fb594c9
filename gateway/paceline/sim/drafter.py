"""Which drafter a sequence gets.

Lookups (`core/lookup.py`, `core/suffix.py`) are compared with the text to come. Trained heads and
draft models cannot be run here: how many of their tokens hold is drawn (`draws.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from paceline.core.draft import Drafter
from paceline.core.lookup import NgramDrafter, lookup_sizes
from paceline.core.suffix import SuffixDrafter, SuffixIndex, SuffixRules
from paceline.core.types import Speculation, Workload
from paceline.sim.draws import HeadDrafter, TwoStateDrafter
from paceline.sim.survivals import NGRAM_AUTOCORRELATION, survivals

HEADS = ("eagle3", "mtp", "draft_model")
METHODS = ("ngram", "suffix", *HEADS)


def drafter_for(
    speculation: Speculation | None,
    workload: Workload,
    prompt: Iterable[str] | None,
    rng: random.Random,
    *,
    padded: bool = False,
    shared: SuffixIndex | None = None,
) -> Drafter | None:
    """A new sequence's drafter, or None where nothing is drafted.

    Without a `prompt` n-gram drafts are drawn too, in runs. `shared` is where suffix decoding finds
    the outputs of other requests. Raises ValueError for a method that is not simulated, and for
    suffix decoding without a prompt, of which nothing to draw from is published.
    """
    if speculation is None:
        return None
    method, num_tokens = speculation.method, speculation.num_speculative_tokens
    if method in HEADS:
        return HeadDrafter(survivals(method, workload, num_tokens), rng)
    if method == "ngram" and prompt is None:
        drawn = survivals(method, workload, num_tokens)
        autocorrelation = NGRAM_AUTOCORRELATION[workload]
        return TwoStateDrafter(drawn, rng, autocorrelation=autocorrelation, padded=padded)
    if method == "ngram" and prompt is not None:
        shortest, longest = lookup_sizes(speculation.options)
        return NgramDrafter(prompt, shortest=shortest, longest=longest, padded=padded)
    if method == "suffix" and prompt is not None:
        return SuffixDrafter(prompt, SuffixRules.of(num_tokens, speculation.options), shared)
    raise ValueError(f"speculation method {method!r} is not simulated")
