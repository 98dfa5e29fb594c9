"""What a drafter is, and what becomes of a draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A verified draft. `accepted` of the `drafted` tokens were right, counted from the first."""

    drafted: int
    accepted: int

    def __post_init__(self) -> None:
        if not 0 <= self.accepted <= self.drafted:
            raise ValueError(f"accepted must be within drafted: {self}")

    def cut_to(self, limit: int) -> Draft:
        """The first `limit` tokens of it."""
        if self.drafted <= limit:
            return self
        return Draft(drafted=limit, accepted=min(self.accepted, limit))


class Drafter(Protocol):
    """One sequence's drafter. `extend` tells it the tokens written since the last draft."""

    def draft(self, upcoming: Sequence[str], limit: int) -> Draft: ...

    def extend(self, tokens: Sequence[str]) -> None: ...


def common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    """How many leading elements are equal."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
