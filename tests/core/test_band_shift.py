"""Beliefs about the copy ratio, put right by what was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core import band_shift
from paceline.core.band_shift import MAX_CORRECTED_OF_MANY, BandShift, Shifts, normalised

COPIES = (0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8)
COPIED, FREE = (0.0,) * 6 + (1.0,), (1.0,) + (0.0,) * 6
shares = st.lists(st.floats(0.01, 1.0), min_size=7, max_size=7).map(
    lambda weights: tuple(weight / sum(weights) for weight in weights)
)


def test_nothing_seen_changes_nothing():
    assert BandShift(50).corrected(COPIES) == pytest.approx(COPIES)


def test_found_as_believed_changes_nothing():
    shift = BandShift(50)
    for _ in range(100):
        shift.observe(COPIES, COPIES)
    assert shift.corrected(COPIES)[6] == pytest.approx(0.8)


def test_what_never_turns_out_is_soon_believed_no_more_and_comes_back():
    shift = BandShift(50)
    for _ in range(40):
        shift.observe(COPIES, COPIES)
    for _ in range(40):
        shift.observe(COPIES, FREE)
    assert shift.corrected(COPIES)[6] < 0.5
    for _ in range(60):
        shift.observe(COPIES, COPIED)
    assert shift.corrected(COPIES)[6] > 0.8


@given(st.lists(st.tuples(shares, shares), max_size=40), shares)
def test_a_corrected_belief_is_one(seen, belief):
    shift = BandShift(16)
    for believed, found in seen:
        shift.observe(believed, found)
    corrected = shift.corrected(belief)
    assert sum(corrected) == pytest.approx(1.0)
    assert all(share > 0 for share in corrected)


def test_it_comes_back_from_plain_values():
    shift, again = BandShift(50), BandShift(50)
    shift.observe(COPIES, FREE)
    again.restore(**shift.state())
    assert again.factors == shift.factors
    with pytest.raises(ValueError, match="counts"):
        again.restore(believed=[1.0], found=[1.0])


def test_groups_are_told_apart_and_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(band_shift, "MAX_GROUPS", 2)
    shifts = Shifts(4)
    for key in (1, 1, 1, 2, 3):
        shifts.observe(key, COPIES, FREE if key == 1 else COPIED)
    assert shifts.corrected(1, COPIES) == COPIES, "forgotten"
    assert shifts.corrected(2, COPIES)[6] > 0.8
    assert shifts.observe(0, COPIES, FREE) == COPIES, "no group"
    assert shifts.corrected(0, COPIES) == COPIES


def test_one_of_many_groups_keeps_few_corrections():
    shifts = Shifts(4.0)
    shifts.observe(1, FREE, COPIED)
    for at in range(1000):
        shifts.corrected(1, normalised([1.0 + at, *[1.0] * 6]))
    assert len(shifts._of[1]._corrected) <= MAX_CORRECTED_OF_MANY
