"""Runs the cells: rates first, then every target in turn, again and again."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from paceline.bench.proxy.cells import (
    DIRECT,
    OURS,
    REQUEST_8,
    STREAM,
    Cell,
    IdleMemory,
    Measurement,
)
from paceline.bench.proxy.figures import Results
from paceline.bench.proxy.idle import IdleSpec
from paceline.bench.proxy.load import LoadSpec, Sample
from paceline.bench.proxy.targets import (
    BenchError,
    Launch,
    Mock,
    NotStarted,
    Target,
    running,
    running_mock,
)
from paceline.testing.vllm_cpu.guarded import spawned
from paceline.testing.vllm_cpu.progress import evidence, say

SLOW = "litellm"
"""Has rates of its own: at those of the others it would stand still."""
AIMED_SHARE = 0.35
"""Of a core, for the dearest proxy of a cell: below the bound, since CPU per request varies."""
AIMED_HARNESS_SHARE = 0.45
MAX_STREAMS_PER_S = 61.5
"""40 at a time, of 0.65 s each."""
MAX_RATE = 2000.0
START_GRACE_S = 60.0
PROBE_RATES = {"512": 300.0, str(32 * 1024): 200.0, str(256 * 1024): 50.0, STREAM.kind: 12.0}
SLOW_PROBE_RATES = {REQUEST_8.kind: 6.0, STREAM.kind: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    cells: tuple[Cell, ...]
    repeats: int
    window_s: float
    slow_cells: tuple[Cell, ...]
    slow_repeats: int
    idle_counts: tuple[int, ...]
    probe_s: float = 1.5
    warmup_s: float = 0.8
    settle_s: float = 1.0
    rates: Mapping[str, float] | None = None
    """By the kind of cell; None: found out."""

    def takes_part(self, target: str, cell: Cell, repeat: int) -> bool:
        if target != SLOW:
            return True
        return cell in self.slow_cells and repeat < self.slow_repeats


@dataclass(slots=True)
class Session:
    """One run: what is in it, and what has been seen so far."""

    plan: Plan
    mock: Mock
    targets: Sequence[Target]
    folder: Path
    rates: dict[tuple[str, str], float] = field(default_factory=dict)  # by target and kind

    def find_rates(self, progress: Progress) -> None:
        """The same rate for all but the slow one: the cell's own, or what the dearest can bear at
        `AIMED_SHARE`."""
        kinds = {cell.kind: cell for cell in self.plan.cells}
        task = progress.add_task("finding rates", total=len(kinds))
        for kind, cell in kinds.items():
            if self.plan.rates is not None:
                for target in self.targets:
                    self.rates[target.name, kind] = self.plan.rates[kind]
                continue
            fast = [one for one in self.targets if one.name not in (DIRECT, SLOW)]
            rate = cell.fixed_rate or self._bearable(cell, fast, PROBE_RATES[kind])
            for target in self.targets:
                self.rates[target.name, kind] = rate
            slow = [one for one in self.targets if one.name == SLOW]
            if slow and kind in SLOW_PROBE_RATES:
                self.rates[SLOW, kind] = self._bearable(cell, slow, SLOW_PROBE_RATES[kind])
            progress.advance(task)

    def _bearable(self, cell: Cell, targets: Sequence[Target], probe_rate: float) -> float:
        rate = MAX_STREAMS_PER_S if cell.stream else MAX_RATE
        for target in targets:
            seen = self.measure(cell, target, -1, rate=probe_rate, window_s=self.plan.probe_s)
            if seen.sample.failed:
                continue  # it will fail again, and its cells say so
            for share, aimed in (
                (seen.proxy_share, AIMED_SHARE),
                (seen.mock_share, AIMED_HARNESS_SHARE),
                (seen.client_share, AIMED_HARNESS_SHARE),
            ):
                rate = min(rate, probe_rate * aimed / max(share, 0.01))
        return float(f"{rate:.2g}")

    def measure(
        self, cell: Cell, target: Target, repeat: int, *, rate: float, window_s: float
    ) -> Measurement:
        """Offer one cell's load to one target. Raises BenchError if the client fails."""
        spec = LoadSpec(
            port=target.port,
            rate=rate,
            connections=cell.connections_at(rate),
            body_bytes=cell.body_bytes,
            stream=cell.stream,
            warmup_s=self.plan.warmup_s,
            window_s=window_s,
            mock_pid=self.mock.pid,
            proxy_pid=target.pid,
        )
        limit_s = START_GRACE_S + spec.warmup_s + window_s
        seen = run_module("load", asdict(spec), self.folder, limit_s)
        sample = Sample(**seen)
        return Measurement(cell=cell, target=target.name, repeat=repeat, rate=rate, sample=sample)

    def measure_all(self, progress: Progress) -> list[Measurement]:
        """Repeat by repeat, cell by cell, target by target: what drifts, drifts for all."""
        steps = [
            (repeat, cell, target)
            for repeat in range(self.plan.repeats)
            for cell in self.plan.cells
            for target in self.targets
            if self.plan.takes_part(target.name, cell, repeat)
        ]
        task = progress.add_task("measuring", total=len(steps))
        found: list[Measurement] = []
        for repeat, cell, target in steps:
            if repeat == len({one.repeat for one in found}):
                say(progress.console, f"repeat {repeat + 1} of {self.plan.repeats}")
            progress.update(task, description=f"{cell.name} · {target.name}")
            # Few of the slow one's requests come in a window, and its CPU is much: twice as long.
            window_s = self.plan.window_s * (2 if target.name == SLOW else 1)
            rate = self.rates[target.name, cell.kind]
            found.append(self.measure(cell, target, repeat, rate=rate, window_s=window_s))
            progress.advance(task)
        return found


def run_module(name: str, spec: Mapping[str, Any], folder: Path, limit_s: float) -> Any:
    """Run `load` or `idle` as a process; what it wrote. Raises BenchError."""
    out, log = folder / f"{name}.json", folder / f"{name}.log"
    out.unlink(missing_ok=True)
    module = [sys.executable, "-m", f"paceline.bench.proxy.{name}"]
    with spawned([*module, json.dumps(spec), str(out)], log, os.environ) as process:
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{name} did not end within {limit_s:.0f} s{evidence(log)}") from None
    if code != 0:
        raise BenchError(f"{name} failed{evidence(log)}")
    return json.loads(out.read_text(encoding="utf-8"))


def run(
    plan: Plan, launches: Mapping[str, Launch], console: Console
) -> tuple[Results, dict[str, float], dict[str, str]]:
    """Everything, and the rates by target and kind, and what could not be done, by target.

    Raises BenchError if the mock, Paceline or the client does not do its part; a peer that does not
    is left out, and told of.
    """
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as name:
        folder = Path(name)
        missing: dict[str, str] = {}
        memory = measure_memory(plan, launches, folder, console, missing)
        with contextlib.ExitStack() as stack:
            mock = stack.enter_context(running_mock(folder))
            targets = [Target(name=DIRECT, port=mock.ports[0], pid=None)]
            for name, launch in launches.items():
                if name in missing:
                    continue
                try:
                    proxy = running(name, launch, mock, folder, console)
                    targets.append(stack.enter_context(proxy))
                except BenchError as error:
                    _leave_out(name, error, missing, console)
            session = Session(plan=plan, mock=mock, targets=targets, folder=folder)
            progress = stack.enter_context(Progress(console=console, transient=True))
            session.find_rates(progress)
            found = session.measure_all(progress)
        rates = {f"{target} {kind}": rate for (target, kind), rate in session.rates.items()}
        return Results(found, memory), rates, missing


def measure_memory(
    plan: Plan,
    launches: Mapping[str, Launch],
    folder: Path,
    console: Console,
    missing: dict[str, str],
) -> list[IdleMemory]:
    """Each proxy as new but the slow one, with a mock of its own, and idle streams through it."""
    memory: list[IdleMemory] = []
    if len(plan.idle_counts) < 2:
        return memory
    for name, launch in launches.items():
        if name == SLOW:
            continue
        say(console, f"{name}: memory with {max(plan.idle_counts):,} idle streams")
        try:
            with (
                running_mock(folder) as mock,
                running(name, launch, mock, folder, console) as target,
            ):
                assert target.pid is not None
                spec = IdleSpec(
                    port=target.port,
                    counts=plan.idle_counts,
                    proxy_pid=target.pid,
                    settle_s=plan.settle_s,
                )
                readings = run_module("idle", asdict(spec), folder, 180.0)
        except NotStarted as error:
            _leave_out(name, error, missing, console)
            continue
        except BenchError as error:
            _leave_out(f"{name}: memory", error, missing, console)
            continue
        pairs = tuple((int(count), int(rss)) for count, rss in readings)
        memory.append(IdleMemory(target=name, readings=pairs))
    return memory


def _leave_out(name: str, error: BenchError, missing: dict[str, str], console: Console) -> None:
    if name.startswith(OURS):
        raise error
    missing[name] = str(error).partition("\n")[0].partition(";")[0]
    say(console, f"left out: {error}")
