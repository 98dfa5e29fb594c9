"""What a lookup would have drafted and had accepted, had it written an answer that is there.

Lookups need no model: what follows the latest tokens elsewhere in the text is compared with what
did follow. So one finished answer tells of every lookup pool, whichever pool wrote it, at no cost
to a worker. The walk is that of an engine: prefill yields the first token, then each pass drafts
from all that is written, and yields the accepted tokens and one more.

In word tokens, which are not a model's: `correction.py` learns what to make of the difference.
Suffix decoding is replayed on the request's own text, without the cache of other requests' outputs
that an engine may have, since no text is kept here: a lower bound where prompts come again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.core.draft import Drafter
from paceline.core.lookup import NgramDrafter, lookup_sizes
from paceline.core.suffix import SuffixDrafter, SuffixRules
from paceline.core.types import Speculation


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupReplay:
    """All counts. `accepted_counts[j]` of the passes that drafted had j tokens accepted, j from 0
    to k. `num_undrafted_passes` counts the prefill too, if there was a token at all."""

    accepted_counts: tuple[int, ...]
    num_draft_tokens: int
    num_undrafted_passes: int

    def __post_init__(self) -> None:
        k, drafted = len(self.accepted_counts) - 1, self.num_draft_tokens
        counts = (*self.accepted_counts, self.num_undrafted_passes)
        if k < 1 or min(counts) < 0:
            raise ValueError(f"not counts of passes: {self}")
        if not self.num_accepted_tokens <= drafted <= k * self.num_drafted_passes:
            raise ValueError(f"accepted <= drafted <= k a pass does not hold: {self}")

    @property
    def num_drafted_passes(self) -> int:
        return sum(self.accepted_counts)

    @property
    def num_accepted_tokens(self) -> int:
        return sum(count * passes for count, passes in enumerate(self.accepted_counts))

    @property
    def num_passes(self) -> int:
        return self.num_drafted_passes + self.num_undrafted_passes

    @property
    def num_tokens(self) -> int:
        """Of the answer: every pass yields one more than it accepts."""
        return self.num_passes + self.num_accepted_tokens

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens per pass that drafted, as vLLM reckons it; None without such a pass."""
        passes = self.num_drafted_passes
        return 1.0 + self.num_accepted_tokens / passes if passes else None

    @property
    def tokens_per_pass(self) -> float | None:
        """Over all passes of decode, drafted or not; None without one. Prefill is not among them:
        its token costs no pass of decode."""
        decodes = self.num_passes - 1
        return 1.0 + self.num_accepted_tokens / decodes if decodes > 0 else None

    @property
    def survivals(self) -> tuple[float, ...]:
        """For j from 1 to k, the share of decode's passes, drafted or not, in which the first j
        tokens of a draft held. Their sum is `tokens_per_pass` - 1. All 0 without a pass."""
        decodes = max(1, self.num_passes - 1)
        held = [sum(self.accepted_counts[j:]) for j in range(1, len(self.accepted_counts))]
        return tuple(passes / decodes for passes in held)


def replay(
    speculation: Speculation, prompt: Sequence[str], output: Sequence[str]
) -> LookupReplay | None:
    """What a pool of this speculation would have done; None if it does not look drafts up.

    Raises ValueError for options that the method does not have.
    """
    k, options = speculation.num_speculative_tokens, speculation.options
    match speculation.method:
        case "ngram":
            shortest, longest = lookup_sizes(options)
            return replay_ngram(prompt, output, k, shortest, longest)
        case "suffix":
            return replay_suffix(prompt, output, k, options)
    return None


def replay_ngram(
    prompt: Sequence[str], output: Sequence[str], k: int, min_n: int, max_n: int
) -> LookupReplay:
    """With vLLM's `ngram`: `prompt_lookup_min` and `_max` are `min_n` and `max_n`."""
    return _walk(NgramDrafter(prompt, shortest=min_n, longest=max_n), output, k)


def replay_suffix(
    prompt: Sequence[str], output: Sequence[str], k: int, options: Mapping[str, object]
) -> LookupReplay:
    """With suffix decoding, `options` being vLLM's `suffix_decoding_*`. Raises ValueError for
    values that these cannot have."""
    return _walk(SuffixDrafter(prompt, SuffixRules.of(k, options)), output, k)


def _walk(drafter: Drafter, output: Sequence[str], k: int) -> LookupReplay:
    """The last token is always the target's own: an engine that accepted it as drafted would have
    ended there too."""
    accepted_counts = [0] * (k + 1)
    num_draft_tokens = num_undrafted = 0
    at, last = 0, len(output) - 1
    while at <= last:
        accepted = 0
        draft = drafter.draft(output[at : at + k], k) if at else None
        if draft is None or not draft.drafted:
            num_undrafted += 1
        else:
            accepted = min(draft.accepted, last - at)
            accepted_counts[accepted] += 1
            num_draft_tokens += draft.drafted
        drafter.extend(output[at : at + accepted + 1])
        at += accepted + 1
    return LookupReplay(
        accepted_counts=tuple(accepted_counts),
        num_draft_tokens=num_draft_tokens,
        num_undrafted_passes=num_undrafted,
    )
