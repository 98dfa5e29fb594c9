"""What a stream's arrivals say about its source: time per unit, and how far apart bursts are."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from math import exp

MERGE_MS = 4.0
"""Arrivals this close are one burst: a read may hold several events of one pass."""

MEMORY_MS = 2500.0
"""For the gap, bursts count less by e for every 2.5 s since."""

REMEMBERED_BURSTS = 25
"""For the period, this many bursts count, all alike."""

STALL_PERIODS = 2.0
MAX_PERIOD_MS = 1200.0
"""A pause of over two usual periods, or of over 1.2 s, is a stall, and counts as only that long: a
queue or a tool that thinks says nothing of the pace, and must not teach the pacer to wait."""

_MIN_BURSTS = 4
_PRIOR_GAP_MS = 8.0


class Bursts:
    """Estimates from the bursts so far, older ones forgotten with `MEMORY_MS`.

    The gap is time per unit of weight, the sum of periods over the sum of units rather than a mean
    of rates, which small bursts would dominate. The period is the median: a high quantile, as audio
    buffers aim at (WebRTC's NetEQ: 0.95 of lateness), swells with the first stalls, which no delay
    within reason could hide, and then spends delay for nothing.
    """

    gap_ms: float
    """Milliseconds per unit of weight."""

    def __init__(self) -> None:
        self.gap_ms = _PRIOR_GAP_MS
        self._periods: deque[float] = deque()
        self._ordered: list[float] = []
        self._median_ms = 0.0
        self._sum_ms = 0.0
        self._sum_units = 0.0
        self._last_ms: float | None = None
        self._first_units = 0.0
        self._hinted_gap_ms: float | None = None
        self._hinted_period_ms: float | None = None
        self.num_bursts = 0

    def arrive(self, now_ms: float, units: float) -> bool:
        """Takes `units` that arrived at `now_ms`; whether they begin a new burst."""
        begins = self._last_ms is None or now_ms - self._last_ms > MERGE_MS
        if begins:
            self._begin(now_ms)
        if self.num_bursts == 1:
            self._first_units += units
        else:
            self._sum_units += units
        self._estimate()
        return begins

    def hint(self, *, period_ms: float, units: float | None) -> None:
        """What the server expects, for the time before anything was measured."""
        self._hinted_period_ms = period_ms
        if units:
            self._hinted_gap_ms = period_ms / units
            self._estimate()

    def period_ms(self) -> float:
        """How long the source is usually silent between bursts."""
        if self._periods:
            return self._median_ms
        return self._hinted_period_ms or self._first_units * self.gap_ms

    def _begin(self, now_ms: float) -> None:
        self.num_bursts += 1
        if self._last_ms is not None:
            period_ms = min(now_ms - self._last_ms, self._longest_ms())
            kept = exp(-period_ms / MEMORY_MS)
            self._sum_ms = self._sum_ms * kept + period_ms
            self._sum_units *= kept
            self._remember(period_ms)
        self._last_ms = now_ms

    def _longest_ms(self) -> float:
        """A pause beyond this is a stall of this length: it says nothing of the pace."""
        if len(self._periods) < _MIN_BURSTS:
            return MAX_PERIOD_MS
        return min(MAX_PERIOD_MS, STALL_PERIODS * self._median_ms)

    def _remember(self, period_ms: float) -> None:
        periods, ordered = self._periods, self._ordered
        if len(periods) == REMEMBERED_BURSTS:
            del ordered[bisect_left(ordered, periods.popleft())]
        periods.append(period_ms)
        insort(ordered, period_ms)
        self._median_ms = ordered[len(ordered) // 2]

    def _estimate(self) -> None:
        if self._sum_ms > 0 and self._sum_units > 0:
            self.gap_ms = self._sum_ms / self._sum_units
        else:
            self.gap_ms = self._hinted_gap_ms or _PRIOR_GAP_MS
