"""A serving engine in miniature: waiting and running sequences, passes, and what they yield.

First version: first come, first served, `max_num_seqs` at once, a whole prompt in one pass, time
linear in what a pass holds. There is no KV-cache pressure, preemption, prefix cache or chunked
prefill; hardware is three numbers.

The engine tells no time. `step(now_s)` completes the pass that is due by then and begins the next;
`due_s` says when to call again. So a server drives it by its clock and a simulation by jumping from
one `due_s` to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from paceline.sim.counters import Counters, SpecCounts
from paceline.sim.drafter import Draft, Drafter
from paceline.sim.script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """Seconds of a pass: fixed, for each running sequence, draft token and prompt token.

    The defaults are round numbers of the order of an 8B model on an H100, where a pass takes about
    10 ms and each further scheduled token 21 µs (fitted to the H100 runs of SpecDecode-Bench).
    """

    base_s: float = 0.012
    per_sequence_s: float = 50e-6
    per_draft_token_s: float = 21e-6
    per_prompt_token_s: float = 21e-6

    def seconds(self, sequences: int, draft_tokens: int, prompt_tokens: int) -> float:
        return (
            self.base_s
            + self.per_sequence_s * sequences
            + self.per_draft_token_s * draft_tokens
            + self.per_prompt_token_s * prompt_tokens
        )

    def slowed(self, factor: float) -> StepCosts:
        """All costs times `factor`."""
        return StepCosts(
            base_s=self.base_s * factor,
            per_sequence_s=self.per_sequence_s * factor,
            per_draft_token_s=self.per_draft_token_s * factor,
            per_prompt_token_s=self.per_prompt_token_s * factor,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class Generation:
    """One sequence: its prompt's length, what it will write, and how far it is.

    A held one keeps its place among the running and makes no progress.
    """

    key: str
    num_prompt_tokens: int
    script: Script
    drafter: Drafter | None
    spec: SpecCounts
    emitted: int = 0
    prefilled: bool = False
    held: bool = False

    @property
    def num_tokens(self) -> int:
        return (self.num_prompt_tokens if self.prefilled else 0) + self.emitted

    @property
    def finished(self) -> bool:
        return self.emitted >= len(self.script.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One sequence's part in a pass: tokens `start` to `end` of its script, and its draft.

    The first pass of a sequence is its prefill, which drafts nothing and yields one token.
    """

    key: str
    start: int
    end: int
    draft: Draft | None
    finished: bool


@dataclass(slots=True)
class _Begun:
    """A pass under way: who takes part, with which draft, and when it ends."""

    drafts: list[tuple[Generation, Draft | None]]
    due_s: float
    duration_s: float


@dataclass(slots=True)
class Engine:
    """`costs` may be replaced at any time; the pass under way keeps its length."""

    max_num_seqs: int
    num_speculative_tokens: int
    costs: StepCosts = field(default_factory=StepCosts)
    waiting: deque[Generation] = field(default_factory=deque)
    running: list[Generation] = field(default_factory=list)
    counters: Counters = field(init=False)
    _begun: _Begun | None = None

    def __post_init__(self) -> None:
        if self.max_num_seqs < 1:
            raise ValueError("max_num_seqs must be at least 1")
        self.counters = Counters(spec=SpecCounts.up_to(self.num_speculative_tokens))

    @property
    def due_s(self) -> float | None:
        """When the pass under way ends; None while there is none."""
        return self._begun.due_s if self._begun else None

    @property
    def num_kv_tokens(self) -> int:
        """Tokens that the running sequences keep in the KV cache."""
        return sum(generation.num_tokens for generation in self.running)

    def add(self, generation: Generation) -> None:
        """Queue a sequence; it joins the next pass that has room."""
        self.waiting.append(generation)

    def remove(self, key: str) -> bool:
        """Forget a sequence wherever it is, at once; False if it is not here."""
        for queue in (self.waiting, self.running):
            for generation in queue:
                if generation.key == key:
                    queue.remove(generation)
                    return True
        return False

    def step(self, now_s: float) -> list[Pass]:
        """Complete the pass that is due and begin the next. Empty while the pass still runs.

        The next pass begins where the last one ended, so that a caller who wakes a little late
        does not slow the engine down; one who is late by more than a pass has lost that time.
        """
        passes: list[Pass] = []
        begin_s = now_s
        if self._begun is not None:
            begun = self._begun
            if now_s < begun.due_s:
                return []
            passes = self._complete(begun)
            begin_s = begun.due_s if now_s - begun.due_s <= begun.duration_s else now_s
        self._begun = self._begin(begin_s)
        return passes

    def _begin(self, now_s: float) -> _Begun | None:
        while self.waiting and len(self.running) < self.max_num_seqs:
            self.running.append(self.waiting.popleft())
        taking_part = [generation for generation in self.running if not generation.held]
        if not taking_part:
            return None
        drafts = [(generation, self._draft(generation)) for generation in taking_part]
        duration_s = self.costs.seconds(
            len(taking_part),
            sum(draft.drafted for _, draft in drafts if draft),
            sum(g.num_prompt_tokens for g in taking_part if not g.prefilled),
        )
        return _Begun(drafts, now_s + duration_s, duration_s)

    def _draft(self, generation: Generation) -> Draft | None:
        if generation.drafter is None or not generation.prefilled:
            return None
        start = generation.emitted
        end = start + self.num_speculative_tokens
        return generation.drafter.draft(generation.script.tokens[start:end])

    def _complete(self, begun: _Begun) -> list[Pass]:
        self.counters.passes += 1
        here = {id(generation) for generation in self.running}
        passes = [
            self._emit(generation, draft)
            for generation, draft in begun.drafts
            if id(generation) in here and not generation.held
        ]
        self.running = [generation for generation in self.running if not generation.finished]
        return passes

    def _emit(self, generation: Generation, draft: Draft | None) -> Pass:
        """The accepted tokens and the model's own next one, as far as there is text."""
        start = generation.emitted
        end = min(start + (draft.accepted if draft else 0) + 1, len(generation.script.tokens))
        self._count(generation, draft, end - start)
        if generation.drafter is not None:
            generation.drafter.extend(generation.script.tokens[start:end])
        generation.prefilled, generation.emitted = True, end
        return Pass(
            key=generation.key, start=start, end=end, draft=draft, finished=generation.finished
        )

    def _count(self, generation: Generation, draft: Draft | None, num_tokens: int) -> None:
        if not generation.prefilled:
            self.counters.prompt_tokens += generation.num_prompt_tokens
        self.counters.generation_tokens += num_tokens
        if draft and draft.drafted:
            generation.spec.add(draft)
            self.counters.spec.add(draft)


def run_out(engine: Engine, now_s: float = 0.0) -> Iterable[tuple[float, Pass]]:
    """Drive an engine by its own due times until it is idle: (when, what) of every pass."""
    engine.step(now_s)
    while (due_s := engine.due_s) is not None:
        for part in engine.step(due_s):
            yield due_s, part
