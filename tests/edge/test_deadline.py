"""A deadline fires once, when it is due, wherever it was moved to before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.edge.deadline import Deadline


class Timer:
    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when, self.call, self.cancelled = when, call, False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """A loop whose time is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(when, call))
        return self.timers[-1]

    def advance(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while due := [timer for timer in self.pending if timer.when <= end_s]:
            first = min(due, key=lambda timer: timer.when)
            self.timers.remove(first)
            self.now_s = first.when
            first.call()
        self.now_s = end_s

    @property
    def pending(self) -> list[Timer]:
        return [timer for timer in self.timers if not timer.cancelled]


def deadline() -> tuple[Loop, Any, list[float]]:
    loop, fired = Loop(), list[float]()
    return loop, Deadline(loop, lambda: fired.append(loop.now_s)), fired  # type: ignore[arg-type]


def test_it_fires_once_when_the_time_is_up() -> None:
    loop, it, fired = deadline()
    it.within(2)
    loop.advance(10)
    assert fired == [2]


def test_put_off_it_fires_later_and_needs_no_new_timer_for_it() -> None:
    loop, it, fired = deadline()
    for _ in range(100):
        it.within(10)
        loop.advance(1)
    assert len(loop.pending) == 1
    assert len(loop.timers) <= 1 + 100 / 9
    assert fired == []
    loop.advance(10)
    assert fired == [109]


def test_brought_forward_it_fires_sooner() -> None:
    loop, it, fired = deadline()
    it.within(10)
    it.within(1)
    loop.advance(20)
    assert fired == [1]


def test_off_it_does_not_fire_and_may_be_set_again() -> None:
    loop, it, fired = deadline()
    it.within(1)
    it.off()
    loop.advance(5)
    it.within(1)
    loop.advance(5)
    assert fired == [6]


def test_closed_it_leaves_no_timer_behind() -> None:
    loop, it, fired = deadline()
    it.within(1)
    it.close()
    loop.advance(5)
    assert fired == []
    assert loop.pending == []
