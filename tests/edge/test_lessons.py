"""What a request came to, from its record and from how busy its worker was."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from paceline.core.acceptance import SpeculationReport
from paceline.core.beliefs import MOST_TOKENS
from paceline.core.dialects import Said
from paceline.core.types import Classification, CopyRatio, Decision, Reason, Workload
from paceline.edge.lessons import WHOLE_TOKENS, Lesson, decode_s, outcome_of
from paceline.edge.telemetry import RequestRecord
from paceline.edge.workers import Busy

DECISION = Decision(
    classification=Classification(
        workload=Workload.EDIT,
        label_confidence=0.9,
        copy_ratio=CopyRatio(quantiles=(0.1, 0.5, 0.8, 0.9, 0.95)),
    ),
    model="m",
    pool="ngram",
    worker="http://a",
    reason=Reason.COST,
    rule=None,
    pools=(),
    rules=(),
)
REPORT = SpeculationReport(
    num_spec_steps=10,
    num_draft_tokens=50,
    num_accepted_draft_tokens=20,
    histogram=(4, 1, 1, 1, 1, 2),
)


def record(**more: object) -> RequestRecord:
    said = Said(num_prompt_tokens=80, num_output_tokens=41, report=REPORT)
    said = replace(said, **{name: more.pop(name) for name in [*more] if hasattr(said, name)})
    made = RequestRecord(
        arrived_s=0.0, code=200, sent_s=0.1, first_event_s=1.0, ended_s=3.0, _said=said
    )
    return replace(made, **more)  # type: ignore[arg-type]


def lesson(of: RequestRecord, *, k: int = 5) -> Lesson:
    began = Busy(at_s=0.0, request_s=100.0, slot_s=500.0, elsewhere=2.0)
    ended = Busy(at_s=4.0, request_s=112.0, slot_s=548.0, elsewhere=4.0)
    return Lesson(DECISION, k, 5, 7, 8, 400, None, began, None, ended, of)


def test_load_is_the_mean_over_the_time_it_ran():
    outcome = outcome_of(lesson(record()), lambda pool: 0.5)
    assert outcome is not None
    assert outcome.running == 12 / 4 + 3.0  # ours, and what others had there on average
    assert outcome.scheduled == 3.0 + 12.0 * 0.5 + 3.0 * (1 + 5 * 0.5)
    assert (outcome.decode_s, outcome.num_passes) == (2.0, 20.0)
    assert (outcome.template, outcome.conversation) == (7, 8)


def test_a_shorter_k_leaves_longer_drafts_unseen():
    outcome = outcome_of(lesson(record(), k=2), lambda pool: 1.0)
    assert outcome is not None
    assert outcome.accepted == (4, 1, 1)


@pytest.mark.parametrize(
    "more",
    [
        {"code": 499},
        {"num_output_tokens": None},
        {"num_output_tokens": 0},
        {"num_output_tokens": -3},
        {"num_output_tokens": MOST_TOKENS + 1},
    ],
)
def test_what_says_too_little_or_nonsense_teaches_nothing(more):
    assert outcome_of(lesson(record(**more)), lambda pool: 1.0) is None


def test_a_whole_answer_tells_times_only_if_it_is_long():
    short = record(first_event_s=None, num_output_tokens=WHOLE_TOKENS - 1)
    long = record(first_event_s=None, num_output_tokens=WHOLE_TOKENS)
    assert decode_s(short) is None
    assert decode_s(long) == pytest.approx(2.9)


@pytest.mark.parametrize(
    "report",
    [
        SpeculationReport(
            num_spec_steps=42, num_draft_tokens=210, num_accepted_draft_tokens=0, histogram=(42,)
        ),
        SpeculationReport(
            num_spec_steps=40,
            num_draft_tokens=200,
            num_accepted_draft_tokens=80,
            histogram=(0, 20, 0, 20),
        ),
    ],
)
def test_a_report_that_does_not_fit_the_answer_is_not_believed(report):
    outcome = outcome_of(lesson(record(report=report)), lambda pool: 1.0)
    assert outcome is not None
    assert (outcome.accepted, outcome.drafted_tokens, outcome.num_passes) == (None, None, None)
