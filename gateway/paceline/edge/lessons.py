"""What is noted of a request while it runs, and what it then has come to."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from paceline.core.acceptance import SpeculationReport
from paceline.core.beliefs import MOST_TOKENS, Outcome
from paceline.core.priors import band_shares
from paceline.core.replayable import Replayed
from paceline.core.types import Decision
from paceline.edge.teacher import Kept
from paceline.edge.telemetry import RequestRecord
from paceline.edge.workers import Busy

WHOLE_TOKENS = 48
"""Of a whole answer that is long enough to tell the seconds of a pass."""


class Lesson(Struct):
    """What is noted of a request while it runs, to learn from its end.

    Text is in it only where the replay teacher wants to see it, and until it has: `kept` is the
    answer as it came, `request` the body.
    """

    decision: Decision
    k: int
    limit: int  # of its pool's k
    template: int
    conversation: int
    prompt_chars: int
    max_tokens: int | None
    began: Busy
    kept: Kept | None = None
    ended: Busy | None = None
    record: RequestRecord | None = None


def outcome_of(
    lesson: Lesson, fill_of: Callable[[str], float], replayed: Replayed | None = None
) -> Outcome | None:
    """What the model's beliefs can learn from; None if the answer said too little of itself.

    `fill_of` is the part of its draft slots that a pool uses; `replayed` what the texts showed.
    """
    record, ended, began, decision = lesson.record, lesson.ended, lesson.began, lesson.decision
    if record is None or ended is None or record.code != 200:
        return None
    written = record.said.num_output_tokens
    if written is None or not 0 < written <= MOST_TOKENS:
        return None
    read = record.said.num_prompt_tokens
    report, k = _believed(record.said.report, written, lesson.limit), lesson.k
    accepted = report.histogram[: k + 1] if report is not None and report.histogram else None
    lasted_s = ended.at_s - began.at_s
    running, slots = 1.0, float(k)
    if lasted_s > 0:
        running = max(1.0, (ended.request_s - began.request_s) / lasted_s)
        slots = max(float(k), (ended.slot_s - began.slot_s) / lasted_s)
    elsewhere = 0.5 * (began.elsewhere + ended.elsewhere)
    fill = fill_of(decision.pool)
    return Outcome(
        pool=decision.pool,
        worker=decision.worker,
        workload=decision.classification.workload,
        template=lesson.template,
        conversation=lesson.conversation,
        believed=band_shares(decision.classification.copy_ratio),
        k=k,
        prompt_chars=lesson.prompt_chars,
        prompt_tokens=read if read is not None and 0 < read <= MOST_TOKENS else None,
        output_tokens=written,
        max_tokens=lesson.max_tokens,
        accepted=accepted,
        drafted_tokens=report.num_draft_tokens if report is not None else None,
        decode_s=decode_s(record),
        running=running + elsewhere,
        scheduled=running + slots * fill + elsewhere * (1.0 + lesson.limit * fill),
        copy_ratio=None if replayed is None else replayed.copy_ratio,
        loops=replayed is not None and replayed.loops,
    )


def _believed(
    report: SpeculationReport | None, num_tokens: int, limit: int
) -> SpeculationReport | None:
    """What was accepted, unless an answer of so many tokens cannot have taken those passes: each
    yields one token at least, and only the last may accept more than there was room for."""
    if report is None or report.num_spec_steps > num_tokens:
        return None
    return report if report.num_accepted_draft_tokens <= num_tokens + limit else None


def decode_s(record: RequestRecord) -> float | None:
    """From a request's first token to its last, in seconds.

    An answer that is no stream does not say when it began; with many tokens its prompt's part is
    small, with few it says nothing.
    """
    if record.ended_s is None:
        return None
    if record.first_event_s is not None:
        return record.ended_s - record.first_event_s
    if record.sent_s is None or (record.said.num_output_tokens or 0) < WHOLE_TOKENS:
        return None
    return record.ended_s - record.sent_s
