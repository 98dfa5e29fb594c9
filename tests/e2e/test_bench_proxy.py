"""The proxy bench, small: mock, gateway and client as the processes they are."""

from __future__ import annotations

import io
import math
from pathlib import Path

from rich.console import Console

from paceline.bench.proxy.cells import DIRECT, OURS, REQUEST_8, STREAM
from paceline.bench.proxy.figures import headline
from paceline.bench.proxy.runner import Plan, run
from paceline.bench.proxy.targets import Command, launches

PLAN = Plan(
    cells=(REQUEST_8, STREAM),
    repeats=1,
    window_s=0.3,
    warmup_s=0.1,
    settle_s=0.1,
    slow_cells=(),
    slow_repeats=0,
    idle_counts=(5, 20),
    rates={REQUEST_8.kind: 40.0, STREAM.kind: 6.0},
)


def test_every_figure_is_there_and_a_peer_that_will_not_start_is_told_of() -> None:
    def broken(workers: object, folder: Path) -> Command:
        return Command(arguments=["false"], port=9, env={})

    console = Console(file=io.StringIO())
    found, rates, missing = run(PLAN, {**launches({}), "broken": broken}, console)
    by_name = {(one.cell, one.target): one for one in found.measurements}
    assert set(by_name) == {(c, t) for c in PLAN.cells for t in (DIRECT, OURS)}
    for one in found.measurements:
        assert one.sample.failed == 0
        assert one.num_units > 0
        assert one.sample.client_cpu_s >= 0
    assert by_name[REQUEST_8, OURS].sample.proxy_cpu_s > 0
    assert by_name[STREAM, OURS].sample.event_delay_p50_s is not None
    assert found.memory[OURS].readings[0][1] > 2**20
    assert math.isfinite(found.memory[OURS].kib_per_stream)
    assert "broken" in missing
    assert rates[f"{OURS} {STREAM.kind}"] == 6.0
    assert headline(found)["cpu_request_ratio_8"] is None
