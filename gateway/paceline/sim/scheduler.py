"""Who takes part in the next pass, with how many tokens: vLLM's rules, first come, first served.

Running sequences come first, each with all that it has to compute and its draft, as far as the
pass's token budget goes; so a long prompt is computed in chunks. One that finds no room in the KV
cache drives out the newest running sequence, which starts again later with all of its tokens to
recompute. Waiting ones join while there is budget, a place and room, but not in a pass that drove
one out.

Source: vllm/v1/core/sched/scheduler.py. Left out: priorities, prefix caching, encoder inputs, and
`long_prefill_token_threshold`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from paceline.sim.generation import Generation, Part
from paceline.sim.kv_cache import KvCache


@dataclass(slots=True)
class Scheduler:
    """The two queues. `preempted` counts sequences driven out since the start."""

    max_num_seqs: int
    max_num_batched_tokens: int
    kv: KvCache
    waiting: deque[Generation] = field(default_factory=deque)
    running: list[Generation] = field(default_factory=list)
    preempted: int = 0

    def __post_init__(self) -> None:
        if self.max_num_seqs < 1:
            raise ValueError("max_num_seqs must be at least 1")
        if self.max_num_batched_tokens < 1:
            raise ValueError("max_num_batched_tokens must be at least 1")

    def schedule(self) -> list[Part]:
        """The parts of the next pass; none when nothing can run."""
        before = self.preempted
        parts, budget = self._running_parts(self.max_num_batched_tokens)
        if self.preempted == before:
            parts += self._joining_parts(budget)
        return parts

    def remove(self, generation: Generation) -> None:
        """Take a sequence out, finished or not, and its blocks with it. Raises ValueError if it is
        not here."""
        queue: deque[Generation] | list[Generation] = self.running
        if generation not in queue:
            queue = self.waiting
        queue.remove(generation)
        self.kv.free(generation)

    def retire(self) -> None:
        """Take out all that are finished."""
        for generation in self.running:
            if generation.finished:
                self.kv.free(generation)
        self.running = [generation for generation in self.running if not generation.finished]

    def _running_parts(self, budget: int) -> tuple[list[Part], int]:
        parts: list[Part] = []
        place = 0
        while place < len(self.running) and budget > 0:
            generation = self.running[place]
            part = None if generation.held else self._part(generation, budget)
            if part is not None and not self._make_room(part, place):
                break  # it was itself the newest
            if part is not None:
                parts.append(part)
                budget -= part.num_tokens
            place += 1
        return parts, budget

    def _joining_parts(self, budget: int) -> list[Part]:
        parts: list[Part] = []
        while self.waiting and budget > 0 and len(self.running) < self.max_num_seqs:
            generation = self.waiting[0]
            if not generation.held:
                part = self._part(generation, budget)
                if not self._fits(part):
                    break
                parts.append(part)
                budget -= part.num_tokens
            self.running.append(self.waiting.popleft())
        return parts

    def _part(self, generation: Generation, budget: int) -> Part:
        num_new = min(generation.uncomputed, budget)
        return Part(generation, num_new, generation.next_draft(budget - num_new))

    def _make_room(self, part: Part, place: int) -> bool:
        """Drive out the newest until the part fits; False if that was its own sequence."""
        while not self._fits(part):
            newest = max(i for i in range(place, len(self.running)) if not self.running[i].held)
            generation = self.running.pop(newest)
            self._preempt(generation)
            if generation is part.generation:
                return False
        return True

    def _fits(self, part: Part) -> bool:
        return self.kv.grow(part.generation, part.generation.computed + part.num_tokens)

    def _preempt(self, generation: Generation) -> None:
        self.kv.free(generation)
        generation.computed, generation.draft = 0, None
        generation.preemptions += 1
        self.preempted += 1
        self.waiting.appendleft(generation)
