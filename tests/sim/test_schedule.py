"""The batch-size schedule, as vLLM reads it."""

from __future__ import annotations

import pytest

from paceline.sim.schedule import BatchSizeSchedule


def tokens(ranges: list[list[int]], sizes: list[int], most: int = 8) -> list[int]:
    schedule = BatchSizeSchedule.of(ranges, most)
    return [schedule.tokens_for(size) for size in sizes]


def test_ranges_hold_their_ends():
    assert tokens([[1, 2, 4], [3, 4, 1], [5, 512, 0]], [1, 2, 3, 4, 5]) == [4, 4, 1, 1, 0]


def test_a_gap_keeps_what_came_before_it():
    assert tokens([[1, 2, 4], [8, 9, 1]], [2, 3, 7, 8]) == [4, 4, 4, 1]


def test_beyond_the_last_range_it_stays():
    assert tokens([[1, 4, 3], [5, 8, 1]], [8, 9, 10_000]) == [1, 1, 1]


def test_ranges_may_come_in_any_order_and_tokens_may_rise():
    assert tokens([[5, 8, 6], [1, 4, 2]], [1, 6]) == [2, 6]


def test_more_than_may_be_drafted_is_lowered():
    assert tokens([[1, 8, 9]], [1], most=5) == [5]


@pytest.mark.parametrize(
    ("ranges", "problem"),
    [
        ([], "must be a list"),
        ({"1-4": 3}, "must be a list"),
        ([[1, 4]], "must be \\[first batch size"),
        ([[1, 4, True]], "must be \\[first batch size"),
        ([[0, 4, 3]], "a range runs from 1"),
        ([[5, 4, 3]], "a range runs from 1"),
        ([[1, 4, -1]], "a range runs from 1"),
        ([[2, 4, 3]], "must begin at 1, not 2"),
        ([[1, 4, 3], [4, 8, 1]], "overlap"),
    ],
)
def test_what_vllm_refuses_is_refused(ranges: object, problem: str):
    with pytest.raises(ValueError, match=problem):
        BatchSizeSchedule.of(ranges, 5)
