"""The signals of a request, weighed: the sums that `classify` reads its answer from.

Asked for every request; `core/compiled.py` says who answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from operator import mul

from paceline.core.copying import LogOdds, share_terms

Weight = tuple[float, float, float, float, str]
"""Of a signal: log-odds for code, chat, edit, which add up to about 0; what it adds to the mean of
high copy ratios (`copying.py`); and its name in words."""


def judge(
    signals: Iterable[str],
    weights: Mapping[str, Weight],
    bias: Weight,
    band: int,
    share: Sequence[float],
) -> tuple[LogOdds, float, float]:
    """The log-softmax of what speaks for each class; what the signals add to the mean of high copy
    ratios; and the log-odds of a high one, by the weights `share` of `copying.share_terms`.

    A signal too rare to learn of has no weight.
    """
    code, chat, edit, adds, _ = bias
    for signal in signals:
        weight = weights.get(signal)
        if weight is not None:
            code += weight[0]
            chat += weight[1]
            edit += weight[2]
            adds += weight[3]
    highest = max(code, chat, edit)
    total = highest + log(exp(code - highest) + exp(chat - highest) + exp(edit - highest))
    logs = (code - total, chat - total, edit - total)
    return logs, adds, sum(map(mul, share, share_terms(exp(logs[2]), logs, band)))
