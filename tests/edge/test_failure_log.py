"""What of failing requests comes into the log."""

from __future__ import annotations

import pytest

from paceline.edge.failure_log import EVERY_S, FailureLog
from paceline.edge.telemetry import RequestRecord
from paceline.errors import InvalidRequest, PacelineError, WorkerDied, WorkerTimeout


@pytest.fixture
def noted(caplog):
    """Notes failures, each (seconds, error), and gives back the lines."""

    def note(*failures: tuple[float, PacelineError | None]) -> list[str]:
        failure_log = FailureLog()
        for index, (at_s, failure) in enumerate(failures):
            failure_log.note(RequestRecord(at_s, f"r{index}", failure=failure), at_s)
        return [record.getMessage() for record in caplog.records]

    return note


def test_what_callers_do_and_what_went_well_is_not_told(noted) -> None:
    assert noted((0.0, InvalidRequest("a body")), (1.0, None)) == []


def test_a_kind_of_failure_is_told_once_in_a_while_with_how_many_there_were(noted) -> None:
    died = WorkerDied("it died")
    lines = noted(*[(i / 100, died) for i in range(300)], (EVERY_S, died), (2 * EVERY_S, died))
    assert lines == [
        "request r0, no worker: it died (worker_died)",
        "request r300, no worker: it died (worker_died); 299 more like the last since",
        "request r301, no worker: it died (worker_died)",
    ]


def test_kinds_do_not_hide_one_another(noted) -> None:
    assert len(noted((0.0, WorkerDied("it died")), (0.1, WorkerTimeout("it is silent")))) == 2
