"""Answers for the replay teacher to study, and what its findings teach.

Of a busy gateway's requests few are kept (`core/sampling.py`): the teacher has 2 % of a core. What
it finds is the answer's true copy ratio, whether it loops, and what each lookup pool would have
made of it, whoever wrote it. The latter is in word tokens; a correction a pool, learned from
answers that a worker counted too, makes tokens of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from paceline.core.beliefs import Beliefs
from paceline.core.correction import Correction, observed_tokens_per_pass, survivals_for
from paceline.core.lookup import LOOKUPS
from paceline.core.replay import LookupReplay
from paceline.core.replayable import Replayable, Replayed
from paceline.core.sampling import CloseLooks
from paceline.core.types import Decision, Endpoint, Speculation
from paceline.edge.lessons import Lesson
from paceline.edge.teacher import Kept, Teacher
from paceline.edge.workers import Fleet


class Replays:
    """Of the whole gateway: one teacher, and a correction for each lookup pool."""

    def __init__(
        self,
        fleet: Fleet,
        beliefs: Mapping[str, Beliefs],
        learn: Callable[[Lesson, Replayed], None],
        *,
        unix_s: Callable[[], float],
        rng: random.Random,
    ) -> None:
        """`learn` is told of each answer that was studied; `beliefs` are a model's by its name."""
        self._beliefs = beliefs
        self._learn = learn
        self._now_s = fleet.now_s
        self._unix_s = unix_s
        self._looks = CloseLooks()
        self._lookups: dict[str, dict[str, Speculation]] = {
            model.name: {
                pool.name: how
                for pool in model.pools
                if (how := pool.settings.speculation) is not None and how.method in LOOKUPS
            }
            for model in fleet.models
        }
        self.corrections = {
            (model, pool): Correction(how.num_speculative_tokens)
            for model, lookups in self._lookups.items()
            for pool, how in lookups.items()
        }
        self.teacher: Teacher[Lesson] = Teacher(self._replayed, rng=rng)

    def keep(self, decision: Decision) -> Kept | None:
        """Where the answer is to be kept; None if it is not to be studied."""
        expected = decision.classification.copy_ratio.expected
        if not self._lookups[decision.model] or not self._looks.wants(expected, self._now_s()):
            return None
        return self.teacher.keep()

    def offer(self, lesson: Lesson, request: bytes, endpoint: Endpoint, is_stream: bool) -> bool:
        """Hands a complete answer over, if there is room. `learn` is then told of it later."""
        kept, lesson.kept = lesson.kept, None
        if kept is None:
            return False
        exchange = Replayable(
            endpoint=endpoint,
            request=request,
            answer=kept.joined(),
            is_stream=is_stream,
            is_cut=kept.is_cut,
            lookups=self._lookups[lesson.decision.model],
        )
        return self.teacher.offer(exchange, lesson)

    def _replayed(self, lesson: Lesson, replayed: Replayed) -> None:
        model = lesson.decision.model
        for pool, lookup in replayed.lookups.items():
            if pool == lesson.decision.pool:
                self._compare(self.corrections[model, pool], lesson, replayed, lookup)
            elif replayed.copy_ratio is not None and lookup.tokens_per_pass is not None:
                corrected = self.corrections[model, pool].corrected(lookup.tokens_per_pass)
                self._beliefs[model].observe_replay(
                    pool,
                    lesson.decision.classification.workload,
                    replayed.copy_ratio,
                    survivals_for(lookup.survivals, corrected),
                    lookup.num_passes - 1,
                    self._unix_s(),
                )
        self._learn(lesson, replayed)

    def _compare(
        self, correction: Correction, lesson: Lesson, replayed: Replayed, lookup: LookupReplay
    ) -> None:
        """What the pool's own worker counted, beside the replay of it."""
        said = None if lesson.record is None else lesson.record.said
        tau = lookup.tokens_per_pass
        if said is None or said.report is None or said.num_output_tokens is None:
            return
        observed = observed_tokens_per_pass(said.num_output_tokens, said.report)
        if replayed.is_whole and tau is not None and observed is not None:
            correction.take(tau, observed, lookup.num_passes - 1)
