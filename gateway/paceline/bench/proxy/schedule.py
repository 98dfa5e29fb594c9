"""An open loop: when requests are due depends on the clock alone, never on answers."""

from __future__ import annotations

from collections.abc import Iterator


class OpenLoop:
    """Request number n is due at `start_s + n / rate`, however slow the answers before it were.

    A client that waits for an answer before it asks again would ask a slow proxy for less, and
    measure it the kinder the slower it is.
    """

    def __init__(self, *, start_s: float, rate: float) -> None:
        if rate <= 0:
            raise ValueError(f"a rate must be positive: {rate}")
        self._start_s = start_s
        self._rate = rate
        self.num_taken = 0

    @property
    def next_due_s(self) -> float:
        return self._start_s + self.num_taken / self._rate

    def take_due(self, now_s: float) -> Iterator[float]:
        """The times, up to now, at which requests were due that have not been taken yet."""
        while (due_s := self.next_due_s) <= now_s:
            self.num_taken += 1
            yield due_s
