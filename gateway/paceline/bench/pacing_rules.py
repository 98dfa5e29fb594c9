"""Ways to pace a stream: a stream in, the time of every token out.

The usual rules of others are in `sdk/js/bench`, beside our pacer in TypeScript.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from paceline.bench.optimum import delays, taut_string
from paceline.bench.streams import RecordedStream
from paceline_client import Pacer, PacerOptions

Rule = Callable[[RecordedStream], list[float]]


def ours(stream: RecordedStream, options: PacerOptions | None = None) -> list[float]:
    """`paceline_client.Pacer`. Raises ValueError if the text that came out is not what went in."""
    pacer = Pacer(options)
    for number, burst in enumerate(stream.bursts):
        pacer.push(burst.text, burst.at_ms, num_tokens=burst.num_tokens, cargo=number)
    pacer.finish(stream.end_ms)
    pieces = pacer.take_timed(inf)
    if "".join(piece.text for _, piece in pieces) != stream.text:
        raise ValueError(f"{stream.name}: the text changed")
    shown: list[float] = []
    for at_ms, piece in pieces:
        first, to = piece.tokens
        shown += [at_ms] * (to - first)
    return shown


def pass_through(stream: RecordedStream) -> list[float]:
    """Everything as it arrives."""
    return stream.arrivals


def optimum(stream: RecordedStream) -> list[float]:
    """The smoothest there can be for the greatest delay and the end lag of ours."""
    shown = ours(stream)
    delay_ms = max(delays(stream.arrivals, shown))
    return taut_string(stream.arrivals, delay_ms, shown[-1] - stream.arrivals[-1])


RULES: dict[str, Rule] = {
    "ours": ours,
    "optimum": optimum,
    "pass-through": pass_through,
}
