"""Decisions kept for operators, on disks that fail."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from paceline.core.types import Classification, CopyRatio, Decision, Reason, Workload
from paceline.edge.decisions import Decisions
from paceline.edge.telemetry import RequestRecord

FULL = Path("/dev/full")
DECISION = Decision(
    classification=Classification(
        workload=Workload.CHAT, label_confidence=0.9, copy_ratio=CopyRatio(quantiles=(0.0,) * 5)
    ),
    model="m", pool="p", worker="http://a", reason=Reason.COST, rule=None, pools=(), rules=(),
)  # fmt: skip


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_full_disk_costs_lines_and_nothing_else(monkeypatch):
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    decisions = Decisions(FULL)
    for _ in range(3):
        decisions.ended(replace(RequestRecord(0.0), decision=DECISION))
    decisions.close()
    assert (decisions.num_dropped, failures) == (3, [])
