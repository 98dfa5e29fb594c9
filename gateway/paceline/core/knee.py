"""The load at which speculation stops to pay: an output of what is believed, never a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.core.step_time import StepTime

LIMIT = 1024
"""Sequences up to which it is looked for."""


def knee_running_sequences(
    plain: StepTime,
    speculating: StepTime,
    inverse_taus: Sequence[float],
    *,
    fill: float = 1.0,
    context: float = 800.0,
    limit: int = LIMIT,
) -> int | None:
    """The fewest running sequences at which no k yields more tokens a second than a plain pool.

    `inverse_taus[k]` is 1 / tokens a pass at k = 0, 1, …; k = 0 in place is no way out, since the
    drafter's own part of a pass is paid all the same. None if it pays up to `limit`. Passes are
    straight lines over the running sequences, so each k begins or stops to pay at one place.
    """
    at_zero = plain.fixed_s
    slope = plain.token_s + plain.kv_token_s * context
    losses = [  # of each k against plain, by running sequences: where a line starts, and its slope
        (
            speculating.fixed_s * inverse - at_zero,
            (speculating.token_s * (1.0 + k * fill) + speculating.kv_token_s * context) * inverse
            - slope,
        )
        for k, inverse in enumerate(inverse_taus)
        if k > 0
    ]
    turns = [1, *(math.ceil(-start / rise) for start, rise in losses if rise > 0)]
    for running in sorted(turn for turn in turns if 1 <= turn <= limit):
        if all(start + rise * running >= 0 for start, rise in losses):
            return running
    return None
