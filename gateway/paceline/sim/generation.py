"""One sequence in an engine, and its part in a pass."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.draft import Draft, Drafter
from paceline.sim.counters import SpecCounts
from paceline.sim.script import Script


@dataclass(slots=True, kw_only=True, eq=False)
class Generation:
    """One sequence: its prompt's length, what it will write, and how far it is.

    `computed` of its tokens have their keys and values in the cache, which takes `blocks` blocks.
    `draft` is checked in its next pass. `max_draft_tokens` is its own limit on that
    (`vllm_xargs.paceline_k` where a scheduler class honours it). A held sequence keeps its place
    among the running and makes no progress. A pooled one is computed and writes nothing: the one
    token of its script stands for the vector, and is counted nowhere.
    """

    key: str
    num_prompt_tokens: int
    script: Script
    drafter: Drafter | None
    spec: SpecCounts
    max_draft_tokens: int | None = None
    emitted: int = 0
    computed: int = 0
    furthest_computed: int = 0
    blocks: int = 0
    preemptions: int = 0
    draft: Draft | None = None
    started_s: float | None = None  # when its first pass began, by the engine's clock
    held: bool = False
    pooled: bool = False

    def __post_init__(self) -> None:
        if self.num_prompt_tokens < 1:
            raise ValueError("a prompt has at least one token")

    @property
    def num_tokens(self) -> int:
        """Of the prompt and of what has been written."""
        return self.num_prompt_tokens + self.emitted

    @property
    def uncomputed(self) -> int:
        """Tokens to compute before the next one can be sampled: 1 while it decodes."""
        return self.num_tokens - self.computed

    @property
    def finished(self) -> bool:
        return self.emitted >= len(self.script.tokens)

    def next_draft(self, budget: int) -> Draft | None:
        """The draft to check in a pass with room for `budget` tokens beside the sequence's own."""
        if self.draft is None or self.uncomputed != 1:
            return None
        own = budget if self.max_draft_tokens is None else min(budget, self.max_draft_tokens)
        draft = self.draft.cut_to(max(0, own))
        return draft if draft.drafted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one sequence got from a pass: tokens `start` to `end` of its script, and its draft.

    Its first is the end of its prefill, which has no draft and yields one token. Passes that
    compute only a part of a prompt yield nothing and are not told of.
    """

    key: str
    start: int
    end: int
    draft: Draft | None
    finished: bool


@dataclass(slots=True)
class Part:
    """A sequence's share of the pass under way: `num_new` tokens to compute, and its draft."""

    generation: Generation
    num_new: int
    draft: Draft | None

    @property
    def num_tokens(self) -> int:
        return self.num_new + (self.draft.drafted if self.draft else 0)

    @property
    def yields(self) -> bool:
        """Whether it computes all there is, so that a token is sampled."""
        return self.num_new == self.generation.uncomputed
