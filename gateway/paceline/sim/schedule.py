"""`num_speculative_tokens_per_batch_size` as vLLM reads it, lenient where vLLM is.

The gateway's own configuration is stricter (`paceline.settings.schedule`): it refuses gaps and what
would be lowered. A simulated worker must do what the real one does with them.

Source: vllm/v1/spec_decode/dynamic/utils.py and vllm/v1/core/sched/scheduler.py, vLLM 0.33.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizeSchedule:
    """Tokens to draft by batch size: `tokens[i]` from `starts[i]` on, ascending from 1."""

    starts: tuple[int, ...]
    tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.starts[:1] != (1,) or len(self.starts) != len(self.tokens):
            raise ValueError(f"not a schedule: {self}")

    @classmethod
    def constant(cls, num_tokens: int) -> BatchSizeSchedule:
        return cls(starts=(1,), tokens=(num_tokens,))

    @classmethod
    def of(cls, ranges: object, num_speculative_tokens: int) -> BatchSizeSchedule:
        """From `[start, end, tokens]` ranges, ends included.

        In any order; a gap keeps the tokens of the range before it, sizes past the last range keep
        the last range's; more than `num_speculative_tokens` is lowered to it; 0 is no draft.
        Raises ValueError where vLLM does: not a list or empty, an entry that is not three whole
        numbers, a start or end below 1, a start past its end, fewer than 0 tokens, ranges that
        overlap, a first range that does not begin at 1.
        """
        if not isinstance(ranges, Sequence) or isinstance(ranges, str) or not ranges:
            raise ValueError("must be a list of [first batch size, last, tokens]")
        entries = sorted(_range(entry) for entry in ranges)
        if entries[0][0] != 1:
            raise ValueError(f"the first range must begin at 1, not {entries[0][0]}")
        for before, after in pairwise(entries):
            if after[0] <= before[1]:
                raise ValueError(f"{list(before)} and {list(after)} overlap")
        return cls(
            starts=tuple(start for start, _, _ in entries),
            tokens=tuple(min(tokens, num_speculative_tokens) for _, _, tokens in entries),
        )

    def tokens_for(self, batch_size: int) -> int:
        """Tokens to draft after a pass in which `batch_size` requests took part, prefills too."""
        return self.tokens[bisect_right(self.starts, max(1, batch_size)) - 1]


def _range(entry: object) -> tuple[int, int, int]:
    if not isinstance(entry, Sequence) or len(entry) != 3 or {type(n) for n in entry} != {int}:
        raise ValueError(f"must be [first batch size, last, tokens], not {entry!r}")
    start, end, tokens = entry
    if start < 1 or end < start or tokens < 0:
        raise ValueError(f"{list(entry)}: a range runs from 1 or more upwards, tokens from 0")
    return start, end, tokens
