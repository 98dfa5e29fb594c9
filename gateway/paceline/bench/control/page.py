"""The page and the pictures of `make bench-control`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from paceline.bench.control.capacity import Capacity
from paceline.bench.control.figures import Cell, Crossover, Interval, crossover
from paceline.bench.control.robustness import Recovery
from paceline.bench.svg import Line, chart
from paceline.sim.policies import OFF
from paceline.sim.simulator import POLICIES

AIMS = {
    "min_vs_best_static": 0.98,
    "min_vs_oracle": 0.95,
    "vs_round_robin_moderate": 1.15,
    "vs_least_loaded_moderate": 1.15,
    "off_lower_bound": 0.99,
}
CROSSING = ("ngram-k5 x8", "eagle3-k5 x8", "paceline")
"""Whose rate of crossing plain workers is shown."""
REFERENCES = ("oracle", "round robin", "least loaded", OFF)


def page(
    console: Console,
    *,
    cells: Sequence[Cell],
    capacities: Mapping[str, Capacity],
    recoveries: Sequence[Recovery],
    figures: Mapping[str, float],
    pools: Mapping[str, str],
) -> None:
    """All of it."""
    console.print(
        "Simulated: 8 workers of an 8B model on H100s. Ratios are ours to theirs, above 1 better: "
        "of goodput where\ntheirs serves under 99 % of requests well, else of mean E2E latency. "
        "Means over seeds with 95 % intervals."
    )
    for mix, of_mix in by_mix(cells).items():
        found = capacities[mix]
        console.print(
            f"\n{mix}: lambda* = {found.rate_per_s:.1f} requests/s, by {found.policy}; "
            f"our layout: {pools[mix]}"
        )
        console.print(ratios_table(of_mix))
        console.print(details_table(of_mix))
        for name in CROSSING:
            console.print(crossing_line(crossover(of_mix, name)))
    if recoveries:
        console.print(recovery_table(recoveries))
    console.print(headline_table(figures))


def by_mix(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.mix, []).append(cell)
    return found


def ratios_table(of_mix: Sequence[Cell]) -> Table:
    """What the headline is the minimum of."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="ours over …", title_justify="left")
    for column in ("x lambda*", "rate", "good", "best static", "", *REFERENCES):
        left = column in ("best static", "")
        table.add_column(column, justify="left" if left else "right")
    for cell in of_mix:
        best = cell.best_static
        table.add_row(
            f"{cell.share:g}",
            f"{cell.rate_per_s:.1f}",
            _percent(cell.mean("paceline", "attainment")),
            best,
            shown(cell.ratio(best)),
            *[shown(cell.ratio(name)) for name in REFERENCES],
        )
    return table


def details_table(of_mix: Sequence[Cell]) -> Table:
    """What every policy's users see, with what it wastes and how wrong its pools are."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="every policy", title_justify="left")
    for column in (
        "x lambda*", "policy", "seeds", "goodput", "good", "at 2x", "at 3x", "E2E s", "tokens/s",
        "wasted", "regret", "switches",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "policy" else "right")
    for cell in of_mix:
        for name in POLICIES:
            if name in cell.runs:
                table.add_row(f"{cell.share:g}", name, *_details(cell, name))
        table.add_section()
    return table


def _details(cell: Cell, name: str) -> Iterator[str]:
    runs = cell.runs[name].values()
    yield str(len(runs))
    yield _number(cell.mean(name, "goodput"), 2)
    for scale in range(3):
        yield _percent(mean(result.attainment_at[scale] for result in runs))
    yield _number(cell.mean(name, "mean_e2e_s"), 2)
    yield _number(cell.mean(name, "total_tokens_per_s"), 0)
    yield _number(cell.mean(name, "wasted_verify_tokens"), 2)
    yield _number(cell.mean(name, "regret"), 3)
    yield _number(cell.mean(name, "switches"), 2)


def crossing_line(found: Crossover) -> str:
    """From where on a policy is slower than eight plain workers, in words."""
    if found.rate_per_s is None:
        return f"{found.policy}: faster than {OFF} at every rate"
    if found.rate_per_s.high == 0.0:
        return f"{found.policy}: slower than {OFF} at every rate"
    some = (
        ""
        if found.seeds_crossing == found.seeds
        else f" (in {found.seeds_crossing} of {found.seeds} seeds)"
    )
    interval = found.rate_per_s
    return (
        f"{found.policy}: slower than {OFF} from {interval.mean:.1f} requests/s on "
        f"[{interval.low:.1f}, {interval.high:.1f}]{some}"
    )


def recovery_table(recoveries: Sequence[Recovery]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title="when something goes wrong: tokens/s beside a run in which nothing does",
        title_justify="left",
    )
    for column in ("scenario", "policy", "seed", "back after", "lowest", "good", "without",
                   "switches", "without"):  # fmt: skip
        table.add_column(column, justify="left" if column in ("scenario", "policy") else "right")
    for one in recoveries:
        table.add_row(
            one.scenario,
            one.policy,
            str(one.seed),
            "never" if one.recovery_s is None else f"{one.recovery_s:.0f} s",
            _percent(one.worst),
            _percent(one.attainment),
            _percent(one.attainment_without),
            f"{one.switches:.2f}",
            f"{one.switches_without:.2f}",
        )
    return table


def headline_table(figures: Mapping[str, float]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("figure", "found", "aim", ""):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, value in figures.items():
        aim = AIMS.get(name)
        met = "" if aim is None else "met" if value >= aim else "MISSED"
        table.add_row(name, f"{value:.3f}", "" if aim is None else f">= {aim:g}", met)
    return table


def pictures(cells: Sequence[Cell], recoveries: Sequence[Recovery]) -> dict[str, str]:
    """SVG by file name: goodput and latency by rate for each mix, tokens/s through each fault."""
    found = {}
    for mix, of_mix in by_mix(cells).items():
        shown_policies = ("paceline", "oracle", "least loaded", "round robin", "by label", OFF)
        best = dict.fromkeys(cell.best_static for cell in of_mix)
        for figure, label in (
            ("goodput", "good requests/s"),
            ("mean_e2e_s", "mean E2E latency, s"),
        ):
            lines = [
                _line(of_mix, name, figure)
                for name in dict.fromkeys((*shown_policies, *best))
                if all(name in cell.runs for cell in of_mix)
            ]
            found[f"control-{mix}-{figure}"] = chart(
                f"{mix}: {label}", "requests/s offered", label, lines
            )
        found[f"control-{mix}-ratios"] = chart(
            f"{mix}: ours over others",
            "requests/s offered",
            "ratio",
            [_ratios(of_mix, name) for name in ("best static", *REFERENCES)],
            level=1.0,
            y_limits=(0.8, 2.0),
        )
    for one in recoveries:
        if one.policy == "paceline":
            found.setdefault(
                f"control-{one.scenario}",
                chart(
                    f"{one.scenario}: tokens/s, 5 s means",
                    "seconds",
                    "tokens/s",
                    [
                        Line(name="with the fault", points=_smoothed(one.tokens_per_s)),
                        Line(
                            name="without", points=_smoothed(one.tokens_per_s_without), dashed=True
                        ),
                    ],
                ),
            )
    return found


def _line(of_mix: Sequence[Cell], name: str, figure: str) -> Line:
    points, intervals = [], []
    for cell in of_mix:
        values = [getattr(result, figure) for result in cell.runs[name].values()]
        known = [value for value in values if value is not None]
        if known:
            interval = Interval.of(known)
            points.append((cell.rate_per_s, interval.mean))
            intervals.append((interval.low, interval.high))
    return Line(name=name, points=points, intervals=intervals, dashed=name == "oracle")


def _ratios(of_mix: Sequence[Cell], name: str) -> Line:
    found = [cell.ratio(cell.best_static if name == "best static" else name) for cell in of_mix]
    return Line(
        name=name,
        points=[(cell.rate_per_s, one.mean) for cell, one in zip(of_mix, found, strict=True)],
        intervals=[(one.low, one.high) for one in found],
        dashed=name == "oracle",
    )


def _smoothed(values: Sequence[float], window: int = 5) -> list[tuple[float, float]]:
    return [
        (at + window / 2, sum(values[at : at + window]) / window)
        for at in range(0, len(values) - window + 1, window)
    ]


def shown(interval: Interval) -> str:
    """A ratio and half of its interval; past 10 what counts is that it is large."""
    if interval.mean >= 10.0:
        return f"{interval.mean:.0f}"
    return f"{interval.mean:.3f} ±{interval.mean - interval.low:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
