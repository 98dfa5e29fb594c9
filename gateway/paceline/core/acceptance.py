"""What was accepted: one request's report, and totals over many.

Pools are compared by mean acceptance length, tokens per pass that carried a draft including the one
the target adds itself; never by accepted over drafted, since engines pad their drafts differently
(vLLM's GPU n-gram always drafts k, found or not).
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import mul
from typing import Any

from paceline.core.fields import mapping
from paceline.core.values import value_class

MAX_HISTOGRAM = 257
"""One more than any draft is long."""


@value_class
class SpeculationReport:
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
        if accepted > drafted or (drafted > 0 and steps == 0):
            return None
        return cls(
            num_spec_steps=steps,
            num_draft_tokens=drafted,
            num_accepted_draft_tokens=accepted,
            histogram=_histogram(report.get("acceptance_histogram"), steps, accepted),
        )


@value_class
class AcceptanceTotals:
    """Sums over the requests of one (pool, workload)."""

    num_requests: int = 0
    num_spec_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0

    def plus(self, report: SpeculationReport) -> AcceptanceTotals:
        return AcceptanceTotals(
            num_requests=self.num_requests + 1,
            num_spec_steps=self.num_spec_steps + report.num_spec_steps,
            num_draft_tokens=self.num_draft_tokens + report.num_draft_tokens,
            num_accepted_draft_tokens=(
                self.num_accepted_draft_tokens + report.num_accepted_draft_tokens
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
