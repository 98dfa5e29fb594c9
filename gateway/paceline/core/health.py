"""Whether a worker may be asked: probes, a circuit breaker, and a slow start for who comes back.

Two things are known of a worker. *Probes* and refused connections say whether it is there: three
failed probes in a row, or one refused connection, and it is down until a probe succeeds. *Answers*
say whether it is any good: a worker can be there and fail every request. Five failed requests in a
row open its breaker; it is left alone for a while, then a single request tries it. If that one is
answered it is back, else it is left alone for twice as long, up to a minute.

What counts as failed is a worker's doing: an answer cut short, silence, nonsense, a 500. A client's
errors are not, nor is back-pressure (429, 503): breaking on those turns a bad request, or a busy
hour, into an outage (sgl-project/sglang #25811).

Who comes back has cold caches and an empty queue, which makes it look like the best choice to
everyone at once; so its share of the load grows over some seconds (Envoy's slow start).

Where it fails: failures are counted in a row, so a worker that fails every other request stays.
Nothing here removes the last worker: with none up, `decide` asks one all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    UP = "up"
    TRIAL = "trial"  # may be sent one request, to see
    DOWN = "down"


UP, TRIAL, DOWN = Standing  # to look one up in its class costs as much as a call


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLaw:
    """Times in seconds; `least_share` is what a worker gets in the first moment of its return."""

    failed_probes_to_go_down: int = 3
    failed_requests_to_open: int = 5
    open_s: float = 5.0
    max_open_s: float = 60.0
    slow_start_s: float = 10.0
    least_share: float = 0.1


class Health:
    """One worker's. Up until it is known to be down. Times are monotonic seconds, handed in."""

    def __init__(self, law: HealthLaw = HealthLaw()) -> None:
        self._law = law
        self._failed_probes = 0
        self._failed_requests = 0
        self._num_openings = 0  # since it was last well: each leaves it alone for longer
        self._reachable = True
        self._open_until_s: float | None = None
        self._trial_under_way = False
        self._returned_s: float | None = None

    @property
    def is_well(self) -> bool:
        """Up, with nothing to remember against it: then what goes well changes nothing."""
        return (
            self._reachable
            and self._open_until_s is None
            and self._returned_s is None
            and not self._failed_requests
            and not self._num_openings
        )

    # -- what is seen of it ----------------------------------------------------------------------

    def probe_succeeded(self, now_s: float) -> None:
        self._failed_probes = 0
        if not self._reachable:
            self._reachable = True
            self._returned_s = now_s

    def probe_failed(self) -> None:
        self._failed_probes += 1
        if self._failed_probes >= self._law.failed_probes_to_go_down:
            self._reachable = False

    def unreachable(self) -> None:
        """A request found no connection. The next good probe brings it back."""
        self._reachable = False

    def request_began(self) -> None:
        self._trial_under_way = self._open_until_s is not None

    def request_succeeded(self, now_s: float) -> None:
        """A whole answer; or the first of one, from a worker on trial."""
        self._failed_requests = 0
        if self._open_until_s is not None:
            self._open_until_s, self._trial_under_way = None, False
            self._returned_s = now_s
        self._num_openings = 0

    def request_failed(self, now_s: float) -> None:
        self._failed_requests += 1
        on_trial = self._trial_under_way
        self._trial_under_way = False
        if on_trial or (
            self._open_until_s is None
            and self._failed_requests >= self._law.failed_requests_to_open
        ):
            wait_s = min(self._law.max_open_s, self._law.open_s * 2**self._num_openings)
            self._num_openings += 1
            self._open_until_s = now_s + wait_s

    def request_said_nothing(self) -> None:
        """It ended in a way that says nothing of the worker: a client left, or back-pressure."""
        self._trial_under_way = False

    # -- what follows from it --------------------------------------------------------------------

    def standing(self, now_s: float) -> Standing:
        if not self._reachable:
            return DOWN
        if self._open_until_s is None:
            return UP
        if now_s < self._open_until_s or self._trial_under_way:
            return DOWN
        return TRIAL

    def share(self, now_s: float) -> float:
        """Of the load that a worker of its kind would get, the part that it may have: (0, 1]."""
        if self._returned_s is None:
            return 1.0
        grown = (now_s - self._returned_s) / self._law.slow_start_s
        if grown >= 1.0:
            self._returned_s = None
        return min(1.0, max(self._law.least_share, grown))

    def steady_until_s(self, now_s: float) -> float:
        """Until when both of these stay as they are, if nothing more is seen."""
        if self._returned_s is not None:
            return now_s
        if self._open_until_s is not None and now_s < self._open_until_s:
            return self._open_until_s
        return float("inf")
