"""What requests teach: outcomes gathered from what ended, taken in beside the requests.

A request costs the hot path a few marks; how it went is worked out in a loop of its own, a few
times a second, and of a busy gateway's requests only an even draw (`core/sampling.py`). What was
learned is a model's `Beliefs`; where conversations went is kept
here too.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from paceline.core.beliefs import Beliefs, Outcome, conversation_key
from paceline.core.choose import Adaptive
from paceline.core.priors import draft_limit
from paceline.core.replayable import Replayed
from paceline.core.sampling import TURN_S, Lessons
from paceline.core.types import Caller, Decision, Place, RequestFeatures
from paceline.edge.bodies import Body
from paceline.edge.lessons import Lesson, outcome_of
from paceline.edge.replays import Replays
from paceline.edge.store import Store
from paceline.edge.telemetry import RequestRecord
from paceline.edge.workers import Fleet
from paceline.errors import ConfigurationError
from paceline.settings import Learning

log = logging.getLogger(__name__)

SAVE_TURNS = 60
"""Every how many turns what was learned is kept."""
MAX_PLACES = 65_536
"""Conversations whose last worker is remembered, the latest ones."""


class Learner:
    """Of the whole gateway; beliefs are a model's."""

    def __init__(
        self,
        settings: Learning,
        fleet: Fleet,
        *,
        observed: Callable[[Decision, Outcome], None],
        unix_s: Callable[[], float],
        rng: random.Random,
    ) -> None:
        """`observed` is told of every outcome that was learned from. Evidence ages by `unix_s`, so
        that it does so between two runs as well. Raises ConfigurationError for a state file that
        is in use or is none.
        """
        self._settings = settings
        self._fleet = fleet
        self._observed = observed
        self._unix_s = unix_s
        self._rng = rng
        self._store = None if settings.state is None else Store(settings.state)
        self._learned_since_save = False
        self._saving: asyncio.Future[None] | None = None
        self.beliefs = {
            model.name: Beliefs(
                pools={pool.name: pool.settings.speculation for pool in model.pools},
                half_life_s=settings.half_life_s,
            )
            for model in fleet.models
        }
        if self._store is not None:
            self._restore(self._store)
        self.replays = (
            Replays(fleet, self.beliefs, self._learn, unix_s=unix_s, rng=rng)
            if settings.replay
            else None
        )
        self._limits = {
            (model.name, pool.name): draft_limit(pool.settings.speculation)
            for model in fleet.models
            for pool in model.pools
        }
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._lessons: Lessons[Lesson] = Lessons(rng)

    def adaptive(self, model: str, caller: Caller) -> Adaptive:
        """What a request of this caller is decided by."""
        return Adaptive(
            self.beliefs[model],
            self._places.get(conversation_key(caller)),
            self._rng.random(),
            self._settings.exploration,
        )

    def k_of(self, decision: Decision, told_k: int | None) -> int:
        """How many tokens a request's worker drafts for it; `told_k`, or None if it is not told."""
        return self._limits[decision.model, decision.pool] if told_k is None else told_k

    def begins(
        self, decision: Decision, features: RequestFeatures, caller: Caller, k: int
    ) -> Lesson | None:
        """A request is about to be sent to the worker decided on, which drafts `k` tokens for it;
        what is noted of it, if it may be learned from."""
        conversation = conversation_key(caller)
        if conversation:
            self._places[conversation] = Place(decision.pool, decision.worker)
            self._places.move_to_end(conversation)
            if len(self._places) > MAX_PLACES:
                self._places.popitem(last=False)
        kept = None if self.replays is None else self.replays.keep(decision)
        if kept is None and not self._lessons.may_come(looked_up=self._looked_up(decision)):
            return None
        return Lesson(
            decision,
            k,
            self._limits[decision.model, decision.pool],
            caller.template,
            conversation,
            features.prompt_chars,
            features.view.max_tokens,
            self._fleet.workers[decision.worker].busy(),
            kept,
        )

    def ended(self, lesson: Lesson, record: RequestRecord, body: Body) -> None:
        """A worker's answer is complete, and `record` says all about it."""
        lesson.record = record
        lesson.ended = self._fleet.workers[lesson.decision.worker].busy()
        if self.replays is not None and self.replays.offer(
            lesson, body.raw, body.view.endpoint, body.view.stream
        ):
            return  # it is learned from when it has been studied
        self._lessons.add(lesson, looked_up=self._looked_up(lesson.decision))

    def _looked_up(self, decision: Decision) -> bool:
        return self.beliefs[decision.model].looks_up(decision.pool)

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """What has to run for as long as there are requests."""
        replaying = [] if self.replays is None else [self.replays.teacher.run()]
        return [self.learn(), *replaying]

    async def learn(self) -> None:
        """Takes in what ended, and keeps it now and then, for ever."""
        for turn in itertools.count(1):
            await asyncio.sleep(TURN_S)
            try:
                self.take_in()
                if turn % SAVE_TURNS == 0:
                    await self.save()
            except Exception:  # a fault of ours must not end all learning
                log.exception("learning failed")

    async def save(self) -> None:
        """Keeps what was learned, if it is to be kept and is new. A disk that fails is told of in
        the log, and tried again."""
        if self._store is None:
            return
        if self._saving is not None:  # cancelled or not, its thread goes on to its end
            await asyncio.wait([self._saving])
        if self._learned_since_save:
            self._learned_since_save = False  # what is learned from here on is for the next time
            self._saving = asyncio.ensure_future(self._save(self._store))
            await asyncio.shield(self._saving)

    async def _save(self, store: Store) -> None:
        states = {name: beliefs.state() for name, beliefs in self.beliefs.items()}
        try:
            await asyncio.to_thread(store.save, states)
        except (sqlite3.Error, OSError) as error:
            self._learned_since_save = True
            log.warning("%s cannot be written: %s", store.path, error)

    async def close(self) -> None:
        """Takes in what ended last and keeps it."""
        try:
            self.take_in()
        except Exception:  # what was learned before is kept all the same
            log.exception("learning failed")
        await self.save()
        if self._store is not None:
            self._store.close()

    def _restore(self, store: Store) -> None:
        kept = store.load()
        for name, beliefs in self.beliefs.items():
            try:
                if name in kept:
                    beliefs.restore(kept[name])
            except (ValueError, KeyError, TypeError) as error:
                store.close()
                raise ConfigurationError(
                    f"learning.state: {store.path}: what it holds of model {name} cannot be read "
                    f"({error!r}); move it away, or name another"
                ) from error

    def take_in(self) -> None:
        """Learns from what ended since the last time."""
        for lesson in self._lessons.take():
            self._learn(lesson)

    def _learn(self, lesson: Lesson, replayed: Replayed | None = None) -> None:
        beliefs = self.beliefs[lesson.decision.model]
        outcome = outcome_of(lesson, beliefs.fill_of, replayed)
        if outcome is not None:
            beliefs.observe(outcome, self._unix_s())
            self._learned_since_save = True
            self._observed(lesson.decision, outcome)
