"""How drafts truly hold in simulated fleets: survivals by method, workload, copy ratio and luck.

What a request's drafts do depends on how much of its answer stands in its prompt, and beyond that
on the request itself: each has luck of its own, so that no table of means is ever exactly right for
it. Decisions are made without these numbers; only the oracle is told.

Sources:
- tokens per pass by copy ratio, n-gram at k = 5 and EAGLE-3 at k = 3: SpecDecode-Bench traces,
  Llama-3.1-8B, 1,400 requests in seven bands of prompt-to-answer 4-gram overlap; the bands' middles
  stand for them, and 0 and 1 are extrapolated;
- how survivals fall from position to position: the same traces (`survivals.py`), positions 6 to 10
  so that tokens per pass at k = 10 are the traces' 2.68 (chat) and 3.46 (code);
- n-gram given a match: 0.75 from one position to the next where little is copied, 0.95 where all
  is: the traces (0.55 to 0.97) and BlazEdit (vLLM #24344);
- code that is not copied drafts better with a trained head than prose, by 2.80 to 2.35 tokens a
  pass at k = 3 (Qwen3-8B, vllm-project/speculators #563);
- the spread between requests: 26 to 93 requests pin the mean of a head's tokens per pass to 3 %,
  so their coefficient of variation is 0.08 to 0.15.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, sqrt

from paceline.core.types import Workload

MAX_K = 10
LUCK_STEPS = 8  # luck is rounded to an eighth of a standard deviation, so that results can be kept
MAX_LUCK = 3.0
FIRST_HIT = 0.8  # of a lookup that found a match, its first token (BlazEdit: 0.81)
HEAD_SPREAD = 0.3  # of the log of the exponent that luck puts on a head's conditionals
LOOKUP_SPREAD = 0.4  # of the log-odds of the share of passes that match
# (1 + r) / (1 - r) for the lag-1 autocorrelation r of tokens a pass: 0.6 for n-gram, 0.1 for heads.
BURSTS = {"ngram": 4.0, "eagle3": 1.2}

_COPY = (0.0, 0.1, 0.3, 0.5, 0.65, 0.75, 0.85, 0.95, 1.0)
_HEAD_AT_3 = (2.1, 2.16, 2.34, 2.57, 2.76, 2.84, 3.01, 3.02, 3.05)
_NGRAM_AT_5 = (1.08, 1.20, 1.41, 1.79, 2.32, 2.70, 3.41, 4.23, 4.75)
_CODE_GAIN = 0.35  # tokens a pass at k = 3 where nothing is copied; none where 0.8 is
# P(position i holds, given that those before it did), i = 1 to 10.
_CHAT_STEPS = (0.61, 0.61, 0.68, 0.68, 0.70, 0.57, 0.57, 0.57, 0.57, 0.57)
_CODE_STEPS = (0.70, 0.74, 0.73, 0.76, 0.76, 0.62, 0.62, 0.62, 0.62, 0.62)
_NGRAM_STEP = (0.75, 0.95)  # at copy ratio 0 and 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """What passes of a request yield: `survivals[i]` is P(the first i + 1 draft tokens hold).

    `mean` and `second` are the mean and the mean square of tokens a pass, `bursts` what runs of
    good and bad passes multiply the variance of their sum by, `drafted_share` the share of passes
    that have a draft at all where lookups are not padded.
    """

    survivals: tuple[float, ...]
    mean: float
    second: float
    bursts: float
    drafted_share: float


PLAIN = Draws(survivals=(), mean=1.0, second=1.0, bursts=1.0, drafted_share=0.0)


def draws(method: str | None, workload: Workload, copy_ratio: float, k: int, luck: float) -> Draws:
    """A request's passes with `k` draft tokens; `luck` is in standard deviations.

    Raises ValueError for a method without measurements, or a k outside 0 to `MAX_K`.
    """
    if method is None or k == 0:
        return PLAIN
    if method not in BURSTS or not 0 < k <= MAX_K:
        raise ValueError(f"no survivals are known of {method!r} at k = {k}")
    steps = round(max(-MAX_LUCK, min(MAX_LUCK, luck)) * LUCK_STEPS)
    return _draws(method, workload, round(copy_ratio * 50), k, steps)


@cache
def _draws(method: str, workload: Workload, fiftieths: int, k: int, luck_steps: int) -> Draws:
    copy_ratio, luck = fiftieths / 50, luck_steps / LUCK_STEPS
    if method == "ngram":
        share, step = _matching(copy_ratio, luck)
        held = [share * FIRST_HIT * step**i for i in range(k)]
    else:
        share = 1.0
        power = head_exponent(workload, copy_ratio) * exp(-HEAD_SPREAD * luck)
        held = _products(_steps(workload)[:k], power)
    total = sum(held)
    second = 1.0 + 2.0 * total + sum((2 * i + 1) * s for i, s in enumerate(held))
    return Draws(
        survivals=tuple(held),
        mean=1.0 + total,
        second=second,
        bursts=BURSTS[method],
        drafted_share=share,
    )


def _matching(copy_ratio: float, luck: float) -> tuple[float, float]:
    """The share of passes in which a lookup finds something, and how a match goes on."""
    low, high = _NGRAM_STEP
    step = low + (high - low) * copy_ratio
    hits = (_between(_COPY, _NGRAM_AT_5, copy_ratio) - 1.0) / sum(step**i for i in range(5))
    share = min(0.99, hits / FIRST_HIT)
    # On the odds, so that it stays a share; what is taken off keeps the mean (to second order).
    moved = LOOKUP_SPREAD * luck - (1.0 - 2.0 * share) * LOOKUP_SPREAD**2 / 2
    odds = share / (1.0 - share) * exp(moved)
    return odds / (1.0 + odds), step


@cache
def head_exponent(workload: Workload, copy_ratio: float) -> float:
    """The power of the conditionals for which tokens a pass at k = 3 are as measured."""
    wanted = _between(_COPY, _HEAD_AT_3, copy_ratio)
    if workload is Workload.CODE:
        wanted += _CODE_GAIN * max(0.0, 1.0 - copy_ratio / 0.8)
    low, high = 0.05, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        if 1.0 + sum(_products(_steps(workload)[:3], middle)) > wanted:
            low = middle
        else:
            high = middle
    return low


def _steps(workload: Workload) -> tuple[float, ...]:
    return _CHAT_STEPS if workload is Workload.CHAT else _CODE_STEPS


def _products(steps: Sequence[float], power: float) -> list[float]:
    found, held = [], 1.0
    for step in steps:
        held *= step**power
        found.append(held)
    return found


def _between(places: Sequence[float], values: Sequence[float], at: float) -> float:
    """On straight lines between the points given."""
    index = min(max(bisect_right(places, at), 1), len(places) - 1)
    low, high = places[index - 1], places[index]
    share = (at - low) / (high - low)
    return values[index - 1] + share * (values[index] - values[index - 1])


def num_passes(num_tokens: int, of: Draws, k: int, normal: float) -> int:
    """How many passes it takes until `num_tokens` are out; `normal` is a standard normal draw.

    By renewal theory the mean is (n + o) / m with o = E[X^2] / 2m - 1/2 tokens that the last pass
    would have given too many, and the variance n v / m^3. Never more than one pass a token, nor
    fewer than k + 1 tokens a pass allow.
    """
    if num_tokens <= 0:
        return 0
    mean = of.mean
    expected = (num_tokens + of.second / (2.0 * mean) - 0.5) / mean
    variance = num_tokens * max(0.0, of.second - mean * mean) * of.bursts / mean**3
    drawn = round(expected + normal * sqrt(variance))
    return max(-(-num_tokens // (k + 1)), min(num_tokens, drawn))


def histogram(num_passes: int, num_tokens: int, of: Draws) -> tuple[int, ...]:
    """Passes by how many draft tokens held, as a worker reports them after a request.

    Its survivals are the request's own, scaled so that the passes did yield `num_tokens`.
    """
    accepted = num_tokens - num_passes
    scale = accepted / (num_passes * (of.mean - 1.0)) if num_passes and of.mean > 1.0 else 0.0
    reached = [num_passes]
    for survival in of.survivals:
        reached.append(min(reached[-1], round(num_passes * min(1.0, survival * scale))))
    return tuple(one - other for one, other in zip(reached, [*reached[1:], 0], strict=True))
