"""Prompt lookup: drafts from what stands in the text already, by vLLM's rule for `ngram`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.core.draft import Draft, common_prefix

LOOKUPS = ("ngram", "suffix")
"""The methods that look drafts up in the text, rather than reckon them by a model."""


class NgramDrafter:
    """What followed the latest tokens when they stood there before.

    The longest of the last `longest` down to `shortest` tokens that occurred earlier, in the prompt
    or the output; of several places the first one, since that is vLLM's choice ("the target n-gram
    of the earliest position", vllm/v1/spec_decode/ngram_proposer.py). The match may overlap the
    tokens that are looked up. No match, no draft, fewer tokens near the end; unless `padded`: then
    the last token is repeated up to the limit and verified in vain, as vLLM's runner for GPUs does
    (vllm/v1/worker/gpu/spec_decode/ngram/speculator.py).

    An index from n-grams to their first ends makes a look-up independent of the length. It has at
    most one entry a token: where an n-gram is new, longer ones that end there are new too, and are
    not entered. Who meets the n-gram again finds the first place and compares one token more there.
    """

    def __init__(
        self, prompt: Iterable[str], *, shortest: int, longest: int, padded: bool = False
    ) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"not a lookup: {shortest=} {longest=}")
        self._shortest, self._longest = shortest, longest
        self._padded = padded
        self._tokens: list[str] = []
        self._first_end: dict[tuple[str, ...], int] = {}
        self._found: int | None = None  # where the longest match of the latest tokens ends
        self.extend(prompt)

    def extend(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            self._tokens.append(token)
            self._found = self._first_place()

    def _first_place(self) -> int | None:
        """Where the longest n-gram at the end stood first, before this; enters what is new."""
        tokens, first_end = self._tokens, self._first_end
        found, end = None, len(tokens)
        for start in range(end - self._shortest, max(-1, end - self._longest - 1), -1):
            if found is not None:
                before = found - (end - start)
                if before >= 0 and tokens[before] == tokens[start]:
                    continue  # the first place of the shorter one is that of this one too
            place = first_end.setdefault(tuple(tokens[start:]), end)
            if place == end:
                break
            found = place
        return found

    def proposal(self, limit: int) -> list[str]:
        """The tokens drafted for the next pass."""
        found = self._found
        drafted = [] if found is None else self._tokens[found : found + limit]
        if self._padded and self._tokens:
            drafted += self._tokens[-1:] * (limit - len(drafted))
        return drafted

    def draft(self, upcoming: Sequence[str], limit: int) -> Draft:
        proposed = self.proposal(limit)
        return Draft(drafted=len(proposed), accepted=common_prefix(proposed, upcoming))


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
