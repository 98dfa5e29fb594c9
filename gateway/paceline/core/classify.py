"""RequestFeatures → workload, label confidence, expected copy ratio, and the reasons.

A linear softmax over the signals of `signals.py`, with weights that depend on what material there
is: "make it shorter" means one thing beside a letter and another beside nothing. From its posterior
and the sizes follows the copy ratio (`copying.py`). The numbers, and how they were found and
judged, are in `classifier_weights.py`. A request without text is not guessed at: its confidence
is 0.

`classify_law` says how. For requests with text, by our own model, it has a compiled twin in
`native/judgement.c` (`compiled.py` chooses); a change here is a change there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from operator import itemgetter
from sys import intern

from msgspec import Struct

from paceline.core import classifier_weights
from paceline.core.compiled import classify_by, judge
from paceline.core.copying import CopyModel, LogOdds, copy_ratio, power_of
from paceline.core.judge import Weight
from paceline.core.signals import in_words
from paceline.core.types import Classification, Material, RequestFeatures, Workload

Posterior = tuple[float, float, float]
"""P(code), P(chat), P(edit)."""
CLASSES = (Workload.CODE, Workload.CHAT, Workload.EDIT)
SIZES = (60, 160, 320, 640, 1300, 2600, 5200, 12000)
"""Upper ends of the bands of `material_chars`, but for the last."""
_MAX_REASONS = 4
_NAME = itemgetter(4)
_FOR_CLASS = itemgetter(0), itemgetter(1), itemgetter(2)
_MIN_REASON = 0.2
"""Log-odds below which a signal is no reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Everything that is learned; `bias` is for each material by the band of its size."""

    weights: Mapping[Material, Mapping[str, Weight]]
    bias: Mapping[Material, Sequence[Weight]]
    copying: CopyModel


def model_of(weights: Mapping[str, str], numbers: Mapping[str, Sequence[float]]) -> Model:
    """A model from the form it is stored in (`classifier_weights.py`)."""
    tables: dict[Material, dict[str, Weight]] = {material: {} for material in Material}
    for signal, line in weights.items():
        signal = intern(signal)  # as the names of signals are that are looked up by it
        terms = dict(map(_term, line.split(";")))
        (adds,) = numbers.get(f"signal {signal}", (0.0,))
        for material in Material:
            code, chat, edit = _sum(terms.get("any"), terms.get(material.value))
            tables[material][signal] = (code, chat, edit, adds, in_words(signal))
    nothing = (0.0, 0.0, 0.0, 0.0, "")
    bands = [f"size:{band}" for band in range(len(SIZES) + 1)]
    bias = {
        material: [
            (*_sum(table.get("bias", nothing)[:3], table.get(band, nothing)[:3]), 0.0, "")
            for band in bands
        ]
        for material, table in tables.items()
    }
    bands_of = range(len(SIZES) + 1)
    copying = CopyModel(
        share=numbers["share"],
        low_powers={
            material: [
                power_of(max(_line(numbers, "low", material, band), 0.0) ** 2) for band in bands_of
            ]
            for material in Material
        },
        high_means={
            material: [_line(numbers, "high", material, band) for band in bands_of]
            for material in Material
        },
    )
    return Model(weights=tables, bias=bias, copying=copying)


def _line(
    numbers: Mapping[str, Sequence[float]], part: str, material: Material, band: int
) -> float:
    """A mean is a straight line over the bands of size, one for each material."""
    at_zero, slope = numbers[f"{part} {material}"]
    return at_zero + slope * band / 8.0


def _term(term: str) -> tuple[str, Posterior]:
    """`any 12 -40 28`, `code 3 4 -7`: hundredths, for every material, and beside that for one."""
    name, code, chat, edit = term.split()
    return name, (int(code) / 100, int(chat) / 100, int(edit) / 100)


def _sum(one: Posterior | None, other: Posterior | None) -> Posterior:
    first, second = one or (0.0, 0.0, 0.0), other or (0.0, 0.0, 0.0)
    return (first[0] + second[0], first[1] + second[1], first[2] + second[2])


MODEL = model_of(classifier_weights.WEIGHTS, classifier_weights.COPYING)


def classify_law(features: RequestFeatures, model: Model = MODEL) -> Classification:
    """The most likely workload of a request; its own label, if it gave one, is not looked at."""
    material = features.material
    band = bisect_left(SIZES, features.material_chars)
    weights = model.weights[material]
    bias, share = model.bias[material][band], model.copying.share
    logs, adds, odds = judge(features.signals, weights, bias, band, share)
    evidence: Iterable[str]
    if features.view.has_text:
        highest = max(logs)
        best = logs.index(highest)
        confidence, evidence = min(exp(highest), 1.0), _Evidence(features.signals, weights, best)
    else:
        confidence, best, evidence = 0.0, 1, _NO_TEXT
    return Classification(
        workload=CLASSES[best],
        label_confidence=confidence,
        copy_ratio=copy_ratio(odds, material, band, adds, model.copying),
        evidence=evidence,
    )


def log_posterior(features: RequestFeatures, model: Model) -> LogOdds:
    """What `classify` believes of the workload: log P(code), log P(chat), log P(edit)."""
    band = bisect_left(SIZES, features.material_chars)
    weights, bias = model.weights[features.material], model.bias[features.material][band]
    return judge(features.signals, weights, bias, band, model.copying.share)[0]


class _Evidence(Struct, frozen=True):
    """What spoke for the class at `best`, the strongest first, in an operator's words; they are
    looked for when somebody reads them."""

    signals: frozenset[str]
    weights: Mapping[str, Weight]
    best: int

    def __iter__(self) -> Iterator[str]:
        best = self.best
        seen = filter(None, map(self.weights.get, self.signals))
        strongest = sorted(seen, key=_FOR_CLASS[best], reverse=True)[: _MAX_REASONS + 1]
        while strongest and strongest[-1][:3][best] < _MIN_REASON:
            strongest.pop()
        names = dict.fromkeys(map(_NAME, strongest))  # several may read the same
        return iter(list(names)[:_MAX_REASONS])


_NO_TEXT = ("no-text",)

classify = classify_by(classify_law, MODEL, SIZES, CLASSES, _Evidence)
"""What everybody asks: the law, or its twin."""
