"""What requests teach: outcomes gathered from what ended, taken in beside the requests.

A request costs the hot path a few marks; how it went is worked out in a loop of its own, a few
times a second, and of a busy gateway's requests only as many as teach something new: `PER_TURN` of
each turn, drawn evenly. What was learned is a model's `Beliefs`; where conversations went is kept
here too.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from paceline.core.beliefs import Beliefs, Outcome
from paceline.core.choose import Adaptive
from paceline.core.priors import band_shares, draft_limit
from paceline.core.types import Caller, Decision, Place, RequestFeatures
from paceline.edge.store import Store
from paceline.edge.telemetry import RequestRecord
from paceline.edge.workers import Busy, Fleet
from paceline.errors import ConfigurationError
from paceline.settings import Learning

log = logging.getLogger(__name__)

TURN_S = 0.5
PER_TURN = 12
"""Outcomes learned from in a turn, of those that ended in it: some 80 us each, so 0.2 % of a core,
and 24 requests a second are more than any belief remembers for long."""
SAVE_TURNS = 60
"""Every how many turns what was learned is kept."""
MAX_PLACES = 65_536
"""Conversations whose last worker is remembered, the latest ones."""


@dataclass(slots=True)
class Lesson:
    """What is noted of a request while it runs, to learn from its end. No text."""

    decision: Decision
    k: int
    limit: int  # of its pool's k
    template: int
    prompt_chars: int
    max_tokens: int | None
    began: Busy
    ended: Busy | None = None
    record: RequestRecord | None = None


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
        self.beliefs = {
            model.name: Beliefs(
                pools={pool.name: pool.settings.speculation for pool in model.pools},
                half_life_s=settings.half_life_s,
            )
            for model in fleet.models
        }
        if self._store is not None:
            self._restore(self._store)
        self._limits = {
            (model.name, pool.name): draft_limit(pool.settings.speculation)
            for model in fleet.models
            for pool in model.pools
        }
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._lessons: list[Lesson] = []
        self._num_ended = 0

    def adaptive(self, model: str, caller: Caller) -> Adaptive:
        """What a request of this caller is decided by."""
        return Adaptive(
            self.beliefs[model],
            self._places.get(hash(caller.conversation)),
            self._rng.random(),
            self._settings.exploration,
        )

    def begins(self, decision: Decision, features: RequestFeatures, caller: Caller) -> Lesson:
        """A request is about to be sent to the worker decided on."""
        conversation = hash(caller.conversation)
        self._places[conversation] = Place(decision.pool, decision.worker)
        self._places.move_to_end(conversation)
        if len(self._places) > MAX_PLACES:
            self._places.popitem(last=False)
        limit = self._limits[decision.model, decision.pool]
        return Lesson(
            decision,
            limit if decision.k is None else decision.k,
            limit,
            caller.template,
            features.prompt_chars,
            features.view.max_tokens,
            self._fleet.workers[decision.worker].busy(),
        )

    def ended(self, lesson: Lesson, record: RequestRecord) -> None:
        """A worker's answer is complete, and `record` says all about it."""
        lesson.record = record
        lesson.ended = self._fleet.workers[lesson.decision.worker].busy()
        self._num_ended += 1
        if len(self._lessons) < PER_TURN:
            self._lessons.append(lesson)
            return
        at = self._rng.randrange(self._num_ended)  # reservoir sampling (Vitter 1985, algorithm R)
        if at < PER_TURN:
            self._lessons[at] = lesson

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
        if self._store is None or not self._learned_since_save:
            return
        states = {name: beliefs.state() for name, beliefs in self.beliefs.items()}
        try:
            await asyncio.to_thread(self._store.save, states)
            self._learned_since_save = False
        except sqlite3.Error as error:
            log.warning("%s cannot be written: %s", self._store.path, error)

    async def close(self) -> None:
        """Takes in what ended last and keeps it."""
        self.take_in()
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
        lessons, self._lessons, self._num_ended = self._lessons, [], 0
        for lesson in lessons:
            outcome = outcome_of(lesson, self.beliefs[lesson.decision.model].fill_of)
            if outcome is not None:
                self.beliefs[lesson.decision.model].observe(outcome, self._unix_s())
                self._learned_since_save = True
                self._observed(lesson.decision, outcome)


def outcome_of(lesson: Lesson, fill_of: Callable[[str], float]) -> Outcome | None:
    """What the model's beliefs can learn from; None if the answer said too little of itself.

    `fill_of` is the part of its draft slots that a pool uses.
    """
    record, ended, began, decision = lesson.record, lesson.ended, lesson.began, lesson.decision
    if record is None or ended is None or record.code != 200 or record.completion_tokens is None:
        return None
    report, k = record.report, lesson.k
    accepted = report.histogram[: k + 1] if report is not None and report.histogram else None
    lasted_s = ended.at_s - began.at_s
    running, slots = 1.0, float(k)
    if lasted_s > 0:
        running = max(1.0, (ended.request_s - began.request_s) / lasted_s)
        slots = max(float(k), (ended.slot_s - began.slot_s) / lasted_s)
    elsewhere = 0.5 * (began.elsewhere + ended.elsewhere)
    fill = fill_of(decision.pool)
    return Outcome(
        pool=decision.pool,
        worker=decision.worker,
        workload=decision.classification.workload,
        template=lesson.template,
        believed=band_shares(decision.classification.copy_ratio),
        k=k,
        prompt_chars=lesson.prompt_chars,
        prompt_tokens=record.prompt_tokens,
        output_tokens=record.completion_tokens,
        max_tokens=lesson.max_tokens,
        accepted=accepted,
        drafted_tokens=report.num_draft_tokens if report is not None else None,
        decode_s=decode_s(record),
        running=running + elsewhere,
        scheduled=running + slots * fill + elsewhere * (1.0 + lesson.limit * fill),
    )


def decode_s(record: RequestRecord) -> float | None:
    """From a request's first token to its last, in seconds.

    An answer that is no stream does not say when it began; with many tokens its prompt's part is
    small, with few it says nothing.
    """
    if record.ended_s is None:
        return None
    if record.first_event_s is not None:
        return record.ended_s - record.first_event_s
    if record.sent_s is None or (record.completion_tokens or 0) < WHOLE_TOKENS:
        return None
    return record.ended_s - record.sent_s


WHOLE_TOKENS = 48
"""Of a whole answer that is long enough to tell the seconds of a pass."""
