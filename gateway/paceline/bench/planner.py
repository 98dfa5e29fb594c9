"""`make bench-planner`: the step-time model's predictions beside what others published.

Every row says whether it was predicted or fitted; only predicted rows of dense models (V1 to V5)
count in `max_error_published`. Exit status 1 when a row is out of its tolerance or a direction is
wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from paceline.bench import points, results
from paceline.bench.cpu_engine import NGRAM, tokens_per_s
from paceline.bench.points import Run, Setup
from paceline.core.cost import PassCosts
from paceline.sim.cost import arithmetic_intensity, pass_costs, ridge_flop_per_byte
from paceline.sim.hardware import H100, HARDWARE, LLAMA_31_8B, QWEN3_30B_A3B

CONTEXT = 500  # tokens of context of a conversation in MT-bench, an estimate; 0.02 ms a pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison. A `fitted` one was used to set the model; `tolerance` None is no promise."""

    point: str
    what: str
    unit: str
    published: float
    predicted: float
    source: str
    tolerance: float | None = None
    fitted: bool = False

    @property
    def error(self) -> float:
        """Relative to what was published."""
        return self.predicted / self.published - 1.0

    @property
    def holds(self) -> bool:
        return self.fitted or self.tolerance is None or abs(self.error) <= self.tolerance


def rows() -> list[Row]:
    """All comparisons, in the order of their names."""
    return [
        *(row for setup in points.SETUPS[:3] for row in setup_rows(setup)),
        *v4_rows(),
        *setup_rows(points.V5),
        *v6_rows(),
        *v7_rows(),
        *cpu_rows(),
    ]


# --- one sequence on an 8B model ------------------------------------------------------------------


def setup_rows(setup: Setup) -> Iterator[Row]:
    """The plain rate, and each speculating run."""
    host_s = _host_s(setup)
    tree_s = 0.0
    plain_s = pass_costs(H100, LLAMA_31_8B, host_s=host_s).decode_s(1, context=CONTEXT)
    yield _row(setup, "plain", setup.plain, plain_s, fitted=setup.calibrates)
    if setup.tree is not None:
        tree_s = setup.tree.tokens_per_pass * _seconds(setup, setup.tree)
        tree_s -= _pass_s(setup.tree, host_s)
        yield _run_row(setup, setup.tree, host_s, tree_s, fitted=True)
    for run in setup.runs:
        yield _run_row(setup, run, host_s, tree_s, fitted=False)


def _host_s(setup: Setup) -> float:
    """The device's own host time, or the one that the setup's plain rate implies."""
    if not setup.calibrates:
        return H100.host_s
    device_s = pass_costs(H100, LLAMA_31_8B, host_s=0.0).decode_s(1, context=CONTEXT)
    return 1.0 / setup.plain - device_s


def _pass_s(run: Run, host_s: float) -> float:
    costs = pass_costs(H100, LLAMA_31_8B, method=run.method, host_s=host_s)
    return costs.decode_s(1, run.k, CONTEXT)


def _seconds(setup: Setup, run: Run) -> float:
    """Published seconds a token."""
    return run.published * 1e-3 if setup.unit == "ms/token" else 1.0 / run.published


def _run_row(setup: Setup, run: Run, host_s: float, tree_s: float, *, fitted: bool) -> Row:
    token_s = (_pass_s(run, host_s) + tree_s) / run.tokens_per_pass
    return _row(setup, f"{run.method} k={run.k}", run.published, token_s, fitted=fitted)


def _row(setup: Setup, what: str, published: float, token_s: float, *, fitted: bool) -> Row:
    return Row(
        point=setup.name,
        what=what,
        unit=setup.unit,
        published=published,
        predicted=token_s * 1e3 if setup.unit == "ms/token" else 1.0 / token_s,
        source=setup.source,
        tolerance=setup.tolerance,
        fitted=fitted,
    )


# --- batches --------------------------------------------------------------------------------------


def v4_rows() -> Iterator[Row]:
    """Gains at a deep batch and at one sequence, in an engine whose drafting was measured."""
    plain, run = pass_costs(H100, LLAMA_31_8B), points.V4_EAGLE
    eagle = pass_costs(H100, LLAMA_31_8B, method=run.method)
    eagle = replace(eagle, draft=replace(eagle.draft, step_s=points.V4_EAGLE_STEP_S))
    running, context = points.V4_EAGLE_RUNNING, points.V4_EAGLE_CONTEXT
    plain_s, pass_s = plain.decode_s(running, 0, context), eagle.decode_s(running, run.k, context)
    gain = run.tokens_per_pass * plain_s / pass_s
    yield _v4("eagle3 k=3, B=128, GSM8K", run.published, gain)
    ngram = pass_costs(H100, LLAMA_31_8B, method="ngram")
    best = max(
        tau * plain.decode_s(1, 0, CONTEXT) / ngram.decode_s(1, k, CONTEXT)
        for k, tau in points.V4_NGRAM_TAU.items()
    )
    yield _v4("n-gram, best k, B=1, InstructCoder", points.V4_NGRAM_PUBLISHED, best)
    tau = tokens_per_pass_without_limit(points.V4_NGRAM_TAU)
    plain_s = plain.decode_s(1, 0, CONTEXT)
    per_token_s = plain.decode_s(1, 1, CONTEXT) - plain_s
    bound = tau * plain_s / (plain_s + (tau - 1) * per_token_s)
    yield _v4("n-gram, oracle k, drafts free, B=1", points.V4_NGRAM_ORACLE_PUBLISHED, bound)


def tokens_per_pass_without_limit(tau: dict[int, float]) -> float:
    """Tokens a pass if drafts were as long as what holds: the gain that an oracle of k could have.

    `tau` is tokens a pass by k, with entries at 3, 5 and 10. Mean survivals at positions 4-5 and
    6-10 give a decay per position, which is carried on past 10; an extrapolation, since the traces
    end there. Raises KeyError without these entries.
    """
    early, late = (tau[5] - tau[3]) / 2, (tau[10] - tau[5]) / 5
    decay = (late / early) ** (1 / 3.5)  # from position 4.5 to position 8
    at_ten = late * decay**2
    return float(tau[10] + at_ten * decay / (1 - decay))


def _v4(what: str, published: float, predicted: float) -> Row:
    return Row(
        point="V4",
        what=what,
        unit="speedup",
        published=published,
        predicted=predicted,
        source=points.V4_SOURCE,
        tolerance=points.V4_TOLERANCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Seconds as a straight line of the running sequences, through two published points."""

    at_zero: float
    slope: float

    @classmethod
    def through(cls, rates: dict[int, float], one: int, other: int) -> _Line:
        first, last = one / rates[one], other / rates[other]
        slope = (last - first) / (other - one)
        return cls(at_zero=first - slope * one, slope=slope)

    def at(self, running: int) -> float:
        return self.at_zero + self.slope * running


def v6_rows() -> Iterator[Row]:
    """A sum, fitted to two points without speculation and two with; and one jump.

    Seconds per emitted token and sequence rise in a line up to 128 sequences (1,024 tokens a pass)
    and then jump, by as much again as 128 sequences had added. A sum alone would lose its gain at
    565 sequences rather than below 256. We take the jump for the end of the captured graphs, and
    fit it: the change of sign is reproduced, not predicted.
    """
    plain = _Line.through(points.V6_PLAIN, 4, 256)
    spec = _Line.through(points.V6_DSPARK, 4, 128)
    graph_tokens = 128 * (1 + points.V6_K)
    costs = PassCosts(
        host_s=0.0,
        weights_s=spec.at_zero,
        token_s=spec.slope / (1 + points.V6_K),
        kv_token_s=0.0,
        graph_tokens=graph_tokens,
        eager_s=256 / points.V6_DSPARK[256] - spec.at(256),
    )
    for running in points.V6_PLAIN:
        yield Row(
            point="V6",
            what=f"DSpark k=7 / plain, c={running}",
            unit="speedup",
            published=points.V6_DSPARK[running] / points.V6_PLAIN[running],
            predicted=plain.at(running) / costs.decode_s(running, points.V6_K),
            source=points.V6_SOURCE,
            tolerance=0.10,
            fitted=running in (4, 128, 256),
        )


def v7_rows() -> Iterator[Row]:
    """A mixture at one sequence: verifying four tokens reads 3.6 times the experts of one."""
    device = pass_costs(H100, QWEN3_30B_A3B, tensor_parallel=2, host_s=0.0)
    device_s = device.decode_s(1, context=CONTEXT)
    host_s = 1.0 / points.V7_PLAIN - device_s
    plain_s = 1.0 / points.V7_PLAIN
    costs = pass_costs(H100, QWEN3_30B_A3B, method="eagle3", tensor_parallel=2, host_s=host_s)
    pass_s = costs.decode_s(1, 3, CONTEXT)
    for what, unit, published, predicted in (
        ("eagle3 k=3, pass / plain pass", "ratio", _v7_pass_ratio(), pass_s / plain_s),
        (
            "eagle3 k=3, B=1",
            "speedup",
            points.V7_EAGLE3 / points.V7_PLAIN,
            points.V7_TAU * plain_s / pass_s,
        ),
    ):
        yield Row(
            point="V7",
            what=what,
            unit=unit,
            published=published,
            predicted=predicted,
            source=points.V7_SOURCE,
            tolerance=points.V7_TOLERANCE,
        )


def _v7_pass_ratio() -> float:
    return points.V7_TAU / points.V7_EAGLE3 * points.V7_PLAIN


# --- the engine on two cores ----------------------------------------------------------------------


def cpu_rows() -> Iterator[Row]:
    for running, published in points.CPU_PLAIN.items():
        yield _cpu(f"plain, B={running}", published, tokens_per_s(running, None))
    for running, published in points.CPU_NGRAM.items():
        yield _cpu(f"n-gram k=4, B={running}", published, tokens_per_s(running, NGRAM))


def _cpu(what: str, published: float, predicted: float) -> Row:
    return Row(
        point="CPU",
        what=what,
        unit="tokens/s",
        published=published,
        predicted=predicted,
        source=points.CPU_SOURCE,
        tolerance=points.CPU_TOLERANCE,
    )


# --- the report -----------------------------------------------------------------------------------


def headline(all_rows: list[Row]) -> dict[str, float]:
    """Largest absolute errors: of predicted rows V1 to V5, and against the CPU engine."""
    dense = [row for row in all_rows if row.point in ("V1", "V2", "V3", "V4", "V5")]
    return {
        "max_error_published": max(abs(row.error) for row in dense if not row.fitted),
        "max_error_engine": max(abs(row.error) for row in all_rows if row.point == "CPU"),
        "v6_sign_flips_at_128_256": float(flips(all_rows)),
        "v7_slower": float(_predicted(all_rows, "V7", "B=1") < 1.0),
    }


def flips(all_rows: list[Row]) -> bool:
    """Whether speculation pays at 128 sequences and costs at 256."""
    return _predicted(all_rows, "V6", "c=128") > 1.0 > _predicted(all_rows, "V6", "c=256")


def _predicted(all_rows: list[Row], point: str, ending: str) -> float:
    return next(r.predicted for r in all_rows if r.point == point and r.what.endswith(ending))


def table(all_rows: list[Row]) -> str:
    head = ("point", "what", "unit", "published", "predicted", "error", "", "source")
    lines = [head]
    for row in all_rows:
        mark = "fitted" if row.fitted else "ok" if row.holds else "OUT"
        numbers = (f"{row.published:.2f}", f"{row.predicted:.2f}", f"{100 * row.error:+.1f} %")
        lines.append((row.point, row.what, row.unit, *numbers, mark, row.source))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 3 <= i <= 5 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def roofline() -> str:
    """Arithmetic intensity and ridge point: how much arithmetic there is to spare."""
    ridges = ", ".join(f"{name} {ridge_flop_per_byte(h):.0f}" for name, h in HARDWARE.items())
    spent = ", ".join(
        f"{tokens}: {arithmetic_intensity(LLAMA_31_8B, tokens):.0f}" for tokens in (1, 32, 256)
    )
    return f"ridge point, FLOP/byte: {ridges}\nintensity of {LLAMA_31_8B.name} by tokens: {spent}"


def main() -> int:
    """Print the table, write bench-results/planner.json; 1 if something is out of tolerance."""
    all_rows = rows()
    figures = headline(all_rows)
    shown = [{**asdict(row), "error": row.error, "holds": row.holds} for row in all_rows]
    results.write("planner", {"headline": figures, "rows": shown}, table(all_rows))
    summary = "  ".join(f"{name} {value:.3f}" for name, value in figures.items())
    sys.stdout.write(f"{table(all_rows)}\n\n{roofline()}\n{summary}\n")
    right = all(row.holds for row in all_rows) and flips(all_rows) and figures["v7_slower"] == 1.0
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
