"""What was accepted: one request's report, and totals over many.

Pools are compared by mean acceptance length, tokens per pass that carried a draft including the one
the target adds itself; never by accepted over drafted, since engines pad their drafts differently
(vLLM's GPU n-gram always drafts k, found or not).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import mul
from typing import Any

from msgspec import Struct

from paceline.core.fields import mapping

MAX_HISTOGRAM = 257
"""One more than any draft is long."""
MAX_STEPS = 2**24
"""Passes that one answer can have taken; more is a miscount."""


class SpeculationReport(Struct, frozen=True, kw_only=True):
    """`metrics.speculative_decoding` of one answer (vLLM >= 0.29 with
    `--per-request-spec-decode-metrics`). All counts; passes without a draft are in none.

    `histogram[i]` is how many of the passes had i draft tokens accepted; empty if not told.
    """

    num_spec_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    histogram: tuple[int, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> SpeculationReport | None:
        """The report in an answer or in its last chunk; None where there is none, or nonsense."""
        report = mapping(mapping(answer.get("metrics")).get("speculative_decoding"))
        if not report:
            return None
        steps = _count(report.get("num_spec_steps"))
        drafted = _count(report.get("num_draft_tokens"))
        accepted = _count(report.get("num_accepted_draft_tokens"))
        if steps is None or drafted is None or accepted is None:
            return None
        return cls.told(steps, drafted, accepted, report.get("acceptance_histogram"))

    @classmethod
    def told(
        cls, steps: int, drafted: int, accepted: int, histogram: Any
    ) -> SpeculationReport | None:
        """The report of these counts; None if no answer can have had them."""
        if not 0 <= accepted <= drafted <= steps * (MAX_HISTOGRAM - 1) or steps > MAX_STEPS:
            return None
        return cls(
            num_spec_steps=steps,
            num_draft_tokens=drafted,
            num_accepted_draft_tokens=accepted,
            histogram=_histogram(histogram, steps, accepted),
        )


class AcceptanceTotals(Struct, frozen=True, kw_only=True):
    """Sums over the requests of one (pool, workload)."""

    num_requests: int = 0
    num_spec_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0

    @classmethod
    def of(cls, reports: Collection[SpeculationReport]) -> AcceptanceTotals:
        return cls(
            num_requests=len(reports),
            num_spec_steps=sum([each.num_spec_steps for each in reports]),
            num_draft_tokens=sum([each.num_draft_tokens for each in reports]),
            num_accepted_draft_tokens=sum([each.num_accepted_draft_tokens for each in reports]),
        )

    def plus(self, other: AcceptanceTotals) -> AcceptanceTotals:
        return AcceptanceTotals(
            num_requests=self.num_requests + other.num_requests,
            num_spec_steps=self.num_spec_steps + other.num_spec_steps,
            num_draft_tokens=self.num_draft_tokens + other.num_draft_tokens,
            num_accepted_draft_tokens=(
                self.num_accepted_draft_tokens + other.num_accepted_draft_tokens
            ),
        )

    @property
    def mean_acceptance_length(self) -> float | None:
        """1 + accepted / passes that drafted, in tokens per pass; None before the first such pass.

        Source: vLLM, `vllm/v1/spec_decode/metrics.py`.
        """
        if self.num_spec_steps == 0:
            return None
        return 1.0 + self.num_accepted_draft_tokens / self.num_spec_steps


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None  # true and false are none


def _histogram(value: Any, steps: int, accepted: int) -> tuple[int, ...]:
    """As told, if it agrees with the totals beside it; else nothing."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_HISTOGRAM:
        return ()
    if set(map(type, value)) != _INT or min(value) < 0:
        return ()
    agrees = sum(value) == steps and sum(map(mul, value, range(len(value)))) == accepted
    return tuple(value) if agrees else ()


_INT = {int}
