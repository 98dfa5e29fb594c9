"""A serving engine in miniature: passes over the sequences that run, and what they yield.

`scheduler.py` says who takes part, `cost.py` how long it takes, a sequence's drafter what is
proposed. In vLLM's order: a pass checks the drafts that the pass before it proposed, emits, and
proposes for the next, at most as many tokens as the batch-size schedule gives for the number of
requests in *this* pass, prefills included.

The engine tells no time. `step(now_s)` completes the pass that is due by then and begins the next;
`due_s` says when to call again. So a server drives it by its clock and a simulation by jumping from
one `due_s` to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from paceline.core.cost import PassCosts, PassLoad
from paceline.core.draft import Draft
from paceline.sim.counters import Counters, SpecCounts
from paceline.sim.generation import Generation, Part, Pass
from paceline.sim.kv_cache import KvCache
from paceline.sim.schedule import BatchSizeSchedule
from paceline.sim.scheduler import Scheduler

KV_CACHE_TOKENS = 400_000  # what an 8B model leaves room for on 80 GB, at 128 KiB a token


@dataclass(slots=True)
class _Begun:
    """A pass under way: who takes part, how many tokens they may draft after it, when it ends."""

    parts: list[Part]
    draft_limit: int
    due_s: float
    duration_s: float


@dataclass(slots=True, kw_only=True)
class Engine:
    """`costs` may be replaced at any time; the pass under way keeps its length.

    `schedule` is the batch-size schedule; without one every pass drafts `num_speculative_tokens`.
    The default token budget is what vLLM's server takes on a GPU.
    """

    num_speculative_tokens: int = 0
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    kv_cache_tokens: int = KV_CACHE_TOKENS
    schedule: BatchSizeSchedule | None = None
    costs: PassCosts = field(default_factory=PassCosts)
    kv: KvCache = field(init=False)
    counters: Counters = field(init=False)
    _queues: Scheduler = field(init=False)
    _begun: _Begun | None = None

    def __post_init__(self) -> None:
        self.kv = KvCache(self.kv_cache_tokens)
        self._queues = Scheduler(self.max_num_seqs, self.max_num_batched_tokens, self.kv)
        self.counters = Counters(spec=SpecCounts.up_to(self.num_speculative_tokens))
        if self.schedule is None:
            self.schedule = BatchSizeSchedule.constant(self.num_speculative_tokens)

    @property
    def waiting(self) -> deque[Generation]:
        return self._queues.waiting

    @property
    def running(self) -> list[Generation]:
        return self._queues.running

    @property
    def preempted(self) -> int:
        """How often a sequence was driven out of the KV cache."""
        return self._queues.preempted

    @property
    def due_s(self) -> float | None:
        """When the pass under way ends; None while there is none."""
        return self._begun.due_s if self._begun else None

    @property
    def prompt_tokens_waiting(self) -> int:
        """Prompt tokens that are still to be computed."""
        return sum(
            max(0, generation.num_prompt_tokens - generation.computed)
            for queue in (self.waiting, self.running)
            for generation in queue
        )

    def add(self, generation: Generation) -> None:
        """Queue a sequence; it joins the next pass that has room.

        Raises ValueError for one that the KV cache could not hold alone: it would never end.
        """
        longest = generation.num_prompt_tokens + len(generation.script.tokens)
        if not self.kv.fits(longest + self.num_speculative_tokens):
            raise ValueError(f"{longest} tokens do not fit the KV cache")
        self.waiting.append(generation)

    def remove(self, key: str) -> bool:
        """Forget a sequence wherever it is, at once; False if it is not here."""
        for queue in (self.waiting, self.running):
            for generation in queue:
                if generation.key == key:
                    self._queues.remove(generation)
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
        parts = self._queues.schedule()
        if not parts:
            return None
        for part in parts:
            if part.generation.started_s is None:
                part.generation.started_s = now_s
        assert self.schedule is not None
        limit = self.schedule.tokens_for(len(parts))
        duration_s = self.costs.seconds(load_of(parts, limit))
        return _Begun(parts, limit, now_s + duration_s, duration_s)

    def _complete(self, begun: _Begun) -> list[Pass]:
        self.counters.passes += 1
        here = {id(generation) for generation in self.running}
        passes = []
        for part in begun.parts:
            self.counters.scheduled_tokens += part.num_tokens
            if id(part.generation) in here and not part.generation.held:
                passes += self._advance(part, begun.draft_limit)
        self._queues.retire()
        return passes

    def _advance(self, part: Part, draft_limit: int) -> list[Pass]:
        """What a part comes to; nothing while its prompt is not computed to the end."""
        generation, yields = part.generation, part.yields
        before, generation.computed = generation.computed, generation.computed + part.num_new
        repeated = max(0, min(generation.computed, generation.furthest_computed) - before)
        generation.furthest_computed = max(generation.furthest_computed, generation.computed)
        self.counters.recomputed_tokens += repeated
        if generation.emitted == 0:
            self.counters.prompt_tokens += part.num_new - repeated
        return [self._emit(generation, part.draft, draft_limit)] if yields else []

    def _emit(self, generation: Generation, draft: Draft | None, draft_limit: int) -> Pass:
        """The accepted tokens and the model's own next one, as far as there is text."""
        tokens, start = generation.script.tokens, generation.emitted
        end = min(start + (draft.accepted if draft else 0) + 1, len(tokens))
        generation.emitted = end
        generation.computed = generation.num_tokens - 1  # the last one is computed next
        generation.furthest_computed = max(generation.furthest_computed, generation.computed)
        self._count(generation, draft, end - start)
        if generation.drafter is not None:
            generation.drafter.extend(tokens[start:end])
        self._propose(generation, draft_limit)
        return Pass(
            key=generation.key, start=start, end=end, draft=draft, finished=generation.finished
        )

    def _propose(self, generation: Generation, limit: int) -> None:
        generation.draft = None
        if generation.drafter is not None and limit > 0 and not generation.finished:
            upcoming = generation.script.tokens[generation.emitted : generation.emitted + limit]
            generation.draft = generation.drafter.draft(upcoming, limit)

    def _count(self, generation: Generation, draft: Draft | None, num_tokens: int) -> None:
        if not generation.pooled:
            self.counters.generation_tokens += num_tokens
        if draft is not None:
            generation.spec.add(draft)
            self.counters.spec.add(draft)


def load_of(parts: Iterable[Part], draft_limit: int) -> PassLoad:
    """What a pass with these parts has to do.

    A chunk of n tokens after c computed ones looks at c + n / 2 on average.
    """
    tokens = context = pairs = drafting = 0
    verifies = False
    for part in parts:
        generation, number = part.generation, part.num_tokens
        tokens += number
        context += generation.computed + number
        pairs += number * generation.computed + number * number // 2
        verifies = verifies or part.draft is not None
        drafting += draft_limit > 0 and generation.drafter is not None and part.yields
    return PassLoad(
        num_tokens=tokens,
        num_context_tokens=context,
        num_pairs=pairs,
        draft_steps=draft_limit if drafting else 0,
        num_drafting=drafting,
        verifies=verifies,
    )


def run_out(
    engine: Engine, now_s: float = 0.0, arrivals: Iterable[tuple[float, Generation]] = ()
) -> Iterator[tuple[float, Pass]]:
    """Drive an engine by its own due times until it is idle: (when, what) of every pass.

    `arrivals` are (when, who) in order of time, from `now_s` on; those who come during a pass join
    the next one.
    """
    coming = deque(arrivals)
    engine.step(now_s)
    while coming or engine.due_s is not None:
        due_s = engine.due_s
        if coming and (due_s is None or coming[0][0] < due_s):
            now_s, generation = coming.popleft()
            engine.add(generation)
            if due_s is None:
                engine.step(now_s)
        elif due_s is not None:
            for part in engine.step(due_s):
                yield due_s, part
