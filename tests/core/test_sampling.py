"""Which requests are learned from, and which are looked at closely."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.sampling import (
    LIKELY,
    LIKELY_EVERY_S,
    OTHERS_EVERY_S,
    OVERDRAW,
    PER_TURN,
    CloseLooks,
    Lessons,
    Reservoir,
)


def test_a_reservoir_draws_evenly():
    rng, counts = random.Random(5), [0] * 40
    for _ in range(4000):
        reservoir: Reservoir[int] = Reservoir(4, rng)
        for one in range(40):
            reservoir.add(one)
        for one in reservoir.take():
            counts[one] += 1
    assert all(330 < count < 470 for count in counts)  # 400 each, give or take 3.7 deviations


@given(st.lists(st.integers()), st.integers(1, 9))
def test_it_holds_no_more_than_its_size_and_nothing_twice(added, size):
    reservoir: Reservoir[int] = Reservoir(size, random.Random(1))
    for one in added:
        reservoir.add(one)
    drawn = reservoir.take()
    assert len(drawn) == min(size, len(added))
    assert all(drawn.count(one) <= added.count(one) for one in drawn)
    assert reservoir.take() == []


def test_of_many_only_some_are_noted_and_the_draw_stays_full_and_even():
    rng, counts = random.Random(7), [0] * 200
    reservoir: Reservoir[int] = Reservoir(4, rng)
    num_noted = 0
    for turn in range(1000):
        for one in range(200):
            if reservoir.may_come():
                num_noted += turn > 0
                reservoir.add(one)
        drawn = reservoir.take()
        assert len(drawn) == 4 or turn > 0
        for one in drawn:
            counts[one] += 1
    assert OVERDRAW * 4 * 0.9 < num_noted / 999 < OVERDRAW * 4 * 1.1
    assert sum(counts) > 3990  # seldom are there fewer than four
    assert sum(counts[:100]) / sum(counts) == pytest.approx(0.5, abs=0.03)
    assert max(counts) < 45  # 20 each, give or take five deviations and a half


def test_of_few_all_are_noted():
    reservoir: Reservoir[int] = Reservoir(4, random.Random(3))
    for _ in range(50):
        assert all([reservoir.may_come() for _ in range(4 * OVERDRAW)])
        reservoir.take()


def test_what_lookups_served_does_not_drown():
    lessons: Lessons[str] = Lessons(random.Random(2))
    for at in range(500):
        lessons.add("lookup" if at % 100 == 0 else "other", looked_up=at % 100 == 0)
    taken = lessons.take()
    assert (taken.count("lookup"), taken.count("other")) == (5, PER_TURN)


def test_close_looks_go_to_what_may_have_copied():
    looks, likely, others = CloseLooks(), 0, 0
    for at in range(1000):  # a hundred requests a second for ten seconds, one in ten likely
        is_likely = at % 10 == 0
        if looks.wants(LIKELY if is_likely else 0.0, at / 100):
            likely, others = likely + is_likely, others + (not is_likely)
    assert 10 / LIKELY_EVERY_S * 0.7 < likely <= 10 / LIKELY_EVERY_S
    assert 2 <= others <= 1 + 10 / OTHERS_EVERY_S
