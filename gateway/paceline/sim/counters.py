"""What an engine and its sequences have done, in vLLM's way of counting."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.draft import Draft


@dataclass(slots=True, kw_only=True)
class SpecCounts:
    """Drafts of one sequence or of all: `by_accepted[i]` counts the drafts with i tokens right.

    As in vLLM, a pass without a draft is not counted.
    """

    by_accepted: list[int]
    draft_tokens: int = 0

    @classmethod
    def up_to(cls, num_tokens: int) -> SpecCounts:
        return cls(by_accepted=[0] * (num_tokens + 1))

    def add(self, draft: Draft) -> None:
        self.by_accepted[draft.accepted] += 1
        self.draft_tokens += draft.drafted

    @property
    def drafts(self) -> int:
        return sum(self.by_accepted)

    @property
    def accepted(self) -> int:
        return sum(number * count for number, count in enumerate(self.by_accepted))

    @property
    def accepted_per_position(self) -> list[int]:
        return [sum(self.by_accepted[i + 1 :]) for i in range(len(self.by_accepted) - 1)]

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens per drafted pass with the bonus token; 1.0 when nothing was drafted."""
        return 1.0 + self.accepted / self.drafts if self.drafts else 1.0

    @property
    def acceptance_rate(self) -> float:
        return self.accepted / self.draft_tokens if self.draft_tokens else 0.0


@dataclass(slots=True, kw_only=True)
class Counters:
    """Totals since the engine began.

    `scheduled_tokens` are all that passes computed: prompts, tokens computed again after a
    preemption, and for each decoding sequence one token and its draft.
    """

    spec: SpecCounts
    passes: int = 0
    scheduled_tokens: int = 0
    prompt_tokens: int = 0
    recomputed_tokens: int = 0
    generation_tokens: int = 0
