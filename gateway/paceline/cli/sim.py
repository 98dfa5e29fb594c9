"""`paceline sim SCENARIO`: what policies make of simulated traffic, as a table.

Exits with 0, or 2 when the scenario cannot be read or a policy is not known.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from statistics import mean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from paceline.bench.scenarios import load, names
from paceline.errors import ConfigurationError
from paceline.settings.problems import did_you_mean
from paceline.sim.scenario import Scenario
from paceline.sim.simulator import POLICIES, RunResult, run
from paceline.sim.workload import requests

WIDTH = 164
"""Columns that the table needs; a narrower terminal wraps its lines."""
COLUMNS = (
    "rate", "policy", "goodput", "good", "at 2x", "at 3x", "E2E s", "TTFT s", "TPOT ms",
    "tokens/s", "wasted", "running", "switches", "regret", "pools",
)  # fmt: skip


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "sim",
        help="simulate policies on a fleet",
        description="Simulates a scenario under several policies, on the same arrivals.",
        epilog=f"Scenarios: {', '.join(names())}. Policies: {', '.join(POLICIES)}.",
    )
    parser.add_argument("scenario", metavar="SCENARIO", help="a file, or the name of one of ours")
    parser.add_argument(
        "--policy", action="append", metavar="NAME", help="again for more; all if not given"
    )
    parser.add_argument(
        "--rate", action="append", type=float, metavar="R", help="requests/s; else the scenario's"
    )
    parser.add_argument(
        "--seed",
        action="append",
        type=int,
        metavar="N",
        help="else the scenario's; means are shown",
    )
    parser.set_defaults(run=run_command)


def run_command(args: argparse.Namespace) -> int:
    """Prints the table; returns the exit status."""
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    try:
        scenario = load(args.scenario)
        policies = _known(args.policy or list(POLICIES))
        rates = _positive(args.rate or scenario.rates)
    except ConfigurationError as error:
        for problem in error.problems:
            console.print(problem, markup=False, soft_wrap=True)
        return 2
    seeds = args.seed or scenario.seeds
    cells = [(rate, name) for rate in rates for name in policies]
    table = Table(
        title=f"{scenario.name}, {len(seeds)} seed{'' if len(seeds) == 1 else 's'}",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for column in COLUMNS:
        table.add_column(
            column, justify="left" if column in ("policy", "pools") else "right", no_wrap=True
        )
    watch = Console(stderr=True)
    arrivals = {(rate, seed): requests(scenario, rate, seed) for rate in rates for seed in seeds}
    for rate, name in track(cells, "simulating", console=watch, transient=True):
        results = [
            run(scenario, POLICIES[name], rate, seed, arrivals[rate, seed]).result for seed in seeds
        ]
        table.add_row(f"{rate:g}", name, *row(results))
        if name == policies[-1]:
            table.add_section()
    console.print(table)
    console.print(_legend(scenario))
    return 0


def row(results: Sequence[RunResult]) -> Iterator[str]:
    """The means over runs, as they are shown."""
    yield f"{mean(one.goodput for one in results):.2f}"
    for scale in range(3):
        yield f"{100 * mean(one.attainment_at[scale] for one in results):.1f} %"
    yield _shown([one.mean_e2e_s for one in results], 2)
    yield _shown([one.mean_ttft_s for one in results], 3)
    yield _shown([one.mean_tpot_s for one in results], 2, factor=1000)
    yield f"{mean(one.total_tokens_per_s for one in results):.0f}"
    yield f"{mean(one.wasted_verify_tokens for one in results):.2f}"
    yield f"{mean(one.mean_running for one in results):.0f}"
    yield f"{mean(one.switches for one in results):.2f}"
    yield _shown([one.regret for one in results], 3)
    pools = sorted({name for one in results for name in one.pool_shares})
    shares = {name: mean(one.pool_shares.get(name, 0.0) for one in results) for name in pools}
    yield " ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())


def _shown(values: Sequence[float | None], digits: int, factor: float = 1.0) -> str:
    known = [value for value in values if value is not None]
    return f"{factor * mean(known):.{digits}f}" if known else "-"


def _legend(scenario: Scenario) -> str:
    objective = scenario.objective
    return (
        f"goodput: requests/s with TTFT <= {objective.ttft_s:g} s and TPOT <= "
        f"{objective.tpot_factor:g} times an idle plain worker's; good: their share, also at two "
        "and three times the limits\nwasted: draft tokens verified in vain per output token; "
        "running: sequences of a batch; switches of pool per conversation; regret: the true cost "
        "of the pool chosen over the best one's, less 1"
    )


def _known(wanted: Sequence[str]) -> list[str]:
    for name in wanted:
        if name not in POLICIES:
            near = did_you_mean(name, POLICIES) or f"; known: {', '.join(POLICIES)}"
            raise ConfigurationError(f'--policy: unknown policy "{name}"{near}')
    return list(wanted)


def _positive(rates: Sequence[float]) -> list[float]:
    if not rates:
        raise ConfigurationError("--rate: required, since the scenario names none")
    if min(rates) <= 0:
        raise ConfigurationError(f"--rate: must be more than 0, not {min(rates):g}")
    return list(rates)
