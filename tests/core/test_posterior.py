"""Survivals as believed after a prior and evidence."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.posterior import (
    MAX_PASSES,
    PASSES_PER_REQUEST,
    SurvivalPosterior,
    log_likelihood,
)
from paceline.core.priors import prior_survivals

HOUR = 3600.0
PRIOR = (0.6, 0.36, 0.2)

histograms = st.lists(st.integers(0, 50), min_size=1, max_size=6)


def test_without_evidence_the_prior_is_believed():
    assert SurvivalPosterior(PRIOR).survivals() == pytest.approx(PRIOR)


def test_a_case_by_hand():
    posterior = SurvivalPosterior((0.5,), prior_passes=10.0)
    # 20 passes, 15 with the one draft token right: (15 + 5) / (20 + 10)
    posterior.observe([5, 15], 20.0, 0.0, half_life_s=HOUR)
    assert posterior.survivals() == pytest.approx((20 / 30,))


def test_passes_without_a_draft_accept_nothing():
    posterior = SurvivalPosterior((0.5,), prior_passes=1e-9)
    posterior.observe([0, 10], 20.0, 0.0, half_life_s=HOUR)
    assert posterior.survivals() == pytest.approx((0.5,))


def test_positions_past_the_k_in_use_keep_the_priors_conditional():
    posterior = SurvivalPosterior(PRIOR, prior_passes=1e-9)
    posterior.observe([2, 8], 10.0, 0.0, half_life_s=HOUR)  # k = 1, and 0.8 of it held
    first, second, third = posterior.survivals()
    assert first == pytest.approx(0.8)
    assert second / first == pytest.approx(0.36 / 0.6)
    assert third / second == pytest.approx(0.2 / 0.36)


def test_one_request_counts_for_a_few_dozen_passes_however_long_it_was():
    posterior = SurvivalPosterior(PRIOR)
    posterior.observe([0, 0, 0, 10_000], 10_000.0, 0.0, half_life_s=HOUR)
    assert posterior.passes == pytest.approx(PASSES_PER_REQUEST)


def test_evidence_is_halved_after_its_half_life():
    posterior = SurvivalPosterior(PRIOR)
    posterior.observe([10, 0], 10.0, 0.0, half_life_s=100.0)
    posterior.observe([0, 0], 1e-12, 100.0, half_life_s=100.0)
    assert posterior.passes == pytest.approx(5.0)


@given(st.lists(st.tuples(histograms, st.integers(0, 40)), max_size=30))
def test_survivals_fall_within_0_and_1_whatever_was_seen(requests):
    posterior = SurvivalPosterior((0.7, 0.5, 0.4, 0.1, 0.0))
    for now, (accepted, undrafted) in enumerate(requests):
        posterior.observe(accepted, sum(accepted) + undrafted, float(now), half_life_s=60.0)
        assert posterior.passes <= MAX_PASSES + PASSES_PER_REQUEST
    found = posterior.survivals()
    assert list(found) == sorted(found, reverse=True)
    assert all(0.0 <= survival <= 1.0 for survival in found)


def test_it_finds_the_truth_and_finds_it_again_when_it_has_changed():
    rng = random.Random(3)
    posterior = SurvivalPosterior(PRIOR)

    def feed(conditional: float) -> None:
        for _ in range(120):
            accepted = [0] * 4
            for _ in range(40):
                held = 0
                while held < 3 and rng.random() < conditional:
                    held += 1
                accepted[held] += 1
            posterior.observe(accepted, 40.0, 0.0, half_life_s=HOUR)

    feed(0.9)
    assert posterior.survivals() == pytest.approx((0.9, 0.81, 0.729), abs=0.06)
    feed(0.2)
    assert posterior.survivals() == pytest.approx((0.2, 0.04, 0.008), abs=0.15)


def test_it_comes_back_from_plain_values():
    posterior = SurvivalPosterior(PRIOR)
    posterior.observe([3, 4, 5, 6], 20.0, 7.0, half_life_s=HOUR)
    again = SurvivalPosterior(PRIOR)
    again.restore(**posterior.state())
    assert again.survivals() == posterior.survivals()
    with pytest.raises(ValueError, match="held"):
        again.restore(tried=[1.0], held=[2.0], updated_s=0.0)


def test_a_request_that_copied_is_best_explained_by_a_band_that_copies():
    bands = prior_survivals("ngram", 5)
    copied, free = [2, 0, 0, 0, 0, 18], [1, 0, 0, 0, 0, 0]
    likelihoods = [
        [log_likelihood(accepted, passes, band) for band in bands]
        for accepted, passes in ((copied, 22.0), (free, 100.0))
    ]
    assert max(range(7), key=likelihoods[0].__getitem__) == 6
    assert max(range(7), key=likelihoods[1].__getitem__) == 0


@pytest.mark.parametrize("num_passes", [43, 131, 131_071])
@pytest.mark.parametrize(
    "levels", [(1.0, 0.31, 0.17, 0.0), (1.0, 1 / 3, 0.1, 0.0), (1.0, 1.0, 0.7, 0.2)]
)
def test_parts_of_passes_leave_nothing_below_zero_and_are_taken_up_again(num_passes, levels):
    posterior = SurvivalPosterior((0.5, 0.4, 0.3))
    accepted = [num_passes * (a - b) for a, b in zip(levels, (*levels[1:], 0.0), strict=True)]
    for turn in range(40):
        posterior.observe(accepted, num_passes, float(turn), half_life_s=100.0, weight=0.37)
    kept = posterior.state()
    assert all(
        0.0 <= held <= tried for tried, held in zip(kept["tried"], kept["held"], strict=True)
    )
    SurvivalPosterior((0.5, 0.4, 0.3)).restore(**kept)
