"""Which drafter a sequence gets; and prompt lookup, which really proposes tokens.

Lookups (n-gram here, suffix in `suffix.py`) are compared with the text to come. Trained heads and
draft models cannot be run here: how many of their tokens hold is drawn (`draws.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from paceline.core.types import Speculation, Workload
from paceline.sim.draft import Draft, Drafter, common_prefix
from paceline.sim.draws import HeadDrafter, TwoStateDrafter
from paceline.sim.suffix import SuffixDrafter, SuffixIndex, SuffixRules
from paceline.sim.survivals import NGRAM_AUTOCORRELATION, survivals

HEADS = ("eagle3", "mtp", "draft_model")
METHODS = ("ngram", "suffix", *HEADS)


class NgramDrafter:
    """Prompt lookup: what followed the latest tokens when they stood there before.

    The longest of the last `longest` down to `shortest` tokens that occurred earlier, in the prompt
    or the output; of several places the first one, since that is vLLM's choice ("the target n-gram
    of the earliest position", vllm/v1/spec_decode/ngram_proposer.py). The match may overlap the
    tokens that are looked up. No match, no draft, fewer tokens near the end; unless `padded`: then
    the last token is repeated up to the limit and verified in vain, as vLLM's runner for GPUs does
    (vllm/v1/worker/gpu/spec_decode/ngram/speculator.py).

    An index from every n-gram to its first end makes a look-up independent of the length.
    """

    def __init__(
        self, prompt: Iterable[str], *, shortest: int, longest: int, padded: bool = False
    ) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"not a lookup: {shortest=} {longest=}")
        self._sizes = range(longest, shortest - 1, -1)
        self._padded = padded
        self._tokens: list[str] = []
        self._first_end: dict[tuple[str, ...], int] = {}
        self.extend(list(prompt))

    def extend(self, tokens: Sequence[str]) -> None:
        for token in tokens:
            self._tokens.append(token)
            end = len(self._tokens)
            for size in self._sizes:
                if size <= end:
                    self._first_end.setdefault(tuple(self._tokens[end - size :]), end)

    def proposal(self, limit: int) -> list[str]:
        """The tokens drafted for the next pass."""
        found = self._following(limit)
        if self._padded and self._tokens:
            found += self._tokens[-1:] * (limit - len(found))
        return found

    def _following(self, limit: int) -> list[str]:
        end = len(self._tokens)
        for size in self._sizes:
            if size < end:
                first = self._first_end[tuple(self._tokens[end - size :])]
                if first < end:
                    return self._tokens[first : first + limit]
        return []

    def draft(self, upcoming: Sequence[str], limit: int) -> Draft:
        proposed = self.proposal(limit)
        return Draft(drafted=len(proposed), accepted=common_prefix(proposed, upcoming))


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


def lookup_sizes(options: Mapping[str, object]) -> tuple[int, int]:
    """prompt_lookup_min and max as vLLM fills them in: both absent are 5, one stands for both."""
    shortest, longest = options.get("prompt_lookup_min"), options.get("prompt_lookup_max")
    if shortest is None and longest is None:
        return 5, 5
    low = shortest if isinstance(shortest, int) else longest
    high = longest if isinstance(longest, int) else shortest
    if not isinstance(low, int) or not isinstance(high, int) or not 1 <= low <= high:
        raise ValueError(f"prompt_lookup_min..max must be whole and ascend: {shortest}..{longest}")
    return low, high
