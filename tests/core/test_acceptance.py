"""What was accepted: reports read with suspicion, totals that add up."""

from __future__ import annotations

import gzip
import json
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.acceptance import AcceptanceTotals, SpeculationReport

TRACES = Path(__file__).parents[1] / "data" / "traces"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
names = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")


def answer(**report: object) -> dict:
    return {"choices": [], "metrics": {"speculative_decoding": report}}


def report(steps: int, drafted: int, accepted: int) -> SpeculationReport:
    return SpeculationReport(
        num_spec_steps=steps, num_draft_tokens=drafted, num_accepted_draft_tokens=accepted
    )


# ---- reports -------------------------------------------------------------------------------------


def test_a_report_is_read_from_an_answer() -> None:
    told = answer(
        num_spec_steps=7, num_draft_tokens=28, num_accepted_draft_tokens=23, num_spec_tokens=4
    )
    assert SpeculationReport.of(told) == report(7, 28, 23)


def test_a_request_that_never_drafted_reports_zeros() -> None:
    told = answer(num_spec_steps=0, num_draft_tokens=0, num_accepted_draft_tokens=0)
    assert SpeculationReport.of(told) == report(0, 0, 0)


@pytest.mark.parametrize(
    "nothing",
    [
        {},
        {"metrics": None},
        {"metrics": {"time_to_first_token_ms": 3.0}},
        {"metrics": []},
        {"metrics": {"speculative_decoding": None}},
        answer(),
        answer(num_spec_steps=1, num_draft_tokens=4),
    ],
)
def test_an_answer_without_a_report_has_none(nothing: dict) -> None:
    assert SpeculationReport.of(nothing) is None


@pytest.mark.parametrize(
    ("steps", "drafted", "accepted"),
    [(1, 4, 5), (-1, 4, 2), (1, -4, -5), (1.0, 4, 2), (True, 4, 2), ("1", 4, 2), (0, 4, 2)],
)
def test_nonsense_is_no_report(steps: object, drafted: object, accepted: object) -> None:
    told = answer(
        num_spec_steps=steps, num_draft_tokens=drafted, num_accepted_draft_tokens=accepted
    )
    assert SpeculationReport.of(told) is None


@given(inner=json_values, report=st.dictionaries(st.sampled_from(names), json_values))
def test_no_answer_makes_reading_fail(inner: object, report: dict) -> None:
    odd = {"metrics": {"speculative_decoding": inner}}
    for body in ({"metrics": inner}, answer(**report), odd):
        found = SpeculationReport.of(body)
        assert found is None or found.num_accepted_draft_tokens <= found.num_draft_tokens


@pytest.mark.parametrize("counts", [(1, 2**64 - 1, 2**64 - 1), (2**60, 2**60, 0), (5, 1281, 1)])
def test_counts_that_no_answer_can_have_are_no_report(counts: tuple[int, int, int]) -> None:
    assert SpeculationReport.of(answer(**dict(zip(names, counts, strict=True)))) is None


# ---- totals --------------------------------------------------------------------------------------

reports = st.builds(
    lambda steps, k, share: report(steps, steps * k, int(steps * k * share)),
    steps=st.integers(0, 500),
    k=st.integers(1, 8),
    share=st.floats(0, 1),
)


def total(reports: list[SpeculationReport]) -> AcceptanceTotals:
    return AcceptanceTotals.of(reports)


@given(reports=st.lists(reports, max_size=8), seed=st.randoms())
def test_totals_are_sums_in_any_order(reports: list[SpeculationReport], seed) -> None:
    shuffled = seed.sample(reports, len(reports))
    totals = total(shuffled)
    assert totals == total(reports)
    middle = len(reports) // 2
    assert total(reports[:middle]).plus(total(reports[middle:])) == totals
    assert totals.num_requests == len(reports)
    assert totals.num_draft_tokens == sum(one.num_draft_tokens for one in reports)


@given(reports=st.lists(reports, max_size=8))
def test_mean_acceptance_length_is_one_to_k_plus_one(reports: list[SpeculationReport]) -> None:
    mean = total(reports).mean_acceptance_length
    if any(one.num_spec_steps for one in reports):
        assert 1.0 <= mean <= 1.0 + 8
    else:
        assert mean is None


def test_mean_acceptance_length_weighs_passes_not_requests() -> None:
    long, short = report(90, 360, 0), report(10, 40, 40)
    assert total([long, short]).mean_acceptance_length == 1 + 40 / 100


def test_padded_drafts_do_not_lower_the_mean_acceptance_length() -> None:
    """Accepted over drafted would: 0.5 against 0.25."""
    padded, exact = report(10, 80, 20), report(10, 40, 20)
    means = {total([one]).mean_acceptance_length for one in (padded, exact)}
    assert means == {3.0}


def test_the_mean_is_the_one_that_vllm_reports() -> None:
    seen = 0
    for path in sorted(TRACES.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            stream = "".join(json.loads(line).get("data", "") for line in file)
        last = json.loads(stream.split("data: ")[-2])
        found = SpeculationReport.of(last)
        if path.name.startswith("plain."):
            assert found is None
            continue
        theirs = last["metrics"]["speculative_decoding"]["mean_acceptance_length"]
        assert isclose(total([found]).mean_acceptance_length, theirs)
        seen += 1
    assert seen == 18
