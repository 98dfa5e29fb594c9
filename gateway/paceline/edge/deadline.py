"""A deadline that moves with every read and write, and costs next to nothing to move.

A loop's timer is dear to set and to cancel, and on a stream nearly every one is cancelled. So the
timer stays where it is: a deadline put off is only a number, and the timer, when it fires, looks
whether it is due and else sets itself anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

_OFF: Final = float("inf")
_EARLY_S: Final = 0.001
"""Loops round times to milliseconds, so a timer may fire this much before it is due."""


class Deadline:
    """Calls `then` once when the time is up; `within` and `at` set it anew, `off` calls it off."""

    __slots__ = ("_due_s", "_loop", "_then", "_timer", "_timer_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        self._loop = loop
        self._then = then
        self._due_s = _OFF
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = _OFF

    def within(self, seconds: float) -> None:
        """From now on, in place of what was set before."""
        self.at(self._loop.time() + seconds)

    def at(self, due_s: float) -> None:
        """The same, by the loop's clock."""
        self._due_s = due_s
        if due_s < self._timer_s:
            self._set_timer()

    def off(self) -> None:
        self._due_s = _OFF

    def close(self) -> None:
        """Off for good: the timer goes too, and what is to be called, which holds our owner."""
        self._due_s = _OFF
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_s = _OFF
        self._then = _nothing

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = self._due_s
        self._timer = self._loop.call_at(self._due_s, self._fired)

    def _fired(self) -> None:
        self._timer, self._timer_s = None, _OFF
        if self._due_s == _OFF:
            return
        if self._due_s - self._loop.time() > _EARLY_S:
            self._set_timer()
            return
        self._due_s = _OFF
        self._then()


def _nothing() -> None:
    pass
