"""Texts → vectors of length 1 that are near each other where the texts share words.

Every word adds to a few places that follow from its own hash: what is called feature hashing. The
same text has the same vector in every process.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

DIMENSIONS = 576  # of SmolLM2-135M, the model that tests on real engines use
MAX_TOKENS = 512  # of a text that count: what most embedding models look at
_PLACES = 4  # of a word


def embedding(tokens: Sequence[str]) -> list[float]:
    """The vector of a text's tokens; case does not matter."""
    vector = [0.0] * DIMENSIONS
    for token in tokens[:MAX_TOKENS]:
        word = token.strip().lower().encode("utf-8", "surrogatepass")
        for place in range(_PLACES):
            digest = zlib.crc32(word, place)
            vector[digest % DIMENSIONS] += 1.0 if digest & 1 << 31 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors of length 1: what vLLM scores pairs by on an embedding model."""
    return sum(a * b for a, b in zip(one, other, strict=True))
