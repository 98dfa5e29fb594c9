"""Drafts and their verification: how many tokens a pass proposes and how many of them hold.

Two kinds. A lookup (`NgramDrafter`) really proposes tokens, which are compared with the text to
come. A trained head or draft model (`HeadDrafter`) cannot be run here, so the number of its tokens
that hold is drawn from measured survivals.

Suffix decoding is left out for now; `drafter_for` refuses it, as it does any other method.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from paceline.core.types import Speculation, Workload

HEADS = ("eagle3", "mtp", "draft_model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A verified draft. `accepted` of the `drafted` tokens were right, counted from the first."""

    drafted: int
    accepted: int

    def __post_init__(self) -> None:
        if not 0 <= self.accepted <= self.drafted:
            raise ValueError(f"accepted must be within drafted: {self}")


class Drafter(Protocol):
    """One sequence's drafter. `extend` tells it the tokens written since the last draft."""

    def draft(self, upcoming: Sequence[str]) -> Draft: ...

    def extend(self, tokens: Sequence[str]) -> None: ...


class NgramDrafter:
    """Prompt lookup: what followed the latest tokens when they stood there before.

    The longest of the last `longest` down to `shortest` tokens that occurred earlier, in the prompt
    or the output; of several places the first one, since that is vLLM's choice ("the target n-gram
    of the earliest position", vllm/v1/spec_decode/ngram_proposer.py). The match may overlap the
    tokens that are looked up. No match, no draft; up to `k` tokens, fewer near the end.

    An index from every n-gram to its first end makes a look-up independent of the length.
    """

    def __init__(
        self, prompt: Iterable[str], *, num_tokens: int, shortest: int, longest: int
    ) -> None:
        if not (1 <= shortest <= longest and num_tokens >= 1):
            raise ValueError(f"not a lookup: {num_tokens=} {shortest=} {longest=}")
        self._num_tokens = num_tokens
        self._sizes = range(longest, shortest - 1, -1)
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

    def proposal(self) -> list[str]:
        """The tokens drafted for the next pass."""
        end = len(self._tokens)
        for size in self._sizes:
            if size < end:
                first = self._first_end[tuple(self._tokens[end - size :])]
                if first < end:
                    return self._tokens[first : first + self._num_tokens]
        return []

    def draft(self, upcoming: Sequence[str]) -> Draft:
        proposed = self.proposal()
        return Draft(drafted=len(proposed), accepted=common_prefix(proposed, upcoming))


class HeadDrafter:
    """Always drafts `len(survivals)` tokens, of which a random number holds.

    `survivals[i]` is the probability that the first i + 1 tokens are all accepted; one draw per
    pass decides how far it goes. Passes are independent, which real heads' are nearly (lag-1
    autocorrelation 0.04 to 0.17 in the traces of SpecDecode-Bench).
    """

    def __init__(self, survivals: Sequence[float], rng: random.Random) -> None:
        bounded = all(0.0 <= s <= 1.0 for s in survivals)
        if not survivals or not bounded or list(survivals) != sorted(survivals, reverse=True):
            raise ValueError(f"survivals must fall within [0, 1]: {survivals}")
        self._survivals = tuple(survivals)
        self._rng = rng

    def extend(self, tokens: Sequence[str]) -> None:
        """A draw needs no context."""

    def draft(self, upcoming: Sequence[str]) -> Draft:
        luck = self._rng.random()
        accepted = sum(1 for survival in self._survivals if luck < survival)
        return Draft(drafted=len(self._survivals), accepted=min(accepted, len(upcoming)))


def common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    """How many leading elements are equal."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


# P(first i tokens accepted) by method and workload. Sources:
# eagle3: SpecDecode-Bench, Llama-3.1-8B, k = 5; chat is ShareGPT, code InstructCoder.
# eagle3 on edits: no trace holds them; EAGLE on BlazEdit, k = 3 (vLLM #24344).
# mtp: a ShareGPT replay of an MTP-like head, k = 3, used for every workload: a local
#   SPEED-Bench run found the same acceptance in all categories (llama.cpp PR #23869).
# draft_model: no survivals are published. Geometric, 0.58 a step, so that τ at k = 5 is the 2.28 of
#   SpS on Spec-Bench (its k is not given), for every workload.
SURVIVALS: Mapping[str, Mapping[Workload, tuple[float, ...]]] = {
    "eagle3": {
        Workload.CHAT: (0.61, 0.37, 0.25, 0.17, 0.12),
        Workload.CODE: (0.70, 0.52, 0.38, 0.29, 0.22),
        Workload.EDIT: (0.77, 0.45, 0.24),
    },
    "mtp": dict.fromkeys(Workload, (0.74, 0.49, 0.31)),
    "draft_model": dict.fromkeys(Workload, (0.58, 0.33, 0.19, 0.11, 0.06)),
}


def survivals(method: str, workload: Workload, num_tokens: int) -> tuple[float, ...]:
    """The first `num_tokens` survivals; past the measured ones each falls as the last one did."""
    known = SURVIVALS[method][workload]
    ratio = known[-1] / known[-2]
    further = (known[-1] * ratio**i for i in range(1, num_tokens - len(known) + 1))
    return (*known, *further)[:num_tokens]


def drafter_for(
    speculation: Speculation | None, workload: Workload, prompt: Iterable[str], rng: random.Random
) -> Drafter | None:
    """A new sequence's drafter, or None where nothing is drafted.

    Raises ValueError for a method that is not simulated.
    """
    if speculation is None:
        return None
    num_tokens = speculation.num_speculative_tokens
    if speculation.method in HEADS:
        return HeadDrafter(survivals(speculation.method, workload, num_tokens), rng)
    if speculation.method == "ngram":
        shortest, longest = lookup_sizes(speculation.options)
        return NgramDrafter(prompt, num_tokens=num_tokens, shortest=shortest, longest=longest)
    raise ValueError(f"speculation method {speculation.method!r} is not simulated")


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
