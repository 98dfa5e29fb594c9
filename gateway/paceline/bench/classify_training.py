"""Fits the classifier, and writes `core/classifier_weights.py`.

    python -m paceline.bench.classify_training

Needs the extra `bench` (numpy, scikit-learn) and the gathered prompts. One fit is a multinomial
logistic regression with L2 penalty over each signal, and over each signal beside each material; a
temperature for its confidence; a logistic regression for high copy ratios and two ridge regressions
for the means within high and low ones. All but the first are fitted to predictions for prompts that
it did not see, so `fit` is a fair unit to leave a data set out of.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, Ridge

from paceline.bench.classify_scores import Prediction, scores_of
from paceline.bench.labelled import GATHERED, Labelled, base_of, bases, gathered, labelled
from paceline.bench.own_prompts import REPEATS, own_prompts
from paceline.core import classifier_weights
from paceline.core.classify import (
    CLASSES,
    SIZES,
    Model,
    classify,
    log_posterior,
    model_of,
)
from paceline.core.copying import BORDER, LogOdds, share_terms
from paceline.core.types import Material, RequestFeatures

PENALTY_INVERSE = 0.2
"""C of the regression; 0.1 to 0.3 score the same within 0.005 on sources left out."""
OWN_WEIGHT = 0.7
"""Weight of a prompt of the project's own beside a gathered one."""
AMBIGUOUS_WEIGHT = 0.7
"""Weight of a prompt with several right classes, shared among them."""
CROSS_SCALE = 0.6
"""Signals beside a material count less than alone: they are penalised 1/0.36 times as much."""
MIN_COUNT = 4
"""Prompts in which a signal must occur to get a weight."""
OWN = "own instructions"
"""The source of the prompts put together here."""
INNER_FOLDS = 5
SHARE_PENALTY_INVERSE = 0.3
MEAN_PENALTY = 3.0
COPY_SIGNALS = (
    "mentions:whole", "asks:add", "mentions:change", "mentions:rename", "asks:fix",
    "mentions:grammar", "mentions:rewrite", "mentions:document", "system:whole", "patch-format",
    "tool-result", "not-latin", "ends-in-question", "mentions:tests", "asks:change",
    "asks:rename", "earlier:change", "mentions:implement", "system:change",
)  # fmt: skip
"""Signals that may move the mean of high copy ratios."""
OUT = Path(__file__).parents[1] / "core" / "classifier_weights.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A model as it is stored: log-odds in hundredths, and only what is not zero."""

    weights: dict[str, str]
    copying: dict[str, tuple[float, ...]]

    @property
    def model(self) -> Model:
        return model_of(self.weights, self.copying)


def own_rows() -> list[Labelled]:
    """The training prompts that are the project's own."""
    return [labelled(row, OWN) for row in own_prompts()]


def fit(rows: Sequence[Labelled], own: Sequence[Labelled]) -> Fitted:
    """A model fitted to gathered prompts and to the project's own."""
    unseen = _inner_posteriors(rows, own)
    temperature = _temperature(rows, unseen[: len(rows)])
    return Fitted(
        weights=_fit_posterior([*rows, *own], temperature),
        copying=_fit_copying([*rows, *own], _sharpened(unseen, temperature)),
    )


def left_out(rows: Sequence[Labelled], own: Sequence[Labelled]) -> list[Prediction]:
    """What is predicted for each row by a model fitted without its base data set."""
    found = []
    for base in bases(rows):
        model = fit([row for row in rows if base_of(row.source) != base], own).model
        found += [
            Prediction(row=row, classification=classify(row.features, model))
            for row in rows
            if base_of(row.source) == base
        ]
    return found


# ---- the posterior -------------------------------------------------------------------------------


def _names(features: RequestFeatures) -> Iterator[tuple[str, str]]:
    """(signal, material) of each feature; the material is "any" for the signal by itself."""
    band = bisect_left(SIZES, features.material_chars)
    for signal in (*features.signals, "bias", f"size:{band}"):
        yield signal, "any"
        yield signal, features.material.value


def _fit_posterior(rows: Sequence[Labelled], temperature: float = 1.0) -> dict[str, str]:
    counts = Counter(name for row in rows for name in _names(row.features))
    kept = sorted(name for name, count in counts.items() if count >= MIN_COUNT)
    columns = {name: index for index, name in enumerate(kept)}
    matrix = _matrix(rows, columns)
    index, target, weight = _targets(rows)
    regression = LogisticRegression(C=PENALTY_INVERSE, max_iter=500, fit_intercept=False)
    regression.fit(matrix[index], target, sample_weight=weight)
    terms: dict[str, list[str]] = {}
    for name, column in columns.items():
        scaled = regression.coef_[:, column] * _value(name) / temperature * 100
        numbers = [round(float(number)) for number in scaled]
        if any(numbers):
            terms.setdefault(name[0], []).append(f"{name[1]} {' '.join(map(str, numbers))}")
    return {signal: "; ".join(parts) for signal, parts in sorted(terms.items())}


def _value(name: tuple[str, str]) -> float:
    return 1.0 if name[1] == "any" else CROSS_SCALE


def _matrix(rows: Sequence[Labelled], columns: dict[tuple[str, str], int]) -> Any:
    data, indices, starts = [], [], [0]
    for row in rows:
        for name in _names(row.features):
            if name in columns:
                indices.append(columns[name])
                data.append(_value(name))
        starts.append(len(indices))
    return csr_matrix((data, indices, starts), shape=(len(rows), len(columns)))


def _targets(rows: Sequence[Labelled]) -> tuple[list[int], list[int], list[float]]:
    """Which rows, their class, their weight; a row with several right classes counts for each."""
    index, target, weight = [], [], []
    for at, row in enumerate(rows):
        share = 1.0 if row.label else AMBIGUOUS_WEIGHT / len(row.acceptable)
        for workload in sorted(row.acceptable):
            index.append(at)
            target.append(CLASSES.index(workload))
            weight.append(share * (OWN_WEIGHT if row.source == OWN else 1.0))
    return index, target, weight


def _inner_posteriors(rows: Sequence[Labelled], own: Sequence[Labelled]) -> Any:
    """The posterior of each row, own rows last, by a regression that did not see its data set.

    Of the project's own prompts every fifth is left out each time, whole instructions at once.
    """
    groups = [
        *_groups([base_of(row.source) for row in rows]),
        *[(at // REPEATS) % INNER_FOLDS for at in range(len(own))],
    ]
    every = [*rows, *own]
    found = np.zeros((len(every), 3))
    for group in range(INNER_FOLDS):
        seen = [row for row, of in zip(every, groups, strict=True) if of != group]
        unseen = [at for at, of in enumerate(groups) if of == group]
        model = model_of(_fit_posterior(seen), classifier_weights.COPYING)
        found[unseen] = [np.exp(log_posterior(every[at].features, model)) for at in unseen]
    return found


def _groups(names: Sequence[str]) -> list[int]:
    """Data sets dealt into folds of about the same size, whole."""
    sizes = Counter(names)
    filled = [0] * INNER_FOLDS
    group: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        group[name] = filled.index(min(filled))
        filled[group[name]] += sizes[name]
    return [group[name] for name in names]


def _sharpened(posteriors: Any, temperature: float) -> Any:
    powers = np.power(np.clip(posteriors, 1e-9, 1), 1 / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def _temperature(rows: Sequence[Labelled], posteriors: Any) -> float:
    """What the log-odds are divided by so that the confidence is neither too low nor too high."""
    right = np.array([[workload in row.acceptable for workload in CLASSES] for row in rows])

    def loss(temperature: float) -> float:
        return float(-np.log((_sharpened(posteriors, temperature) * right).sum(axis=1)).mean())

    return float(minimize_scalar(loss, bounds=(0.4, 2.0), method="bounded").x)


# ---- the copy ratio ------------------------------------------------------------------------------


def _fit_copying(rows: Sequence[Labelled], posteriors: Any) -> dict[str, tuple[float, ...]]:
    known = [at for at, row in enumerate(rows) if row.copy_ratio is not None]
    features = [rows[at].features for at in known]
    ratios = np.array([rows[at].copy_ratio for at in known], dtype=float)
    logs = [_logs(*posteriors[at]) for at in known]
    bands = [bisect_left(SIZES, one.material_chars) for one in features]
    terms = [share_terms(exp(one[2]), one, band) for one, band in zip(logs, bands, strict=True)]
    lines = np.array([_line(one, band) for one, band in zip(features, bands, strict=True)])
    signals = np.array([[signal in one.signals for signal in COPY_SIGNALS] for one in features])
    is_high = ratios >= BORDER
    share = LogisticRegression(C=SHARE_PENALTY_INVERSE, max_iter=300, fit_intercept=False)
    share.fit(np.array(terms), is_high)
    low = Ridge(MEAN_PENALTY, fit_intercept=False)
    real = np.array([rows[at].source != OWN for at in known])  # the means need real answers
    low.fit(lines[~is_high & real], np.sqrt(ratios[~is_high & real] / BORDER))
    high = Ridge(MEAN_PENALTY, fit_intercept=False)
    with_signals = np.hstack([lines, signals])
    high.fit(with_signals[is_high & real], (ratios[is_high & real] - BORDER) / (1 - BORDER))
    return _stored(share.coef_[0], low.coef_, high.coef_)


def _logs(*posterior: float) -> LogOdds:
    code, chat, edit = (log(max(float(share), 1e-9)) for share in posterior)
    return code, chat, edit


def _line(features: RequestFeatures, band: int) -> list[float]:
    """A straight line over the size for all materials, and one for each in addition."""
    line = [1.0, band / 8]
    for material in Material:
        line += [1.0, band / 8] if material is features.material else [0.0, 0.0]
    return line


def _stored(share: Any, low: Any, high: Any) -> dict[str, tuple[float, ...]]:
    def rounded(*values: float) -> tuple[float, ...]:
        return tuple(round(float(value), 4) for value in values)

    found = {"share": rounded(*share)}
    for at, material in enumerate(Material, start=1):
        for part, line in (("low", low), ("high", high)):
            both = rounded(line[0] + line[2 * at], line[1] + line[2 * at + 1])
            found[f"{part} {material}"] = both
    for signal, weight in zip(COPY_SIGNALS, high[2 + 2 * len(Material) :], strict=True):
        found[f"signal {signal}"] = rounded(weight)
    return found


# ---- writing it ----------------------------------------------------------------------------------

_CARD = '''"""The classifier's numbers. Written by `paceline.bench.classify_training`, not by hand.

What it was fitted to: {gathered} prompts gathered from public data sets, of which nothing but these
numbers is kept here, and {own} put together from the project's own instructions and materials
(`bench/instructions.py`, `bench/materials.py`). The data sets, with their licences:
{sources}

What it is: log-odds of code, chat and edit for each signal (`core/signals.py`), in hundredths, by
itself ("any") and in addition beside each kind of material; and the weights of the three linear
scores of the copy ratio (`core/copying.py`).

How it is judged: `make bench-classify` fits it anew with each data set left out, and scores what is
predicted for it. The signals and the instructions were written with the gathered prompts at hand,
so these scores flatter it; the project's own test prompts (`tests/data/prompts.jsonl`) take no part
in the fit. When it was last written:
{scores}
"""

# ruff: noqa: E501
# fmt: off
'''


def write(fitted: Fitted, rows: Sequence[Labelled], num_own: int, path: Path, scores: str) -> None:
    licences: dict[str, set[str]] = {}
    for row in rows:
        licences.setdefault(base_of(row.source), set()).add(row.licence)
    sources = "\n".join(
        f"- {name}: {'; '.join(sorted(of))}" for name, of in sorted(licences.items())
    )
    text = _CARD.format(gathered=len(rows), own=num_own, sources=sources, scores=scores)
    text += "\nWEIGHTS = {\n"
    text += "".join(f'    "{name}": "{line}",\n' for name, line in fitted.weights.items())
    text += "}\n\nCOPYING = {\n"
    text += "".join(f'    "{name}": {value},\n' for name, value in fitted.copying.items())
    text += "}\n"
    path.write_text(text)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=Path, default=GATHERED)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(argv)
    rows = gathered(args.prompts)
    if not rows:
        sys.stderr.write(f"there are no prompts to train on at {args.prompts}\n")
        return 1
    own = own_rows()
    scores = scores_of(left_out(rows, own))
    said = "\n".join(f"- {name} {value:.3f}" for name, value in scores.items())
    write(fit(rows, own), rows, len(own), args.out, said)
    sys.stdout.write(f"wrote {args.out}\n{said}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
