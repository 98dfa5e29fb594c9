"""How good classifications are: accuracy, calibration, and the order of copy ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from paceline.bench.labelled import Labelled
from paceline.core.classify import CLASSES
from paceline.core.copying import BORDER, LEVELS
from paceline.core.types import Classification, CopyRatio, Workload

_ECE_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    row: Labelled
    classification: Classification

    @property
    def is_right(self) -> bool:
        return self.classification.workload in self.row.acceptable


def scores_of(predictions: Sequence[Prediction]) -> dict[str, float]:
    """The figures of a set of predictions, by name; NaN where there is nothing to tell by."""
    known = [one for one in predictions if one.row.copy_ratio is not None]
    edits = [one for one in known if one.row.label is Workload.EDIT]
    return {
        "accuracy": accuracy(predictions),
        "macro_f1": macro_f1(predictions),
        "ece": calibration_error(predictions),
        "copy_ratio_spearman": copy_order(known),
        "copy_ratio_spearman_edit": copy_order(edits),
        "brier_055": brier(known),
    }


def accuracy(predictions: Sequence[Prediction]) -> float:
    """The share whose class is one of the right ones."""
    return mean(one.is_right for one in predictions) if predictions else float("nan")


def macro_f1(predictions: Sequence[Prediction]) -> float:
    """The mean of the classes' F1, without the prompts that several classes are right for."""
    return mean(f1(predictions, workload) for workload in CLASSES)


def f1(predictions: Sequence[Prediction], workload: Workload) -> float:
    clear = [one for one in predictions if one.row.label]
    said = [one for one in clear if one.classification.workload is workload]
    true = [one for one in clear if one.row.label is workload]
    right = sum(one.is_right for one in said)
    return 2 * right / (len(said) + len(true)) if said or true else float("nan")


def calibration_error(predictions: Sequence[Prediction]) -> float:
    """Expected calibration error: confidence less accuracy, by ten bands of confidence."""
    bands: list[list[Prediction]] = [[] for _ in range(_ECE_BINS)]
    for one in predictions:
        band = int(one.classification.label_confidence * _ECE_BINS)
        bands[min(band, _ECE_BINS - 1)].append(one)
    gaps = [
        len(band) * abs(mean(one.classification.label_confidence - one.is_right for one in band))
        for band in bands
        if band
    ]
    return sum(gaps) / len(predictions)


def copy_order(predictions: Sequence[Prediction]) -> float:
    """Spearman's rank correlation of the expected copy ratio with the true one."""
    said = [one.classification.copy_ratio.expected for one in predictions]
    true = [one.row.copy_ratio or 0.0 for one in predictions]
    return _correlation(_ranks(said), _ranks(true)) if len(said) > 1 else float("nan")


def brier(predictions: Sequence[Prediction]) -> float:
    """The Brier score of "the copy ratio is at least `BORDER`"."""
    errors = [
        at_least(one.classification.copy_ratio, BORDER) - ((one.row.copy_ratio or 0.0) >= BORDER)
        for one in predictions
    ]
    return mean(error * error for error in errors) if errors else float("nan")


def at_least(copy_ratio: CopyRatio, threshold: float) -> float:
    """P(copy ratio ≥ threshold), on straight lines between the quantiles."""
    values = (0.0, *copy_ratio.quantiles, 1.0)
    levels = (0.0, *LEVELS, 1.0)
    for at in range(1, len(values)):
        if threshold <= values[at]:
            width = values[at] - values[at - 1]
            share = (threshold - values[at - 1]) / width if width else 1.0
            return 1.0 - (levels[at - 1] + share * (levels[at] - levels[at - 1]))
    return 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 0; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + end - 1) / 2
        start = end
    return ranks


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    mean_one, mean_other = mean(one), mean(other)
    product = sum((a - mean_one) * (b - mean_other) for a, b in zip(one, other, strict=True))
    spread = sum((a - mean_one) ** 2 for a in one) * sum((b - mean_other) ** 2 for b in other)
    return float(product / spread**0.5) if spread else float("nan")
