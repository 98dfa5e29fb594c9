"""`make bench-classify`: how right the classifier is on sources it has not seen, and how fast.

Each base data set of the gathered prompts is left out of a fit and then predicted; the predictions
are pooled. Where those prompts or what fits the model (the extra `bench`) are not at hand, the page
says so and scores the shipped model on the project's own prompts. Times are CPU times of requests
of many sizes and shapes, after JSON decoding.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from paceline.bench.bodies import SIZES_KIB, bodies
from paceline.bench.classify_scores import Prediction, accuracy, f1, scores_of
from paceline.bench.labelled import GATHERED, Labelled, base_of, bases, gathered, own
from paceline.bench.results import screen, write_results
from paceline.core.classify import CLASSES, classify
from paceline.core.features import measure
from paceline.core.types import Endpoint, RequestView
from paceline.core.views import view_of

HEADLINE = ("accuracy", "macro_f1", "ece", "copy_ratio_spearman", "brier_055")
MIN_ACCURACY = 0.88
REPEATS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """CPU time of one request, in µs, over shapes and repeats."""

    p50_us: float
    p99_us: float


def shipped(rows: Sequence[Labelled]) -> list[Prediction]:
    """What the shipped model predicts."""
    return [Prediction(row=row, classification=classify(row.features)) for row in rows]


def left_out(rows: Sequence[Labelled]) -> list[Prediction] | None:
    """What models fitted without a row's data set predict; None if nothing here can fit one."""
    if not rows or importlib.util.find_spec("sklearn") is None:
        return None
    from paceline.bench import classify_training

    return classify_training.left_out(rows, classify_training.own_rows())


# ---- times ---------------------------------------------------------------------------------------


def _from_view(view: RequestView) -> None:
    classify(measure(view))


def _from_body(body: dict[str, Any]) -> None:
    classify(measure(view_of(Endpoint.CHAT_COMPLETIONS, body)))


def times() -> dict[str, dict[str, Timing]]:
    """What is timed → size of the body in KiB → its time.

    "Warm" repeats one request before it goes to the next; "in turn" goes through all sizes and
    shapes again and again, so that the processor has forgotten what it met before.
    """
    decoded = {
        size: [orjson.loads(json.dumps(body)) for body in bodies(size).values()]
        for size in SIZES_KIB
    }
    views = {
        size: [view_of(Endpoint.CHAT_COMPLETIONS, body) for body in of_size]
        for size, of_size in decoded.items()
    }
    return {
        "measure + classify": _warm(_from_view, views),
        "with view_of": _warm(_from_body, decoded),
        "in turn": _in_turn(_from_view, views),
    }


def _cpu_us(call: Callable[[Any], None], one: Any) -> float:
    began_ns = time.thread_time_ns()
    call(one)
    return (time.thread_time_ns() - began_ns) / 1000


def _warm(call: Callable[[Any], None], inputs: dict[float, list[Any]]) -> dict[str, Timing]:
    return {
        f"{size:g}": _timing([_cpu_us(call, one) for one in of_size for _ in range(REPEATS)])
        for size, of_size in inputs.items()
    }


def _in_turn(call: Callable[[Any], None], inputs: dict[float, list[Any]]) -> dict[str, Timing]:
    taken: dict[float, list[float]] = {size: [] for size in inputs}
    for _ in range(REPEATS):
        for size, of_size in inputs.items():
            taken[size] += [_cpu_us(call, one) for one in of_size]
    return {f"{size:g}": _timing(values) for size, values in taken.items()}


def _timing(values: list[float]) -> Timing:
    ordered = sorted(values)
    return Timing(p50_us=median(ordered), p99_us=ordered[int(0.99 * len(ordered))])


# ---- the page ------------------------------------------------------------------------------------


def headline(predictions: Sequence[Prediction], taken: dict[str, dict[str, Timing]]) -> Any:
    """The figures that are kept from run to run; times are of `measure` and `classify`, warm,
    and of the slowest size."""
    scores = scores_of(predictions)
    of_view = taken["measure + classify"].values()
    return {
        **{name: round(scores[name], 4) for name in HEADLINE},
        "p50_us": round(max(one.p50_us for one in of_view), 1),
        "p99_us": round(max(one.p99_us for one in of_view), 1),
    }


def _scores_table(name: str, predictions: Sequence[Prediction]) -> Table:
    table = Table(title=name, box=SIMPLE_HEAD, pad_edge=False)
    for column in ("source", "prompts", "accuracy", "code F1", "chat F1", "edit F1"):
        table.add_column(column, justify="left" if column == "source" else "right")
    groups = {"all": list(predictions)}
    for base in bases([one.row for one in predictions]):
        groups[base] = [one for one in predictions if base_of(one.row.source) == base]
    for group, of_group in groups.items():
        by_class = [f1(of_group, workload) for workload in CLASSES]
        cells = [f"{value:.3f}" if value == value else "-" for value in by_class]
        table.add_row(group, str(len(of_group)), f"{accuracy(of_group):.3f}", *cells)
        if group == "all":
            table.add_section()
    return table


def _times_table(taken: dict[str, dict[str, Timing]]) -> Table:
    table = Table(title="CPU time of one request, µs", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("KiB", justify="right")
    for name in taken:
        table.add_column(f"{name}: p50", justify="right")
        table.add_column("p99", justify="right")
    for size in next(iter(taken.values())):
        cells = [
            f"{value:.1f}"
            for by_size in taken.values()
            for value in (by_size[size].p50_us, by_size[size].p99_us)
        ]
        table.add_row(size, *cells)
    return table


def _page(
    console: Console,
    sets: dict[str, Sequence[Prediction]],
    taken: dict[str, dict[str, Timing]],
    figures: dict[str, float],
    note: str,
) -> None:
    for name, predictions in sets.items():
        console.print(_scores_table(name, predictions))
        scores = scores_of(predictions)
        console.print("  ".join(f"{score} {value:.3f}" for score, value in scores.items()))
        console.print()
    console.print(_times_table(taken))
    if note:
        console.print(note)
    for name, value in figures.items():
        console.print(f"{name} {value}")


def main(argv: list[str] | None = None) -> int:
    """0, or 1 if too many are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=Path, default=GATHERED)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    args = parser.parse_args(argv)
    console = screen()
    taken = times()
    rows = gathered(args.prompts)
    console.print(f"{len(rows)} gathered prompts at {args.prompts}")
    sets: dict[str, Sequence[Prediction]] = {}
    note = ""
    if (unseen := left_out(rows)) is not None:
        sets["gathered prompts, each data set left out of the fit"] = unseen
    else:
        missing = "the gathered prompts are" if not rows else "the extra `bench` is"
        note = f"NOTE: {missing} not at hand; the figures are those of the project's own prompts."
    sets["the project's own prompts, which nothing is fitted to"] = shipped(own())
    figures = headline(next(iter(sets.values())), taken)
    page = partial(_page, sets=sets, taken=taken, figures=figures, note=note)
    page(console)
    report = {
        "headline": figures,
        "note": note,
        "scores": {name: _scores(predictions) for name, predictions in sets.items()},
        "times_us": {
            name: {size: {"p50": one.p50_us, "p99": one.p99_us} for size, one in by_size.items()}
            for name, by_size in taken.items()
        },
    }
    write_results(args.out, "classify", report, page)
    if figures["accuracy"] < MIN_ACCURACY:
        console.print(f"NOT MET: accuracy is {figures['accuracy']}, under {MIN_ACCURACY}")
        return 1
    return 0


def _scores(predictions: Sequence[Prediction]) -> dict[str, Any]:
    return {
        **scores_of(predictions),
        "f1": {workload.value: f1(predictions, workload) for workload in CLASSES},
        "accuracy_by_source": {
            base: accuracy([one for one in predictions if base_of(one.row.source) == base])
            for base in bases([one.row for one in predictions])
        },
    }


if __name__ == "__main__":
    sys.exit(main())
