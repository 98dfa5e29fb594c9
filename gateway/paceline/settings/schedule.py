"""`num_speculative_tokens_per_batch_size`: tokens to draft by the size of the engine's batch.

A list of `[start, end, tokens]`, ends included. vLLM sorts it, carries the last value through gaps
and past the end, and lowers what exceeds `num_speculative_tokens`; of what it does refuse it finds
much only in the engine's process, after start-up has begun. Here a schedule must mean what it says,
but for batches beyond its last range, which keep that range's value as in vLLM.

Source: `vllm/v1/spec_decode/dynamic/utils.py`, vLLM 0.33.
"""

from __future__ import annotations

from typing import Any

from paceline.settings.problems import Path, Problems
from paceline.settings.speculation import SpeculationSection

Range = tuple[int, int, int]  # first and last batch size, tokens


def schedule_problems(section: SpeculationSection, path: Path, problems: Problems) -> None:
    """Adds a problem for each range that is malformed, misplaced, or drafts too much."""
    schedule = section.num_speculative_tokens_per_batch_size
    if not isinstance(schedule, list) or not schedule:
        problems.add(path, "must be a list of [first batch size, last, tokens]")
        return
    before: Range | None = None
    for index, entry in enumerate(schedule):
        at = (*path, index)
        this = _range(entry)
        if this is None:
            problems.add(at, "must be [first batch size, last, tokens], three whole numbers")
            return
        wrong = _malformed(this) or _misplaced(this, before)
        if wrong is not None:
            problems.add(at, wrong)
        _check_tokens(this[2], section.num_speculative_tokens, (*at, 2), problems)
        before = this


def _range(entry: Any) -> Range | None:
    if isinstance(entry, list) and len(entry) == 3 and all(type(number) is int for number in entry):
        return (entry[0], entry[1], entry[2])
    return None


def _malformed(this: Range) -> str | None:
    first, last, _ = this
    if first < 1:
        return f"starts at {first}; batch sizes start at 1"
    return f"ends at {last}, before it starts at {first}" if first > last else None


def _misplaced(this: Range, before: Range | None) -> str | None:
    first = this[0]
    expected = before[1] + 1 if before else 1
    if first == expected:
        return None
    if before is None:
        return f"starts at {first}; the first range must start at 1"
    if first > expected:
        return (
            f"leaves a gap: batch sizes {expected} to {first - 1} are in no range, and vLLM would "
            f"go on with {before[2]} tokens there"
        )
    if this[1] < before[0]:
        return f"is out of order: {_shown(this)} comes after {_shown(before)}"
    return f"overlaps: {_shown(this)} and {_shown(before)}"


def _check_tokens(tokens: int, most: int | None, path: Path, problems: Problems) -> None:
    if tokens < 0:
        problems.add(path, f"must be at least 0, not {tokens}")
    elif most is not None and tokens > most:
        problems.add(path, f"is {tokens}, more than num_speculative_tokens, which is {most}")


def _shown(this: Range) -> str:
    return f"{this[0]} to {this[1]}"
