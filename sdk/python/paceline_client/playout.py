"""When each buffered unit is shown: deadline-tangent playout, on numbers alone.

Units wait in one queue. Each is shown a gap after the one before it: the source's own time per
unit, stretched while the buffer is below its level and shortened while above, but never longer
than the straight line (the tangent) to any buffered unit's deadline allows. So nothing is ever
later than its deadline, and catching up is a steeper line, never a dump.

It is the online form of the taut string that is the optimum when arrivals are known (Salehi, Zhang,
Kurose, Towsley, SIGMETRICS 1996; `paceline.bench.optimum` in this repository), re-planned at every
arrival as in Rexford et al., NOSSDAV 1997. Where it falls short: a silence longer than the delay
target shows as a pause, whatever is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, Protocol, TypeVar

from paceline_client.bursts import Bursts
from paceline_client.options import PacerOptions

SLACKS_OF_DELAY = 3.5
"""The delay target in slacks. The slack is a burst's period less the time of one unit: what even
output of equal bursts of k units needs, P (k - 1) / k. It is nothing for a stream of single tokens,
and so is the delay beyond `min_delay_ms`; bursts of unequal size need some times as much."""

LEVEL = 0.7
"""How full the buffer is kept, in delay targets."""

CORRECTION = 0.5
"""How far the gap is stretched or shortened at most to keep that level."""

FALL_PER_S = 0.10
"""The target rises at once and falls by this share a second."""

_SAME_ARRIVAL_MS = 1.0
_ROUNDING = 1e-6  # weights are fractions where tokens are spread over graphemes


class Waiting(Protocol):
    """What the queue holds: a weight, and a time before which it must not go."""

    weight: float
    not_before_ms: float


T = TypeVar("T", bound=Waiting)


@dataclass(slots=True)
class _Deadline:
    """All units up to `upto` (in weight ever pushed) are due by arrival + delay, or `cap_ms`."""

    arrival_ms: float
    cap_ms: float
    upto: float


class Playout(Generic[T]):
    """A queue with due times. Times never go back; the caller passes them in."""

    def __init__(self, options: PacerOptions, bursts: Bursts) -> None:
        self._options = options
        self._bursts = bursts
        self._queue: deque[T] = deque()
        self._deadlines: deque[_Deadline] = deque()
        self._pushed = 0.0
        self._shown = 0.0
        self._last_unit_ms: float | None = None
        self._earliest_ms = -inf
        self._end_ms = inf
        self._least_ms = min(options.min_delay_ms, options.max_delay_ms)
        self._most_ms = options.max_delay_ms
        self._delay_ms = self._least_ms
        self._delay_set_ms: float | None = None

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def delay_ms(self) -> float:
        """The present delay target: no unit is held longer."""
        return self._delay_ms

    def push(self, items: Sequence[T], now_ms: float) -> None:
        """Takes items that arrived together at `now_ms`: nothing still queued is due before it."""
        self._queue.extend(items)
        self._earliest_ms = now_ms
        pushed = self._pushed
        for item in items:
            pushed += item.weight
        if pushed == self._pushed:
            return  # without weight they go with what stands before them
        self._pushed = pushed
        last = self._deadlines[-1] if self._deadlines else None
        if last and last.cap_ms == inf and now_ms - last.arrival_ms < _SAME_ARRIVAL_MS:
            last.upto = pushed
        else:
            self._deadlines.append(_Deadline(now_ms, self._end_ms, pushed))
        self._aim(now_ms)

    def hurry(self, now_ms: float) -> None:
        """All that waits is due within `drain_ms`."""
        if self._deadlines:
            last = self._deadlines[-1]
            last.cap_ms = min(last.cap_ms, now_ms + self._options.drain_ms)

    def end(self, now_ms: float) -> None:
        """No more will come: all is due within `drain_ms`."""
        self.hurry(now_ms)
        self._end_ms = min(self._end_ms, now_ms + self._options.drain_ms)
        self._earliest_ms = now_ms

    def due_ms(self) -> float | None:
        """When the head is to be shown; None if nothing waits."""
        if not self._queue:
            return None
        head = self._queue[0]
        earliest_ms = self._earliest_ms
        if head.not_before_ms > earliest_ms:
            earliest_ms = head.not_before_ms
        since_ms = self._last_unit_ms
        if head.weight == 0 or since_ms is None:
            return earliest_ms
        due_ms = since_ms + head.weight * self._gap_ms(since_ms)
        return due_ms if due_ms > earliest_ms else earliest_ms

    def pop(self, due_ms: float) -> T:
        """Takes the head, shown at `due_ms`."""
        item = self._queue.popleft()
        self._earliest_ms = due_ms
        if item.weight:
            self._shown += item.weight
            self._last_unit_ms = due_ms
        deadlines, shown = self._deadlines, self._shown + _ROUNDING
        while deadlines and deadlines[0].upto <= shown:
            deadlines.popleft()
        if not self._queue:
            deadlines.clear()
            self._shown = self._pushed
        return item

    def clear(self) -> list[T]:
        """Empties the queue; what was in it, in order."""
        rest = list(self._queue)
        self._queue.clear()
        self._deadlines.clear()
        self._shown = self._pushed
        return rest

    def _gap_ms(self, since_ms: float) -> float:
        """Milliseconds per unit of weight for the head, from the unit shown at `since_ms`.

        It runs for every unit: comparisons, because calls of min and max would take longer.
        """
        gap_ms = self._bursts.gap_ms
        shown, delay_ms = self._shown, self._delay_ms
        if self._end_ms == inf:
            want_ms = LEVEL * delay_ms
            if want_ms <= 0:
                return 0.0
            lacking = (want_ms - (self._pushed - shown) * gap_ms) / want_ms
            if lacking > 1:
                lacking = 1.0
            elif lacking < -1:
                lacking = -1.0
            gap_ms *= 1 + CORRECTION * lacking
        for deadline in self._deadlines:
            units = deadline.upto - shown
            if units <= _ROUNDING:
                continue
            due_ms = deadline.arrival_ms + delay_ms
            if due_ms > deadline.cap_ms:
                due_ms = deadline.cap_ms
            tangent_ms = (due_ms - since_ms) / units
            if tangent_ms < gap_ms:
                gap_ms = tangent_ms
        return gap_ms if gap_ms > 0 else 0.0

    def _aim(self, now_ms: float) -> None:
        """Moves the delay target: up at once, down slowly."""
        bursts, since_ms = self._bursts, self._delay_set_ms
        wanted = SLACKS_OF_DELAY * (bursts.period_ms() - bursts.gap_ms)
        if wanted < self._least_ms:
            wanted = self._least_ms
        if wanted > self._most_ms:
            wanted = self._most_ms
        if since_ms is not None and wanted < self._delay_ms:
            fallen = self._delay_ms * max(0.0, 1 - FALL_PER_S * (now_ms - since_ms) / 1000)
            if fallen > wanted:
                wanted = fallen
        self._delay_ms = wanted
        self._delay_set_ms = now_ms
