"""Runs it, prints the page, writes `control.json`, `control.txt` and pictures to bench-results/.

With `--quick` one seed, a third of the time and half of the rates: for a first look, in a few
minutes. Always exits with 0: what is judged are the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from paceline.bench.control import figures, page
from paceline.bench.control.capacity import Capacity
from paceline.bench.control.plan import PROCESSES, SHARES, Done, all_done, capacities
from paceline.bench.control.robustness import Recovery, recovery_of
from paceline.bench.results import RESULTS, screen, write_results
from paceline.bench.scenarios import load
from paceline.sim.scenario import Scenario

MIXES = ("mixed", "edits", "code")
ROBUSTNESS = ("stops-copying", "slow-worker", "metrics-vanish")
QUICK_SHARES = (0.1, 0.5, 0.85, 1.15)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench-control", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, shorter, fewer rates")
    parser.add_argument(
        "--mix", action="append", choices=MIXES, help="only this one; again for more"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    scenarios = [_quick(load(name), args.quick) for name in args.mix or MIXES]
    console = screen()
    console.print("finding the highest rate that the best static configuration bears …")
    found = capacities(scenarios)
    done = _run(scenarios, found, QUICK_SHARES if args.quick else SHARES)
    recoveries = _recoveries(quick=args.quick)
    cells = figures.cells(done)
    headline = figures.headline(cells)
    draw = partial(
        page.page,
        cells=cells,
        capacities=found,
        recoveries=recoveries,
        figures=headline,
        pools={scenario.name: layout(scenario) for scenario in scenarios},
    )
    draw(console)
    report = {
        "headline": {name: round(value, 4) for name, value in headline.items()},
        "simulated": True,
        "quick": args.quick,
        "capacity": {name: asdict(one) for name, one in found.items()},
        "layouts": {scenario.name: layout(scenario) for scenario in scenarios},
        "cells": [_cell(cell) for cell in cells],
        "crossovers": {
            mix: [asdict(figures.crossover(of_mix, name)) for name in page.CROSSING]
            for mix, of_mix in page.by_mix(cells).items()
        },
        "robustness": [asdict(one) for one in recoveries],
    }
    write_results(args.out, "control", report, draw)
    for name, picture in page.pictures(cells, recoveries).items():
        (args.out / f"{name}.svg").write_text(picture, encoding="utf-8")
    return 0


def layout(scenario: Scenario) -> str:
    """A fleet in words."""
    return ", ".join(
        f"{pool.num_workers} x {pool.name}" + (f" k={pool.k}" if pool.k else "")
        for pool in scenario.pools
    )


def _quick(scenario: Scenario, quick: bool) -> Scenario:
    return replace(scenario, duration_s=100.0, seeds=scenario.seeds[:1]) if quick else scenario


def _run(
    scenarios: Sequence[Scenario], found: dict[str, Capacity], shares: Sequence[float]
) -> list[Done]:
    rates = {name: one.rate_per_s for name, one in found.items()}
    with _progress() as progress:
        bar = progress.add_task("simulating rates and seeds", total=None)
        return all_done(
            scenarios,
            rates,
            shares=shares,
            advance=lambda done, of: progress.update(bar, completed=done, total=of),
        )


def _recoveries(*, quick: bool) -> list[Recovery]:
    asked = []
    for name in ROBUSTNESS:
        scenario = load(name)
        seeds = scenario.seeds[:1] if quick else scenario.seeds
        for policy in ("paceline", "least loaded"):
            asked += [(scenario, policy, scenario.rates[0], seed) for seed in seeds]
    with _progress() as progress, get_context("spawn").Pool(PROCESSES) as pool:
        return list(
            progress.track(
                pool.imap(recovery_of, asked), total=len(asked), description="what goes wrong"
            )
        )


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn())


def _cell(cell: figures.Cell) -> dict[str, Any]:
    others = {name: cell.ratio(name) for name in page.REFERENCES}
    best = cell.best_static
    return {
        "mix": cell.mix,
        "share": cell.share,
        "rate_per_s": cell.rate_per_s,
        "best_static": best,
        "ratios": {
            name: asdict(one) for name, one in {"best static": cell.ratio(best), **others}.items()
        },
        "runs": {
            name: {seed: asdict(result) for seed, result in by_seed.items()}
            for name, by_seed in cell.runs.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
