"""Who is let in: queue limits, the choice of a rank, and texts written one request at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from paceline.sim.generation import Generation
from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.engines import Engines, Rank
from paceline.testing.sim_worker.faults import Faults
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.sequences import sequences
from paceline.testing.sim_worker.vocabulary import Vocabulary


class Desk:
    """The engines of one worker, and the way to them."""

    def __init__(self, options: SimWorkerOptions, faults: Faults, vocabulary: Vocabulary) -> None:
        self._options = options
        self._faults = faults
        self._vocabulary = vocabulary
        self._writing = asyncio.Lock()
        self.engines = self._new_engines()

    def _new_engines(self) -> Engines:
        return Engines(self._options, lambda: self._faults.saturation)

    def begin_anew(self, failure: Exception) -> None:
        """End all that is under way with an exception, and be as a new process."""
        self.engines.fail(failure)
        self.engines = self._new_engines()

    def rank(self, header: str | None, request: GenerateRequest) -> Rank:
        """Where an admitted request goes; `header` is `X-data-parallel-rank`. Raises Refusal."""
        self._admit(request)
        wanted = int(header) if header is not None and header.isdecimal() else None
        if header is not None and (wanted is None or wanted >= self._options.engines):
            text = f"data_parallel_rank {header} is out of range [0, {self._options.engines})."
            raise refusals.bad_value(text)
        return self.engines.choose(wanted)

    async def queued(
        self, request: GenerateRequest, rank: Rank
    ) -> tuple[GenerateRequest, list[Generation]]:
        """The request's sequences, or none and what is refused within its stream.

        Texts are written one request at a time, with the loop's turn after each: a burst of
        hundreds, at about 0.7 ms each, would make the passes under way late. Meanwhile the queue
        may have filled up; a stream that finds it so gets its 503 after the status line, which is
        what vLLM's race does too (three of nine in a burst against a limit of six).
        """
        if request.late_refusal:
            return request, []
        async with self._writing:
            await asyncio.sleep(0)
            generations = sequences(request, self._options, rank.outputs)
        if request.return_token_ids:
            self._remember(request, generations)
        try:
            self._admit(request)
        except Refusal as refusal:
            if not request.stream:
                raise
            return replace(request, late_refusal=refusal), []
        return request, generations

    def _remember(self, request: GenerateRequest, generations: list[Generation]) -> None:
        """The tokens whose ids the client will see, for it to ask what they mean."""
        for prompt in request.prompts:
            if prompt.given_ids is None:
                self._vocabulary.ids(prompt.tokens)
        for generation in generations:
            self._vocabulary.ids(generation.script.tokens)

    def _admit(self, request: GenerateRequest) -> None:
        """Raises Refusal where a queue limit is passed, with what was asked for counted in."""
        reqs, tokens = self._options.max_num_queued_reqs, self._options.max_num_queued_tokens
        present = self.engines.num_present + request.num_sequences
        reason = None
        if self._faults.saturation or (reqs is not None and present > reqs):
            reason = "max_num_queued_reqs"
        elif tokens is not None:
            queued = self.engines.prompt_tokens_waiting + request.num_prompt_tokens * request.n
            reason = "max_num_queued_tokens" if queued > tokens else None
        if reason is not None:
            self.engines.metrics.rejected[reason] += 1
            raise refusals.too_busy()
