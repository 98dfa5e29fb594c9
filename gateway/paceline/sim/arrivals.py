"""When requests come: an open loop, whose times do not depend on what the fleet does.

Times are seconds from 0, ascending. The same seed gives the same times, so policies are compared on
the same arrivals.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise


def gamma_arrivals(
    rate_per_s: float, duration_s: float, rng: random.Random, *, burstiness: float = 1.0
) -> list[float]:
    """Arrivals with gaps of mean 1 / rate from a gamma distribution, until `duration_s`.

    `burstiness` is the shape, as in `vllm bench serve`: 1 is Poisson, less comes in bursts (the
    squared coefficient of variation is 1 / burstiness). Unlike there the gaps are not rescaled to
    end at a given time, which would take away the variation of the count. Raises ValueError unless
    all three are positive.
    """
    if min(rate_per_s, duration_s, burstiness) <= 0:
        raise ValueError(f"must be positive: {rate_per_s=} {duration_s=} {burstiness=}")
    scale = 1.0 / (rate_per_s * burstiness)
    times: list[float] = []
    now_s = rng.gammavariate(burstiness, scale)
    while now_s < duration_s:
        times.append(now_s)
        now_s += rng.gammavariate(burstiness, scale)
    return times


def poisson_arrivals(rate_per_s: float, duration_s: float, rng: random.Random) -> list[float]:
    """Arrivals of which each is as likely at any time, whatever came before."""
    if min(rate_per_s, duration_s) <= 0:
        raise ValueError(f"must be positive: {rate_per_s=} {duration_s=}")
    times: list[float] = []
    now_s = rng.expovariate(rate_per_s)
    while now_s < duration_s:
        times.append(now_s)
        now_s += rng.expovariate(rate_per_s)
    return times


def trace_arrivals(
    times: Sequence[float], rate_per_s: float, duration_s: float, rng: random.Random
) -> list[float]:
    """A recorded rhythm at another rate: the trace, stretched, from a random place and around.

    `times` are ascending seconds of the recording; the gap between its last and its first arrival
    is its mean gap. Raises ValueError for fewer than two times, or times that do not ascend.
    """
    if min(rate_per_s, duration_s) <= 0:
        raise ValueError(f"must be positive: {rate_per_s=} {duration_s=}")
    if len(times) < 2 or times[-1] <= times[0] or any(b < a for a, b in pairwise(times)):
        raise ValueError("a trace needs two times or more, ascending")
    gaps = [after - before for before, after in pairwise(times)]
    gaps.append((times[-1] - times[0]) / len(gaps))
    scale = len(gaps) / (sum(gaps) * rate_per_s)
    at = rng.randrange(len(gaps))
    now_s = rng.random() * gaps[at] * scale
    found: list[float] = []
    while now_s < duration_s:
        found.append(now_s)
        at = (at + 1) % len(gaps)
        now_s += gaps[at] * scale
    return found
