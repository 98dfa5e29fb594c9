"""True survivals: the measured tokens per pass, and passes that add up to the answer."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import mean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.types import Workload
from paceline.sim.truth import MAX_K, PLAIN, draws, histogram, num_passes

METHODS = st.sampled_from(["ngram", "eagle3"])
WORKLOADS = st.sampled_from(list(Workload))
UNIT = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("copy_ratio", "ngram_at_5", "eagle3_at_3"),
    [
        (0.1, 1.20, 2.16),
        (0.3, 1.41, 2.34),
        (0.5, 1.79, 2.57),
        (0.76, 2.77, 2.86),
        (0.94, 4.15, 3.02),
    ],
)
def test_tokens_per_pass_are_as_measured_by_copy_ratio(
    copy_ratio: float, ngram_at_5: float, eagle3_at_3: float
) -> None:
    """Over many requests with luck of their own: SpecDecode-Bench's bands."""
    rng = random.Random(1)
    lucks = [rng.gauss(0.0, 1.0) for _ in range(3000)]
    for method, k, expected in (("ngram", 5, ngram_at_5), ("eagle3", 3, eagle3_at_3)):
        means = [draws(method, Workload.EDIT, copy_ratio, k, luck).mean for luck in lucks]
        assert mean(means) == pytest.approx(expected, rel=0.05)
        assert pstdev(means) > 0.02 * expected


def test_at_ten_tokens_heads_level_off_as_in_the_traces() -> None:
    """2.68 for chat and 3.46 for code, at the copy ratios of ShareGPT and InstructCoder."""
    assert draws("eagle3", Workload.CHAT, 0.2, 10, 0.0).mean == pytest.approx(2.68, rel=0.05)
    assert draws("eagle3", Workload.CODE, 0.4, 10, 0.0).mean == pytest.approx(3.46, rel=0.05)


@given(METHODS, WORKLOADS, UNIT, st.integers(1, MAX_K), st.floats(-4.0, 4.0))
def test_survivals_fall_and_a_shorter_draft_is_the_start_of_a_longer_one(
    method: str, workload: Workload, copy_ratio: float, k: int, luck: float
) -> None:
    of = draws(method, workload, copy_ratio, k, luck)
    assert all(1.0 >= one >= other >= 0.0 for one, other in pairwise(of.survivals))
    assert of.survivals == draws(method, workload, copy_ratio, MAX_K, luck).survivals[:k]
    assert of.mean == pytest.approx(1.0 + sum(of.survivals))


@given(METHODS, WORKLOADS, st.floats(-3.0, 2.5), st.floats(0.0, 0.9))
def test_more_copying_and_more_luck_never_hurt(
    method: str, workload: Workload, luck: float, copy_ratio: float
) -> None:
    at = draws(method, workload, copy_ratio, 5, luck).mean
    assert draws(method, workload, copy_ratio, 5, luck + 0.5).mean >= at
    if method == "ngram" or workload is not Workload.CODE:
        assert draws(method, workload, copy_ratio + 0.1, 5, luck).mean >= at


@given(st.integers(0, 3000), METHODS, UNIT, st.integers(1, MAX_K), st.floats(-4.0, 4.0))
def test_passes_yield_the_answer_and_the_report_adds_up(
    tokens: int, method: str, copy_ratio: float, k: int, normal: float
) -> None:
    of = draws(method, Workload.EDIT, copy_ratio, k, 0.0)
    passes = num_passes(tokens, of, k, normal)
    assert passes <= tokens <= passes * (k + 1)
    counts = histogram(passes, tokens, of)
    assert len(counts) == k + 1
    assert sum(counts) == passes
    assert min(counts) >= 0


def test_the_number_of_passes_is_that_of_drawing_each() -> None:
    of = draws("eagle3", Workload.CODE, 0.2, 3, 0.0)
    rng = random.Random(2)
    drawn = []
    for _ in range(3000):
        left, passes = 200, 0
        while left > 0:
            luck = rng.random()
            left -= 1 + sum(luck < survival for survival in of.survivals)
            passes += 1
        drawn.append(passes)
    found = [num_passes(200, of, 3, rng.gauss(0.0, 1.0)) for _ in range(3000)]
    assert mean(found) == pytest.approx(mean(drawn), rel=0.005)
    assert pstdev(found) == pytest.approx(pstdev(drawn) * 1.2**0.5, rel=0.05)  # bursts: 1.2


def test_the_report_says_what_was_accepted() -> None:
    of = draws("ngram", Workload.EDIT, 0.8, 5, 0.0)
    passes = num_passes(900, of, 5, 0.3)
    counts = histogram(passes, 900, of)
    accepted = sum(number * count for number, count in enumerate(counts))
    assert accepted == pytest.approx(900 - passes, abs=5)  # a rounding for each position


def test_without_drafts_a_pass_is_a_token() -> None:
    assert draws(None, Workload.CHAT, 0.5, 0, 0.0) is PLAIN
    assert num_passes(77, PLAIN, 0, 2.0) == 77
    assert histogram(77, 77, PLAIN) == (77,)


def test_what_was_never_measured_is_refused() -> None:
    for method, k in (("suffix", 3), ("ngram", MAX_K + 1)):
        with pytest.raises(ValueError, match="no survivals"):
            draws(method, Workload.CHAT, 0.5, k, 0.0)
