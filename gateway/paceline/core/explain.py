"""A decision in words and numbers, small enough for a response header."""

from __future__ import annotations

from typing import Any

from paceline.core.types import Classification, Decision


def explain(decision: Decision) -> dict[str, Any]:
    """The decision as plain JSON values; keys in the order in which the decision was made.

    `pools` and `rules` say, for each that was not used, why not.
    """
    return {
        **explain_classification(decision.classification),
        "model": decision.model,
        "pool": decision.pool,
        "worker": decision.worker,
        "reason": decision.reason.value,
        "rule": decision.rule,
        "pools": {verdict.pool: verdict.refused or "allowed" for verdict in decision.pools},
        "rules": {verdict.rule: verdict.why_not or "matched" for verdict in decision.rules},
    }


def explain_classification(classification: Classification) -> dict[str, Any]:
    return {
        "workload": classification.workload.value,
        "label_confidence": round(classification.label_confidence, 3),
        "copy_ratio": round(classification.copy_ratio.expected, 3),
        "because": list(classification.reasons),
    }
