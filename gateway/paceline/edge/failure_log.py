"""Failures in the log: each kind at each worker once in a while, however many requests meet it."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from paceline.edge.telemetry import RequestRecord
from paceline.errors import RequestError

log = logging.getLogger(__name__)

EVERY_S = 10.0
"""A dead worker of a busy gateway would else write hundreds of lines a second."""


@dataclass(slots=True)
class _Told:
    at_s: float
    num_since: int = 0


class FailureLog:
    """What operators must know of: not what callers do, but what workers and we fail at. How many
    failed the metrics count."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], _Told] = {}

    def note(self, record: RequestRecord, now_s: float) -> None:
        """Of a request that has ended; nothing if nobody failed it."""
        failure, decision = record.failure, record.decision
        if failure is None or isinstance(failure, RequestError):
            return
        where = decision.worker if decision else "no worker"
        told = self._told.get((where, failure.code))
        if told is not None and now_s < told.at_s + EVERY_S:
            told.num_since += 1
            return
        more = f"; {told.num_since} more like the last since" if told and told.num_since else ""
        self._told[where, failure.code] = _Told(now_s)
        log.warning(
            "request %s, %s: %s (%s)%s",
            record.request_id,
            where,
            failure.message,
            failure.code,
            more,
        )
