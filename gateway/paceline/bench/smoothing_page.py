"""How `make bench-smoothing` shows its scores: on a screen, and as a README's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from paceline.bench.optimum import Score
from paceline.bench.smoothing_aims import RATE_CV_AIM, Standing

Scores = Mapping[str, Mapping[str, Sequence[Score]]]
"""class → rule → a score for each stream."""

Cell = Callable[[Sequence[Score]], str]


def _median(metric: Callable[[Score], float], digits: int = 0) -> Cell:
    return lambda scores: f"{median(map(metric, scores)):.{digits}f}"


def _worst(metric: Callable[[Score], float], digits: int = 0) -> Cell:
    return lambda scores: f"{max(map(metric, scores)):.{digits}f}"


COLUMNS: dict[str, Cell] = {
    "rate CV": _median(lambda one: one.rate_cv, 2),
    "gap CV": _median(lambda one: one.gap_cv, 2),
    "p99 gap": _median(lambda one: one.p99_gap_ms),
    "rho": _median(lambda one: one.rho, 3),
    "worst rho": _worst(lambda one: one.rho, 2),
    "mean delay": _median(lambda one: one.mean_delay_ms),
    "equal": _median(lambda one: one.equal_mean_delay_ms),
    "p95": _median(lambda one: one.p95_delay_ms),
    "max": _worst(lambda one: one.max_delay_ms),
    "equal max": _median(lambda one: one.equal_max_delay_ms),
    "first": _worst(lambda one: one.first_ms),
    "end lag": _worst(lambda one: one.end_lag_ms),
}

NOT_IN_A_README = ("worst rho", "equal max")


def draw(
    console: Console,
    scores: Scores,
    cost: Mapping[str, Any],
    standings: Mapping[str, Standing],
    figures: Mapping[str, float],
) -> None:
    """The whole page."""
    console.print(_table(scores))
    console.print(_drawn("what it costs", _costs(cost)))
    for name, by_length in cost["us_per_char"].items():
        per = ", ".join(f"{us:.2f} at {int(length):,}" for length, us in by_length.items())
        console.print(f"µs of CPU a character, {name} without spaces: {per} characters")
    console.print(_drawn("rate CV beside the aims", _standings(standings)))
    for name, value in figures.items():
        console.print(f"{name} {value}")


def readme(
    scores: Scores,
    cost: Mapping[str, Any],
    standings: Mapping[str, Standing],
    classes: Sequence[str],
) -> str:
    """The tables of these classes, of costs and of aims, in Markdown."""
    tables = {name: _markdown(_rows(scores[name])) for name in classes}
    tables |= {"costs": _markdown(_costs(cost)), "aims": _markdown(_standings(standings))}
    return "\n\n".join(f"{name}\n\n{table}" for name, table in tables.items())


Rows = Iterator[Sequence[str]]
"""Lines of cells, the first one the head."""


def _rows(by_rule: Mapping[str, Sequence[Score]]) -> Rows:
    """One class, ascending in rate CV."""
    cells = {name: cell for name, cell in COLUMNS.items() if name not in NOT_IN_A_README}
    yield ["rule", *cells]
    for rule in sorted(by_rule, key=lambda rule: median(one.rate_cv for one in by_rule[rule])):
        yield [rule, *(cell(by_rule[rule]) for cell in cells.values())]


def _costs(cost: Mapping[str, Any]) -> Rows:
    yield ["rule", "µs/token", "kB on a page"]
    for rule, us in cost["us_per_token"].items():
        size = cost["gzip_bytes"].get(rule)
        yield [rule, f"{us:.1f}", f"{size / 1000:.1f}" if size else ""]


def _standings(standings: Mapping[str, Standing]) -> Rows:
    yield [
        "streams", "as it came", "ours", "optimum", "ours / as it came", "optimum / as it came",
        "mean delay", f"optimum needs for {RATE_CV_AIM}", "smoother for no more delay",
    ]  # fmt: skip
    for name, one in standings.items():
        needs_ms = one.optimum_needs_ms
        yield [
            name, f"{one.raw:.2f}", f"{one.ours:.2f}", f"{one.optimum:.2f}",
            f"{one.ours / one.raw:.2f}", f"{one.optimum / one.raw:.2f}",
            f"{one.mean_delay_ms:.0f}", "none does" if needs_ms is None else f"{needs_ms:.0f}",
            ", ".join(one.smoother_for_less) or "none",
        ]  # fmt: skip


def _markdown(rows: Rows) -> str:
    head, *lines = (f"| {' | '.join(row)} |" for row in rows)
    rule = "|---|" + "--:|" * (head.count("|") - 2)
    return "\n".join([head, rule, *lines])


def _empty(title: str, head: Sequence[str], num_left: int = 1) -> Table:
    shown = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, name in enumerate(head):
        justify: Literal["left", "right"] = "left" if number < num_left else "right"
        shown.add_column(name, justify=justify, no_wrap=justify == "left")
    return shown


def _drawn(title: str, rows: Rows) -> Table:
    shown = _empty(title, next(rows))
    for row in rows:
        shown.add_row(*row)
    return shown


def _table(scores: Scores) -> Table:
    title = "medians over streams; worst rho, max, first and end lag are the worst of all; ms"
    shown = _empty(title, ["streams", "rule", *COLUMNS], num_left=2)
    for name, by_rule in scores.items():
        for rule, of_rule in by_rule.items():
            cells = [cell(of_rule) for cell in COLUMNS.values()]
            shown.add_row(name if rule == "ours" else "", rule, *cells)
        shown.add_section()
    return shown
