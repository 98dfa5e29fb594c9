"""What of an output stands elsewhere: in its prompt (it was copied), in itself (it loops)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

COPY_GRAM = 4
"""Word tokens of the runs whose share is the copy ratio."""
LOOP_GRAM = 8
LOOP_TOKENS = 750
"""The shortest output that can be said to loop, in word tokens: about 1,000 of a model's."""
LOOP_DISTINCT = 0.5
"""Of the 8-grams in an output's second half at least this share differs, or it loops.

With these two figures loops stand out from text in public traces of n-gram drafting: 6 of 310
ShareGPT chats and 6 of 500 InstructCoder answers loop, the latter with a third of all tokens
(SpecDecode-Bench, Llama-3.1-8B).
"""


def copy_ratio(prompt: Sequence[str], output: Sequence[str]) -> float | None:
    """The share of the output's word 4-grams that stand in the prompt; None without a 4-gram."""
    num_grams = len(output) - COPY_GRAM + 1
    if num_grams < 1:
        return None
    given = set(_grams(prompt, COPY_GRAM))
    return sum(gram in given for gram in _grams(output, COPY_GRAM)) / num_grams


def loops(output: Sequence[str]) -> bool:
    """Whether an output repeats itself without end: a lookup would then seem to do well, and
    nothing can be learned from it."""
    if len(output) < LOOP_TOKENS:
        return False
    second_half = output[len(output) // 2 :]
    num_grams = len(second_half) - LOOP_GRAM + 1
    return len(set(_grams(second_half, LOOP_GRAM))) < LOOP_DISTINCT * num_grams


def _grams(tokens: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    return zip(*(tokens[start:] for start in range(size)), strict=False)
