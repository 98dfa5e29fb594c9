"""From replayed tokens per pass to a pool's own: monotone, within bounds, and learned."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.acceptance import SpeculationReport
from paceline.core.correction import (
    BINS,
    Correction,
    non_decreasing,
    observed_tokens_per_pass,
    survivals_for,
)

K = 5
PAIRS = st.lists(
    st.tuples(st.floats(1, K + 1), st.floats(0.5, K + 2), st.integers(1, 2000)), max_size=40
)
VALUES = st.lists(st.tuples(st.floats(-9, 9), st.floats(0.1, 9)), min_size=1, max_size=12)


def learned(pairs: list[tuple[float, float, int]]) -> Correction:
    correction = Correction(K)
    for replayed, observed, num_passes in pairs:
        correction.take(replayed, observed, num_passes)
    return correction


def test_without_data_nothing_is_corrected():
    correction = Correction(K)
    for replayed in (1.0, 1.3, 2.0, 4.4, 6.0):
        assert correction.corrected(replayed) == pytest.approx(replayed)
    assert correction.residual is None
    assert correction.bias is None


@given(PAIRS, st.floats(1, K + 1), st.floats(1, K + 1))
def test_a_correction_is_monotone_and_within_bounds(
    pairs: list[tuple[float, float, int]], one: float, other: float
):
    correction = learned(pairs)
    low, high = sorted((one, other))
    assert 1.0 <= correction.corrected(low) <= correction.corrected(high) + 1e-9
    assert correction.corrected(high) <= K + 1 + 1e-9


def test_a_tokenizer_that_cuts_words_is_learned():
    """What an engine accepts is half as much again, up to k, with noise."""
    rng = random.Random(1)
    correction = Correction(K)

    def engine(replayed: float) -> float:
        return min(1.0 + 1.5 * (replayed - 1.0), K + 1.0)

    for _ in range(400):
        replayed = rng.uniform(1.0, K + 1.0)
        correction.take(replayed, engine(replayed) + rng.gauss(0, 0.2), 200)
    for replayed in (1.5, 2.0, 3.0, 4.0, 5.0):
        assert correction.corrected(replayed) == pytest.approx(engine(replayed), abs=0.15)
    assert correction.residual is not None
    assert correction.uncorrected_residual is not None
    assert correction.residual < 0.6 * correction.uncorrected_residual
    assert abs(correction.bias or 0) < 0.1


def test_what_is_learned_of_chats_says_something_of_edits():
    """The slope holds where there is no data."""
    correction = learned([(1.4, 1.6, 300)] * 200)
    assert correction.corrected(3.0) == pytest.approx(4.0, abs=0.2)


def test_a_pool_that_changes_is_learned_anew():
    correction = learned([(3.0, 4.0, 500)] * 300 + [(3.0, 2.0, 500)] * 900)
    assert correction.corrected(3.0) == pytest.approx(2.0, abs=0.1)


def test_one_long_answer_weighs_no_more_than_many_passes_do():
    one, long = Correction(K), Correction(K)
    one.take(2.0, 3.0, 500)
    long.take(2.0, 3.0, 500_000)
    assert one.as_json() == long.as_json()


@given(PAIRS)
def test_a_correction_survives_json(pairs: list[tuple[float, float, int]]):
    correction = learned(pairs)
    again = Correction.of(json.loads(json.dumps(correction.as_json())))
    assert again.as_json() == correction.as_json()
    assert again.corrected(2.2) == correction.corrected(2.2)
    assert again.residual == correction.residual
    assert len(again.as_json()["bins"]) == BINS  # however many pairs there were


@pytest.mark.parametrize(
    "said",
    [
        {},
        {**Correction(K).as_json(), "k": 0},
        {**Correction(K).as_json(), "bins": [[0, 0, 0]]},
        {**Correction(K).as_json(), "errors": [1, 2]},
        {**Correction(K).as_json(), "errors": [float("nan"), 0, 0, 0]},
    ],
)
def test_what_is_no_correction_is_refused(said: dict[str, object]):
    with pytest.raises(ValueError, match=r"not a correction|k must be"):
        Correction.of(said)


@pytest.mark.parametrize(
    "pair", [(0.9, 2.0, 9), (K + 1.1, 2.0, 9), (2.0, float("inf"), 9), (2, 2, 0)]
)
def test_impossible_pairs_are_refused(pair: tuple[float, float, int]):
    with pytest.raises(ValueError, match="not a pair"):
        Correction(K).take(*pair)


def test_pooling_by_hand():
    """3 before 1, with weights 1 and 3, are both 1.5."""
    assert non_decreasing([(0, 1), (3, 1), (1, 3), (4, 1)]) == [0, 1.5, 1.5, 4]
    assert non_decreasing([(3, 1), (2, 1), (1, 1)]) == [2, 2, 2]


@given(VALUES)
def test_pooling_gives_ascending_values_and_keeps_the_mean(values: list[tuple[float, float]]):
    pooled = non_decreasing(values)
    assert pooled == sorted(pooled)
    before = sum(value * weight for value, weight in values)
    after = sum(value * weight for value, (_, weight) in zip(pooled, values, strict=True))
    assert after == pytest.approx(before, abs=1e-6)
    if [value for value, _ in values] == sorted(value for value, _ in values):
        assert pooled == [value for value, _ in values]


def test_what_a_worker_counts_gives_its_tokens_per_pass():
    """21 tokens: one from prefill, 12 accepted, so 8 passes of decode; 5 of them drafted."""
    report = SpeculationReport(num_spec_steps=5, num_draft_tokens=20, num_accepted_draft_tokens=12)
    assert observed_tokens_per_pass(21, report) == 2.5
    assert observed_tokens_per_pass(17, report) == 1 + 12 / 5  # the last pass ran over the end
    nothing = SpeculationReport(num_spec_steps=0, num_draft_tokens=0, num_accepted_draft_tokens=0)
    assert observed_tokens_per_pass(1, nothing) is None
    assert observed_tokens_per_pass(9, nothing) == 1.0


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=8), st.floats(0.02, 0.98))
def test_survivals_are_bent_to_a_sum(given_ones: list[float], share: float):
    survivals = sorted(given_ones, reverse=True)
    wanted = 1.0 + share * len(survivals)
    bent = survivals_for(survivals, wanted)
    assert list(bent) == sorted(bent, reverse=True)
    assert all(0.0 <= held <= 1.0 for held in bent)
    reachable = sum(held**64 for held in survivals), sum(held ** (1 / 64) for held in survivals)
    if reachable[0] < wanted - 1 < reachable[1]:
        assert 1.0 + sum(bent) == pytest.approx(wanted, abs=1e-6)


def test_certain_survivals_stay_as_they_are():
    assert survivals_for((1.0, 0.0), 2.5) == (1.0, 0.0)
    assert survivals_for((), 2.0) == ()
