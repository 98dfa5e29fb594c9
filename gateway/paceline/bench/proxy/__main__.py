"""The command line of `make bench-proxy`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from paceline.bench import results
from paceline.bench.proxy import page
from paceline.bench.proxy.cells import CELLS, DIRECT, REQUEST_8, REQUEST_64, STREAM
from paceline.bench.proxy.figures import headline
from paceline.bench.proxy.limits import raise_descriptor_limit, stream_counts
from paceline.bench.proxy.peers import PEERS, NotInstalled, install
from paceline.bench.proxy.runner import Plan, run
from paceline.bench.proxy.targets import BenchError, launches
from paceline.testing.vllm_cpu.progress import say

IDLE_COUNTS = [1000, 2000, 4000, 8000]
QUICK_IDLE_COUNTS = [1000, 3000]
WIDTH = 150


def main(argv: list[str] | None = None) -> int:
    """0, or 1 if something of the bench's own failed; missing peers are told of in the table."""
    args = _arguments(argv)
    console = Console(highlight=False)
    began_s, load_before = time.monotonic(), os.getloadavg()[0]
    counts = stream_counts(
        QUICK_IDLE_COUNTS if args.quick else IDLE_COUNTS, raise_descriptor_limit()
    )
    plan = quick_plan(counts) if args.quick else whole_plan(counts)
    programs, missing = {}, {}
    for name in args.peers:
        try:
            programs[name] = install(PEERS[name], console)
        except NotInstalled as error:
            missing[name] = "cannot be installed"
            say(console, str(error))
    try:
        found, rates, not_done = run(plan, launches(programs), console)
    except BenchError as error:
        say(console, f"failed: {error}")
        return 1
    ran = dict.fromkeys(one.target for one in found.measurements)
    report = page.Report(
        results=found,
        cells=plan.cells,
        targets=[DIRECT, *(name for name in ran if name != DIRECT)],
        headline=headline(found),
        rates=rates,
        missing=missing | not_done,
        conditions=_conditions(plan, began_s, load_before),
    )
    written = {
        "headline": report.headline,
        "conditions": report.conditions,
        "missing": report.missing,
        "rates": rates,
        "idle": {one.target: one.readings for one in found.memory.values()},
        "cells": [one.as_json() for one in found.measurements],
    }
    results.write("proxy", written, page.markdown(report), folder=args.out, suffix="md")
    page.show(report, console if console.is_terminal else Console(width=WIDTH, highlight=False))
    return 0


def whole_plan(idle_counts: list[int]) -> Plan:
    """About a quarter of an hour with all peers."""
    return Plan(
        cells=CELLS,
        repeats=5,
        window_s=3.0,
        slow_cells=(REQUEST_8, REQUEST_64, STREAM),
        slow_repeats=3,
        idle_counts=tuple(idle_counts),
    )


def quick_plan(idle_counts: list[int]) -> Plan:
    """About three minutes."""
    return Plan(
        cells=tuple(cell for cell in CELLS if cell.main),
        repeats=3,
        window_s=3.0,
        slow_cells=(REQUEST_64,),
        slow_repeats=2,
        idle_counts=tuple(idle_counts),
    )


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench-proxy", description=page.METHOD)
    parser.add_argument(
        "--peers", type=_peer_names, default=list(PEERS), metavar="NAME,…",
        help=f"which to compare with: {','.join(PEERS)} (default: all); none: 'none'",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="main cells, fewer repeats")
    parser.add_argument("--out", type=Path, default=results.RESULTS, metavar="FOLDER")
    return parser.parse_args(argv)


def _peer_names(text: str) -> list[str]:
    """Raises ArgumentTypeError for a name that is not known."""
    names = [] if text == "none" else text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)} is not known; known are {', '.join(PEERS)}"
        )
    return names


def _conditions(plan: Plan, began_s: float, load_before: float) -> dict[str, str]:
    load = f"{load_before:.1f} before, {os.getloadavg()[0]:.1f} at the end"
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "Python": platform.python_version(),
        "repeats": f"{plan.repeats}, of {plan.window_s:g} s windows",
        "load average": f"{load} (this bench itself makes 1 to 2)",
        "took": f"{(time.monotonic() - began_s) / 60:.1f} min",
        "peers": ", ".join(f"{peer.name} {peer.version}" for peer in PEERS.values()),
    }


if __name__ == "__main__":
    sys.exit(main())
