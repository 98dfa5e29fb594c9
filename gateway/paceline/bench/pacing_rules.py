"""Ways to pace a stream, ours and the usual ones: a stream in, the time of every token out.

The others are re-implemented from their rules, at their defaults, for comparison in kind; a claim
about a product would need its own code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf

from paceline.bench.optimum import delays, taut_string
from paceline.bench.streams import RecordedStream
from paceline_client import Pacer, PacerOptions

FRAME_MS = 1000 / 60

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


def fixed_delay(stream: RecordedStream, *, per_word_ms: float = 10.0) -> list[float]:
    """A word, when the space after it is there, and then a pause of always the same length.

    The rule of the Vercel AI SDK's `smoothStream`.
    """
    ends = [found.end() for found in re.finditer(r"\s*\S+\s+", stream.text)]
    ends = sorted({*ends, len(stream.text)})
    arrived, position = [], 0
    for burst in stream.bursts:
        position += len(burst.text)
        arrived.append((position, burst.at_ms))
    shown_to, free_ms, index = [], 0.0, 0
    for end in ends:
        while arrived[index][0] < end:
            index += 1
        whole_ms = stream.end_ms if end == len(stream.text) else arrived[index][1]
        at_ms = max(whole_ms, free_ms)
        shown_to.append((end, at_ms))
        free_ms = at_ms + per_word_ms
    return _by_token(stream, shown_to)


def proportional(
    stream: RecordedStream, *, drain_ms: float = 250.0, slowest_ms: float = 5.0
) -> list[float]:
    """Each frame a share of the backlog: a character takes min(5 ms, 250 ms / backlog).

    The rule of assistant-ui's `useSmooth`, on frames of 60 Hz.
    """
    bursts = list(stream.bursts)
    received, shown, index, banked_ms, at_ms = 0, 0, 0, 0.0, 0.0
    shown_to: list[tuple[int, float]] = []
    while shown < len(stream.text):
        while index < len(bursts) and bursts[index].at_ms <= at_ms:
            received += len(bursts[index].text)
            index += 1
        if received > shown:
            banked_ms += FRAME_MS
            each_ms = min(slowest_ms, drain_ms / (received - shown))
            count = min(received - shown, int(banked_ms / each_ms))
            banked_ms -= count * each_ms
            shown += count
            shown_to.append((shown, at_ms))
        else:
            banked_ms = 0.0
        at_ms += FRAME_MS
    return _by_token(stream, shown_to)


def optimum(stream: RecordedStream) -> list[float]:
    """The smoothest there can be for the greatest delay and the end lag of ours."""
    shown = ours(stream)
    delay_ms = max(delays(stream.arrivals, shown))
    return taut_string(stream.arrivals, delay_ms, shown[-1] - stream.arrivals[-1])


RULES: dict[str, Rule] = {
    "ours": ours,
    "optimum": optimum,
    "pass-through": pass_through,
    "fixed 10 ms/word": fixed_delay,
    "proportional": proportional,
}


def _by_token(stream: RecordedStream, shown_to: list[tuple[int, float]]) -> list[float]:
    """Times by characters shown → times by token: a token is there when its last character is.

    A burst's characters are shared out evenly among its tokens.
    """
    times, position, index = [], 0, 0
    for burst in stream.bursts:
        for number in range(1, burst.num_tokens + 1):
            end = position + round(len(burst.text) * number / burst.num_tokens)
            while shown_to[index][0] < end:
                index += 1
            times.append(shown_to[index][1])
        position += len(burst.text)
    return times
