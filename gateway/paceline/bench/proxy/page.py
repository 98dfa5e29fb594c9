"""The page and the terminal's tables: ratios first, then what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from paceline.bench.proxy.cells import (
    DIRECT,
    MAX_HARNESS_SHARE,
    MAX_PROXY_SHARE,
    OURS,
    STREAM,
    Cell,
    Measurement,
)
from paceline.bench.proxy.figures import Quantity, Results, cpu_us, milliseconds
from paceline.bench.proxy.quantiles import Spread

ABSENT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table, for the terminal and for Markdown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join([f"## {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])

    def show(self, console: Console) -> None:
        table = Table(title=self.title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for number, name in enumerate(self.header):
            table.add_column(name, justify="right" if number else "left", no_wrap=number == 0)
        for row in self.rows:
            table.add_row(*row)
        console.print(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the page tells: figures, and under which conditions they came about."""

    results: Results
    cells: Sequence[Cell]
    targets: Sequence[str]  # direct and ours first; those that ran
    headline: Mapping[str, float | None]
    rates: Mapping[str, float]
    missing: Mapping[str, str]
    conditions: Mapping[str, str]


def grids(report: Report) -> list[Grid]:
    """All tables in reading order, empty ones left out."""
    found = [
        _ratios(report),
        _cpu(report),
        _rss(report),
        _memory(report),
        _added(report),
        _harness(report),
        _left_out(report),
    ]
    return [grid for grid in found if grid.rows]


def _spread(spread: Spread | None, form: str = "{:.2f}") -> str:
    """`median (least-most)`."""
    if spread is None:
        return ABSENT
    texts = [form.format(value) for value in (spread.median, spread.least, spread.most)]
    return f"{texts[0]} ({texts[1]} to {texts[2]})"


def _proxies(report: Report) -> list[str]:
    return [target for target in report.targets if target != DIRECT]


def _ratios(report: Report) -> Grid:
    """Ours over each peer; for litellm the other way round, as in the headline."""
    peers = [target for target in _proxies(report) if target != OURS]
    pairs = [("litellm", OURS) if peer == "litellm" else (OURS, peer) for peer in peers]
    rows = []
    for cell in report.cells:
        ratios = [_spread(report.results.ratio(cpu_us, cell, *pair)) for pair in pairs]
        rows.append([f"{cell.name}, per {cell.unit}", *ratios])
    return Grid(
        title="CPU time, ratios within a repeat: median (least to most)",
        header=["cell", *(f"{above} / {below}" for above, below in pairs)],
        rows=rows if pairs else [],
    )


def _per_target(
    report: Report, title: str, form: str, cells: Sequence[Cell], quantity: Quantity
) -> Grid:
    rows = [
        [
            f"{cell.name}, per {cell.unit}" if quantity is cpu_us else cell.name,
            *(
                _spread(report.results.spread(quantity, cell, target), form)
                for target in _proxies(report)
            ),
        ]
        for cell in cells
    ]
    return Grid(title=title, header=["cell", *_proxies(report)], rows=rows)


def _cpu(report: Report) -> Grid:
    title = "CPU time of the proxy's processes, µs: median (least to most)"
    return _per_target(report, title, "{:.0f}", report.cells, cpu_us)


def _rss(report: Report) -> Grid:
    def mib(measured: Measurement) -> float:
        return measured.sample.proxy_rss_bytes / 2**20

    title = "Resident memory after a cell, MiB: median (least to most)"
    return _per_target(report, title, "{:.0f}", report.cells[:3], mib)


def _memory(report: Report) -> Grid:
    memory = report.results.memory.values()
    counts = [count for count, _ in next(iter(memory)).readings] if memory else []
    return Grid(
        title="Idle streams: KiB per stream (slope from the first to the last count), MiB resident",
        header=["target", "KiB per stream", *(f"{count:,}" for count in counts)],
        rows=[
            [
                one.target,
                f"{one.kib_per_stream:.1f}",
                *(f"{rss / 2**20:.0f}" for _, rss in one.readings),
            ]
            for one in memory
        ],
    )


LATENCIES: Sequence[tuple[str, str, bool]] = (
    ("TTFT p50", "ttft_p50_s", True),
    ("TTFT p99", "ttft_p99_s", True),
    ("event delay p50", "event_delay_p50_s", True),
    ("event delay p99", "event_delay_p99_s", True),
    ("gap between events p99", "event_gap_p99_s", True),
    ("answer p50", "latency_p50_s", False),
    ("answer p99", "latency_p99_s", False),
)


def _added(report: Report) -> Grid:
    rows = []
    for label, name, of_stream in LATENCIES:
        quantity = milliseconds(name)
        for cell in report.cells:
            if cell.stream != of_stream or cell.cpu_only:
                continue
            direct = _spread(report.results.spread(quantity, cell, DIRECT))
            added = [
                _spread(report.results.added(quantity, cell, target))
                for target in _proxies(report)
                if target != "litellm"
            ]
            rows.append([f"{cell.name}, {label}", direct, *added])
    added_by = [f"added by {name}" for name in _proxies(report) if name != "litellm"]
    return Grid(
        title="Latency, ms: direct, and what is added within a repeat: median (least to most)",
        header=["cell", DIRECT, *added_by],
        rows=rows,
    )


def _harness(report: Report) -> Grid:
    """The rate of each cell, and how busy everybody was: the medians that make a cell valid."""

    def cores(quantity: Callable[[Measurement], float], cell: Cell, target: str) -> str:
        spread = report.results.spread(quantity, cell, target)
        return ABSENT if spread is None else f"{spread.median:.2f}"

    rows = []
    for cell in report.cells:
        for target in report.targets:
            rate = report.rates.get(f"{target} {cell.kind}")
            if rate is None or not any(
                (one.cell, one.target) == (cell, target) for one in report.results.measurements
            ):
                continue
            shares = [
                cores(lambda one: one.proxy_share, cell, target),
                cores(lambda one: one.mock_share, cell, target),
                cores(lambda one: one.client_share, cell, target),
                cores(lambda one: one.other_cores, cell, target),
            ]
            rows.append([cell.name, target, f"{rate:g}", *shares])
    return Grid(
        title="Rate, and cores in use (medians)",
        header=["cell", "target", "requests/s", "proxy", "mock", "client", "rest of machine"],
        rows=rows,
    )


def _left_out(report: Report) -> Grid:
    rows = [[name, "all", reason] for name, reason in report.missing.items()]
    rows += [
        [one.target, f"{one.cell.name}, repeat {one.repeat + 1}", one.invalid]
        for one in report.results.measurements
        if one.invalid
    ]
    return Grid(title="Missing and invalid", header=["target", "cell", "why"], rows=rows)


METHOD = f"""
A mock worker of canned bytes and a client, each a process of its own, with a proxy between them or
none (direct). The client offers requests at a fixed rate, whatever the answers do (open loop), over
a fixed set of keep-alive connections. CPU is user and system time of the proxy's whole process tree
within the window, by /proc/PID/stat, over the requests or events of that window. For each cell all
targets are measured in turn, then the next cell, then all again. A ratio is taken within a repeat;
shown are median, least and most over the repeats. Left out of every figure: a cell in which mock or
client used over {MAX_HARNESS_SHARE:.0%} of a core, or the proxy over {MAX_PROXY_SHARE:.0%}, or an
answer failed, or requests queued up. Within a cell everybody has the same rate, but for litellm,
which cannot bear it and has its own.

Ours has everything on that this version has: a key, a model renamed, classification, four rules,
three pools, metrics, three workers probed every second. Peers have the same three workers by round
robin (litellm: its default), no key, no request log; vllm-router and smg probe once a minute.
Streams are {STREAM.body_bytes}-byte requests answered with 65 events of 250 bytes, one every 10 ms;
the client does not ask for usage, so ours asks for it and takes it out again. Every event carries
the time at which the mock sent it (the monotonic clock is one for all processes); event delay is
from there to the client's read. The mock's and the client's timers tick in milliseconds.

Absolute times are those of this machine at that moment; compare ratios. Not here: a row with two
processes, which the gateway cannot have yet; latencies with 512 connections (CPU alone); memory of
litellm with idle streams.
"""


def markdown(report: Report) -> str:
    """The page."""
    parts = ["# What a proxy costs", "", "`make bench-proxy`", "", "## Headline", ""]
    parts += [f"- {name}: {_number(value)}" for name, value in report.headline.items()]
    for grid in grids(report):
        parts += ["", grid.markdown()]
    parts += ["", "## How", METHOD.rstrip(), "", "## Conditions", ""]
    parts += [f"- {name}: {value}" for name, value in report.conditions.items()]
    return "\n".join(parts)


def show(report: Report, console: Console) -> None:
    """The tables, and the headline under them, where it is seen."""
    for grid in grids(report):
        grid.show(console)
    for name, value in report.conditions.items():
        console.print(f"{name}: {value}", markup=False)
    for name, figure in report.headline.items():
        console.print(f"{name} {_number(figure)}", markup=False)


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:g}"
