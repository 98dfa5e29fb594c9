"""Which of many requests are learned from, and which few are looked at closely.

A busy gateway answers hundreds of requests a second, and beliefs remember some dozens of each kind.
So an even draw is learned from, in two parts: what lookups served, which alone tells of copying, is
rare in most mixes and would drown in the rest. And of the few answers that the replay teacher has
time for, most are those that may have copied, since of the others it is known.
"""

from __future__ import annotations

import random
from typing import Generic, TypeVar

TURN_S = 0.5
PER_TURN = 6
"""Outcomes learned from in a turn, of each part: some 80 us each, so 0.2 % of a core, and 24
requests a second are more than any belief remembers for long."""
OVERDRAW = 4
"""Times as many requests as are drawn in a turn are noted while they run: some fail, and turns are
not alike."""
LIKELY = 0.2
"""Expected copy ratio from which an answer may well have copied."""
LIKELY_EVERY_S = 0.5
OTHERS_EVERY_S = 4.0
"""Between two answers that are looked at."""
TOGETHER = 8
TOGETHER_S = 5.0
"""They are looked at when there are so many, or the first has waited so long. For a sentence a
process that was asleep takes 3 ms, and a tenth of one when it has just done the like: 0.1 % of a
core, and 0.7 % if each were looked at alone."""

_T = TypeVar("_T")


class Reservoir(Generic[_T]):
    """An even draw of at most `size` of what is added between two calls of `take`.

    Source: Vitter, "Random Sampling with a Reservoir", 1985, algorithm R.
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size = size
        self._rng = rng
        self._drawn: list[_T] = []
        self._num_added = 0
        self._num_asked = 0
        self._share = 1.0  # of those who ask that may come

    def may_come(self) -> bool:
        """Whether one that begins now need be noted, to be added if it ends well.

        Of many, an even part of some `OVERDRAW` times as many as are drawn, by how many asked in
        the turn before; an even draw from an even part is one from all.
        """
        self._num_asked += 1
        return self._share >= 1.0 or self._rng.random() < self._share

    def add(self, one: _T) -> None:
        self._num_added += 1
        if len(self._drawn) < self._size:
            self._drawn.append(one)
        elif (at := int(self._rng.random() * self._num_added)) < self._size:
            self._drawn[at] = one

    def take(self) -> list[_T]:
        """What was drawn, and begins anew."""
        drawn, self._drawn, self._num_added = self._drawn, [], 0
        self._share = OVERDRAW * self._size / max(self._num_asked, 1)
        self._num_asked = 0
        return drawn


class Lessons(Generic[_T]):
    """What ended in a turn and is learned from: a draw of what lookups served, and one of the
    rest."""

    def __init__(self, rng: random.Random) -> None:
        self._of_lookups: Reservoir[_T] = Reservoir(PER_TURN, rng)
        self._of_others: Reservoir[_T] = Reservoir(PER_TURN, rng)

    def may_come(self, *, looked_up: bool) -> bool:
        """Whether one that begins now need be noted."""
        return (self._of_lookups if looked_up else self._of_others).may_come()

    def add(self, one: _T, *, looked_up: bool) -> None:
        (self._of_lookups if looked_up else self._of_others).add(one)

    def take(self) -> list[_T]:
        return self._of_lookups.take() + self._of_others.take()


class CloseLooks:
    """Whether an answer is one of the few to look at closely."""

    def __init__(self) -> None:
        self._likely_s = self._others_s = 0.0

    def wants(self, expected_copy_ratio: float, now_s: float) -> bool:
        """Says yes at most so often; a yes is taken to be used."""
        if expected_copy_ratio >= LIKELY:
            if now_s < self._likely_s:
                return False
            self._likely_s = now_s + LIKELY_EVERY_S
            return True
        if now_s < self._others_s:
            return False
        self._others_s = now_s + OTHERS_EVERY_S
        return True
