"""Streams to score pacers on: recordings of a real vLLM, and synthetic ones by seed.

Tuning is done on recordings `*-1` and seeds under 1000, results are told of recordings `*-2` and
seeds from 1000 on.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from paceline_client import SseParser

SPECULATING = ("ngram-k4", "suffix", "draft-k3")
MERGE_MS = 4.0
STALL_MS = (600.0, 1200.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one event brought: its tokens' text, together."""

    at_ms: float
    text: str
    num_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStream:
    """Bursts from the first on, and when the stream said that it was over."""

    name: str
    bursts: tuple[Burst, ...]
    end_ms: float

    @property
    def text(self) -> str:
        return "".join(burst.text for burst in self.bursts)

    @property
    def arrivals(self) -> list[float]:
        """The arrival of every token."""
        return [burst.at_ms for burst in self.bursts for _ in range(burst.num_tokens)]

    def median_pass_ms(self) -> float:
        times = [burst.at_ms for burst in self.bursts]
        between = sorted(later - at for at, later in pairwise(times) if later - at > MERGE_MS)
        return between[len(between) // 2]

    def scaled_to(self, pass_ms: float) -> RecordedStream:
        """With time stretched so that the median pass takes `pass_ms`."""
        factor = pass_ms / self.median_pass_ms()
        bursts = tuple(replace(burst, at_ms=burst.at_ms * factor) for burst in self.bursts)
        return replace(self, bursts=bursts, end_ms=self.end_ms * factor)

    def with_stalls(self, share: float, seed: int) -> RecordedStream:
        """With this share of the passes preceded by a stall of 0.6 to 1.2 s."""
        random, late_ms, bursts = Random(seed), 0.0, []
        for number, burst in enumerate(self.bursts):
            if number and random.random() < share:
                late_ms += random.uniform(*STALL_MS)
            bursts.append(replace(burst, at_ms=burst.at_ms + late_ms))
        return replace(self, bursts=tuple(bursts), end_ms=self.end_ms + late_ms)


def recorded(file: Path) -> RecordedStream:
    """A recording as it came, in milliseconds from its first token.

    Tokens whose text came later (a character in several tokens) are counted with that text.
    """
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        _request, *reads = map(json.loads, lines)
    parser, bursts, unspelled, end_ms = SseParser(), [], 0, 0.0
    for read in reads:
        for event in parser.feed(read["data"].encode("utf-8", "surrogateescape")):
            if event.data == "[DONE]":
                continue
            at_ms = read["t_s"] * 1000
            for choice in json.loads(event.data)["choices"]:
                text = choice["delta"].get("content") or ""
                unspelled += len(choice.get("token_ids") or ())
                if choice["finish_reason"]:
                    end_ms = at_ms
                if text:
                    bursts.append(Burst(at_ms=at_ms, text=text, num_tokens=max(1, unspelled)))
                    unspelled = 0
    first_ms = bursts[0].at_ms
    moved = tuple(replace(burst, at_ms=burst.at_ms - first_ms) for burst in bursts)
    name = file.name.removesuffix(".jsonl.gz")
    return RecordedStream(name=name, bursts=moved, end_ms=end_ms - first_ms)


def recordings(folder: Path, number: int, servers: Iterable[str]) -> list[RecordedStream]:
    """The recordings of these servers: number 1 to tune on, number 2 to report."""
    files = sorted(folder.glob(f"*-{number}.jsonl.gz"))
    return [recorded(file) for file in files if file.name.split(".")[0] in tuple(servers)]


def synthetic(
    seed: int, *, pass_ms: float, mean_tokens: float, num_tokens: int = 600, k: int = 4
) -> RecordedStream:
    """Passes of about `pass_ms` (a tenth of jitter), tokens geometric up to k + 1."""
    random, at_ms, left, bursts = Random(seed), 0.0, num_tokens, []
    survival = _survival(mean_tokens, k)
    while left > 0:
        accepted = 1
        while accepted <= k and random.random() < survival:
            accepted += 1
        count = min(accepted, left)
        left -= count
        text = "".join(" " + "x" * random.randint(2, 6) for _ in range(count))
        bursts.append(Burst(at_ms=at_ms, text=text, num_tokens=count))
        at_ms += pass_ms * max(0.2, random.gauss(1.0, 0.1))
    return RecordedStream(name=f"synthetic-{seed}", bursts=tuple(bursts), end_ms=bursts[-1].at_ms)


def _survival(mean_tokens: float, k: int) -> float:
    """The chance per draft token that gives `mean_tokens` a pass: 1 + p + ... + p^k, by halving."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if sum(middle**n for n in range(k + 1)) < mean_tokens:
            low = middle
        else:
            high = middle
    return low
