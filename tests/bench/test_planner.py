"""The step-time model beside what others published: within tolerance, and right in direction."""

from __future__ import annotations

import pytest

from paceline.bench.planner import (
    Row,
    flips,
    headline,
    rows,
    table,
    tokens_per_pass_without_limit,
)

ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.point} {row.what}")
def test_published_points_are_reproduced(row: Row):
    assert row.holds, f"{row.predicted:.3f} for {row.published:.3f}"


def test_every_dense_point_has_rows_that_were_predicted():
    predicted = {row.point for row in ROWS if not row.fitted}
    assert {"V1", "V2", "V3", "V4", "V5", "V6", "V7"} <= predicted
    assert sum(not row.fitted for row in ROWS if row.point != "CPU") >= 26


def test_fixed_drafts_of_seven_pay_at_128_and_cost_at_256():
    assert flips(ROWS)


def test_a_mixture_loses_by_speculating_alone():
    assert headline(ROWS)["v7_slower"] == 1.0


def test_n_gram_gains_less_the_more_requests_run_on_the_cpu():
    by_name = {row.what: row for row in ROWS if row.point == "CPU"}
    gains = [
        by_name[f"n-gram k=4, B={b}"].predicted / by_name[f"plain, B={b}"].predicted
        for b in (1, 4, 8, 16)
    ]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == pytest.approx(19.3 / 6.3, rel=0.1)
    assert gains[-1] < 1.45  # measured 1.1


def test_the_table_marks_what_was_fitted_and_what_is_out():
    good = Row(
        point="X", what="a", unit="s", published=2.0, predicted=2.1, source="s", tolerance=0.1
    )
    bad = Row(
        point="X", what="b", unit="s", published=2.0, predicted=3.0, source="s", tolerance=0.1
    )
    lines = table([good, bad]).splitlines()
    assert lines[1].split() == ["X", "a", "s", "2.00", "2.10", "+5.0", "%", "ok", "s"]
    assert "OUT" in lines[2]


def test_the_oracles_tokens_carry_the_decay_on():
    """Of survivals that fall by a tenth at each position, the whole sum is found again."""
    survival = [0.8 * 0.9**i for i in range(400)]
    tau = {k: 1 + sum(survival[:k]) for k in (1, 3, 5, 10)}
    assert tokens_per_pass_without_limit(tau) == pytest.approx(1 + sum(survival), rel=0.02)
