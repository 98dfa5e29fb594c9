"""The load at which speculation stops to pay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.core.knee import knee_running_sequences
from paceline.core.priors import prior_step_time, prior_survivals

PLAIN = prior_step_time(None, 0)


def inverses(method: str, k: int, band: int = 0) -> list[float]:
    total, found = 1.0, [1.0]
    for survival in prior_survivals(method, k)[band]:
        total += survival
        found.append(1.0 / total)
    return found


def knee(method: str, k: int, band: int = 0) -> int | None:
    return knee_running_sequences(PLAIN, prior_step_time(method, k), inverses(method, k, band))


def test_lookups_that_find_little_stop_early_and_copies_go_on():
    free, some, copies = (knee("ngram", 5, band) for band in (0, 2, 6))
    assert free is not None
    assert some is not None
    assert free < some < (copies or 10_000)
    assert free <= 32


def test_a_head_that_drafts_three_tokens_pays_past_a_hundred():
    assert (knee("eagle3", 3) or 10_000) > 100


def test_with_nothing_to_draft_there_is_nothing_to_gain():
    assert knee_running_sequences(PLAIN, PLAIN, [1.0]) == 1


@given(st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_slower_passes_never_move_it_out(one, other):
    slower, faster = max(one, other), min(one, other)
    speculating = prior_step_time("ngram", 5)
    early, late = (
        knee_running_sequences(PLAIN, speculating.times(factor), inverses("ngram", 5, 3))
        for factor in (slower, faster)
    )
    assert (early or 10_000) <= (late or 10_000)
