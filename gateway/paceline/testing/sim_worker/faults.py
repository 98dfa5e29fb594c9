"""Faults on demand: what goes wrong with which of the next requests.

A fault is a JSON object, the same in `--fault`, in `POST /sim/faults` and here:

    {"kind": "error", "status": 503, "message": "…", "retry_after_s": 2}   before any answer
    {"kind": "error_event", "at_token": 5, "status": 500}                  within the stream
    {"kind": "die", "at_token": 5, "mid_event": true, "exit": false}       the connection is cut
    {"kind": "hang", "at_token": 5}                                        silence from then on
    {"kind": "slow", "factor": 10}                                         every pass, all requests
    {"kind": "comments", "every_s": 0.05}                                  keep-alive comments
    {"kind": "gzip"}                                                       Content-Encoding: gzip
    {"kind": "merge", "every_s": 0.2}                                      events joined, as by lag
    {"kind": "saturated", "waiting": 50}                                   full: 503, and the gauges
    {"kind": "engine_death", "for_s": 2}                                   500, then a new engine
    {"kind": "down", "for_s": 2}                                           no connection, then anew

The last two happen when they are set: what is under way ends, and after `for_s` the worker is back
as a new process would be, its counters at zero.

`count` is how many requests it meets; without it, all until the faults are replaced. `at_token`
counts the tokens of the request that have been sent when it strikes: 0 is after the status line and
before the first event, as when vLLM's queue limit is hit late. A fault whose token is never reached
does not strike.

Requests are those of every endpoint in `dialects`. What an `error_event` comes to is the dialect's
affair: `/v1/messages` turns it into vLLM's `internal_error`, `/v1/responses` has no such event and
is cut. A `body` in the dialect's own shape, with a `type`, goes out there as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.refusals import Refusal


class FaultKind(StrEnum):
    ERROR = "error"
    ERROR_EVENT = "error_event"
    DIE = "die"
    HANG = "hang"
    SLOW = "slow"
    COMMENTS = "comments"
    GZIP = "gzip"
    MERGE = "merge"
    SATURATED = "saturated"
    ENGINE_DEATH = "engine_death"
    DOWN = "down"


_KEYS: dict[FaultKind, frozenset[str]] = {
    FaultKind.ERROR: frozenset({"status", "message", "body", "retry_after_s"}),
    FaultKind.ERROR_EVENT: frozenset({"at_token", "status", "message", "body"}),
    FaultKind.DIE: frozenset({"at_token", "mid_event", "exit"}),
    FaultKind.HANG: frozenset({"at_token"}),
    FaultKind.SLOW: frozenset({"factor"}),
    FaultKind.COMMENTS: frozenset({"every_s"}),
    FaultKind.GZIP: frozenset(),
    FaultKind.MERGE: frozenset({"every_s"}),
    FaultKind.SATURATED: frozenset({"waiting"}),
    FaultKind.ENGINE_DEATH: frozenset({"for_s"}),
    FaultKind.DOWN: frozenset({"for_s"}),
}
_TYPES: dict[str, type] = {"message": str, "mid_event": bool, "exit": bool}
_RANGES: dict[str, tuple[float, float, bool]] = {  # least, most, whole numbers only
    "count": (1, 1_000_000, True),
    "at_token": (0, 1_000_000, True),
    "status": (400, 599, True),
    "retry_after_s": (0, 86_400, True),
    "factor": (0.01, 1_000_000, False),
    "every_s": (0.001, 3_600, False),
    "for_s": (0, 3_600, False),
    "waiting": (0, 1_000_000, True),
}
OUTAGES = (FaultKind.ENGINE_DEATH, FaultKind.DOWN)  # of the worker, at once
_STANDING = (FaultKind.SLOW, FaultKind.SATURATED, *OUTAGES)  # not of single requests
STRIKING = (FaultKind.ERROR_EVENT, FaultKind.DIE, FaultKind.HANG)  # at a token of the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault; fields that its kind does not use keep their defaults. `body` is any JSON."""

    kind: FaultKind
    count: int | None = None
    at_token: int = 0
    status: int = 0
    message: str = ""
    body: Any = None
    retry_after_s: int | None = None
    mid_event: bool = False
    exit: bool = False
    factor: float = 1.0
    every_s: float = 1.0
    waiting: int = 100
    for_s: float = 1.0

    def refusal(self) -> Refusal:
        """What an error says: `body` as it is, else vLLM's body with the status and message."""
        status = self.status or (503 if self.kind is FaultKind.ERROR else 500)
        if self.body is not None:
            refusal = Refusal(status, self.body)
        elif self.message:
            refusal = refusals.error(status, "InternalServerError", self.message)
        elif status == 503:
            refusal = refusals.too_busy()
        else:
            refusal = refusals.error(status, "InternalServerError", "Internal server error")
        if self.retry_after_s is not None:
            refusal.headers["retry-after"] = str(self.retry_after_s)
        return refusal


class Faults:
    """The faults in force and how many requests each will still meet."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self.replace(faults)

    def replace(self, faults: Sequence[Fault]) -> None:
        self._faults = [(fault, fault.count) for fault in faults]

    @property
    def slow_factor(self) -> float:
        """The product of all `slow` faults: how much longer every pass takes."""
        factor = 1.0
        for fault, _ in self._faults:
            factor *= fault.factor if fault.kind is FaultKind.SLOW else 1.0
        return factor

    @property
    def saturation(self) -> Fault | None:
        return next((f for f, _ in self._faults if f.kind is FaultKind.SATURATED), None)

    def take_outage(self) -> Fault | None:
        """An outage that is to begin now; it will not be here again."""
        outage = next((f for f, _ in self._faults if f.kind in OUTAGES), None)
        self._faults = [pair for pair in self._faults if pair[0].kind not in OUTAGES]
        return outage

    def take(self) -> RequestFaults:
        """Those that meet the next request: of each kind the first that is left."""
        taken: dict[FaultKind, Fault] = {}
        left: list[tuple[Fault, int | None]] = []
        for fault, count in self._faults:
            if fault.kind not in taken and fault.kind not in _STANDING:
                taken[fault.kind] = fault
                count = None if count is None else count - 1
            if count != 0:
                left.append((fault, count))
        self._faults = left
        return RequestFaults(taken)

    def as_json(self) -> dict[str, Any]:
        return {"faults": [_shown(fault, count) for fault, count in self._faults]}


class RequestFaults:
    """What goes wrong with one request."""

    def __init__(self, faults: dict[FaultKind, Fault]) -> None:
        self._faults = faults

    @property
    def error(self) -> Refusal | None:
        fault = self._faults.get(FaultKind.ERROR)
        return fault.refusal() if fault else None

    @property
    def striking(self) -> Fault | None:
        """The first fault to strike within the answer."""
        faults = [self._faults[kind] for kind in STRIKING if kind in self._faults]
        return min(faults, key=lambda fault: fault.at_token, default=None)

    @property
    def comments_every_s(self) -> float | None:
        fault = self._faults.get(FaultKind.COMMENTS)
        return fault.every_s if fault else None

    @property
    def merged_every_s(self) -> float | None:
        fault = self._faults.get(FaultKind.MERGE)
        return fault.every_s if fault else None

    @property
    def gzip(self) -> bool:
        return FaultKind.GZIP in self._faults


def parse_faults(value: object, *, can_exit: bool) -> list[Fault]:
    """A fault, or `{"faults": [fault, …]}`. Raises ValueError with what is wrong."""
    if isinstance(value, dict) and "faults" in value:
        value = value["faults"]
    items = value if isinstance(value, list) else [value]
    faults = [_parse(item) for item in items]
    if not can_exit and any(fault.exit for fault in faults):
        raise ValueError("exit: this worker runs inside another process")
    return faults


def _parse(item: object) -> Fault:
    if not isinstance(item, dict):
        raise ValueError(f"a fault is an object with a kind, not {item!r}")
    if item.get("kind") not in list(FaultKind):
        raise ValueError(f"kind must be one of {', '.join(FaultKind)}, not {item.get('kind')!r}")
    kind = FaultKind(item["kind"])
    countable = set() if kind in _STANDING else {"count"}
    allowed = _KEYS[kind] | countable
    if unknown := sorted(item.keys() - allowed - {"kind"}):
        raise ValueError(f"{kind} does not take {', '.join(unknown)}; it takes {sorted(allowed)}")
    for key in item.keys() - {"kind", "body"}:
        if not _fits(key, item[key]):
            raise ValueError(f"{key} cannot be {item[key]!r}")
    return Fault(**{**item, "kind": kind})


def _fits(key: str, value: object) -> bool:
    if key in _TYPES:
        return isinstance(value, _TYPES[key])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    low, high, whole = _RANGES[key]
    return low <= value <= high and (isinstance(value, int) or not whole)


def _shown(fault: Fault, count: int | None) -> dict[str, Any]:
    keys = [f.name for f in fields(fault) if f.name in _KEYS[fault.kind]]
    return {"kind": fault.kind, **{key: getattr(fault, key) for key in keys}, "count": count}
