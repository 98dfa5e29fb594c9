"""Writes `sim/classified_rows.py`: what the classifier says of real requests, beside the truth.

    python -m paceline.bench.classified_rows

Needs the extra `bench` and the gathered prompts. Each prompt is classified by a model that was
fitted without its data set, so the errors are those that the gateway makes on requests of a kind it
has not seen. Only numbers are kept, and only of prompts with a reference answer, whose length and
copy ratio are known. Where several classes are right, a ratio of 0.5 or more is an edit if that is
one of them, and else the first of the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paceline.bench.classify_scores import Prediction
from paceline.bench.labelled import GATHERED, Labelled, base_of, bases, labelled, read_rows
from paceline.core.types import Workload
from paceline.sim.words import render_chat, tokenize

OUT = Path(__file__).parents[1] / "sim" / "classified_rows.py"
EDIT_FROM = 0.5

_CARD = '''"""What the classifier says of real requests, beside the truth. Written by
`paceline.bench.classified_rows`, not by hand.

{count} prompts gathered from public data sets, of which nothing but these numbers is kept. Each was
classified by a model fitted without its data set. The data sets, with their licences:
{sources}

A row: the class said, its confidence, the five quantiles of the copy ratio; the true class and copy
ratio (share of the reference answer's word 4-grams found in the prompt); prompt and answer in word
tokens (`sim/words.py`; answers were cut at 4 KB). Classes by their first letters but one: c code,
h chat, e edit. The answers are the data sets' own and often shorter than a model's.
"""

# fmt: off
'''
LETTERS = {Workload.CODE: "c", Workload.CHAT: "h", Workload.EDIT: "e"}


def truth_of(row: Labelled) -> Workload:
    """The one class that a request is simulated as."""
    if row.label is not None:
        return row.label
    if Workload.EDIT in row.acceptable and (row.copy_ratio or 0.0) >= EDIT_FROM:
        return Workload.EDIT
    return min(row.acceptable - {Workload.EDIT}, default=Workload.EDIT)


def predictions(rows: Sequence[Labelled]) -> list[Prediction]:
    """In the order of the rows: what is predicted for each without its data set."""
    from paceline.bench import classify_training

    found = classify_training.left_out(rows, classify_training.own_rows())
    order = [
        at for base in bases(rows) for at, row in enumerate(rows) if base_of(row.source) == base
    ]
    placed: list[Any] = [None] * len(rows)
    for at, prediction in zip(order, found, strict=True):
        placed[at] = prediction
    return placed


def lines(raw: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One line of numbers for each prompt whose copy ratio is known."""
    for row, one in zip(raw, predictions([labelled(row) for row in raw]), strict=True):
        if one.row.copy_ratio is None or not row.get("reference_output"):
            continue
        said = one.classification
        quantiles = " ".join(f"{value:.2f}" for value in said.copy_ratio.quantiles)
        prompt = len(tokenize(render_chat(one.row.features.view.turns)))
        answer = len(tokenize(row["reference_output"]))
        yield (
            f"{LETTERS[said.workload]} {said.label_confidence:.2f} {quantiles} "
            f"{LETTERS[truth_of(one.row)]} {one.row.copy_ratio:.2f} {prompt} {answer}"
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=Path, default=GATHERED)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(argv)
    if not args.prompts.exists():
        sys.stderr.write(f"there are no prompts to classify at {args.prompts}\n")
        return 1
    raw = read_rows(args.prompts)
    licences: dict[str, set[str]] = {}
    for row in raw:
        licences.setdefault(base_of(row["source"]), set()).add(row["licence"])
    sources = "\n".join(
        f"- {name}: {'; '.join(sorted(of))}" for name, of in sorted(licences.items())
    )
    kept = list(lines(raw))
    text = _CARD.format(count=len(kept), sources=sources)
    text += 'ROWS = """\\\n' + "".join(f"{line}\n" for line in kept) + '"""\n'
    args.out.write_text(text.replace("# fmt: off\n", "# ruff: noqa: E501\n# fmt: off\n"))
    sys.stdout.write(f"wrote {len(kept)} rows to {args.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
