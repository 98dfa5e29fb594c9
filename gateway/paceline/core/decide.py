"""A request's whole path through the decisions: the function that every driver calls.

    features ─► classify ─► gates ─► rules ─► pool ─► worker

The gateway calls `decide` for each request with a snapshot of its fleet, `paceline check` calls it
for the configuration's tests, and the tests call it with values written by hand. What is known of a
request comes in, a `Decision` with its reasons comes out, and nothing is remembered.

This is static routing: the operator's rules and no costs. Choosing by expected speed takes the
place of `_wanted_pool`, between the rules and the check of what is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from paceline.core.balance import pick_worker
from paceline.core.classify import classify
from paceline.core.gates import refusal
from paceline.core.rules import Rule, RuleOutcome, apply_rules, facts
from paceline.core.types import (
    Caller,
    Classification,
    Decision,
    ModelSnapshot,
    PoolSnapshot,
    PoolVerdict,
    Reason,
    RequestFeatures,
)
from paceline.errors import NoCompatiblePool


def decide(
    features: RequestFeatures,
    caller: Caller,
    model: ModelSnapshot,
    rules: Sequence[Rule],
) -> Decision:
    """Where the request goes: workload, pool, worker, and why.

    Raises NoCompatiblePool if the gates refuse every pool of the model.
    """
    classification = _labelled(classify(features), caller)
    refused = {pool.name: refusal(features.view, pool) for pool in model.pools}
    allowed = frozenset([name for name, why in refused.items() if why is None])
    if not allowed:
        raise NoCompatiblePool(_nobody_can(model, refused))
    outcome = apply_rules(rules, facts(features, classification, caller), caller, allowed)
    usable = allowed - outcome.forbidden
    candidates = [pool for pool in model.pools if pool.name in usable]
    pool, reason = _standing_in(*_wanted_pool(model, candidates, outcome), model, candidates)
    return Decision(
        classification=classification,
        model=model.name,
        pool=pool.name,
        worker=pick_worker(pool).url,
        reason=reason,
        rule=outcome.rule,
        pools=tuple([_verdict(pool, refused[pool.name], outcome) for pool in model.pools]),
        rules=outcome.verdicts,
    )


def _labelled(classification: Classification, caller: Caller) -> Classification:
    """The client's own label, where it gave one, in place of our guess."""
    if caller.workload is None:
        return classification
    return replace(
        classification,
        workload=caller.workload,
        label_confidence=1.0,
        reasons=("client-label", *classification.reasons),
    )


def _wanted_pool(
    model: ModelSnapshot, candidates: Sequence[PoolSnapshot], outcome: RuleOutcome
) -> tuple[PoolSnapshot, Reason]:
    """The pool that rules and defaults ask for, whether or not it is up."""
    if outcome.pool is not None:
        return model.pool(outcome.pool), Reason.RULE
    if len(candidates) == 1:
        return candidates[0], Reason.ONLY
    for pool in candidates:
        if pool.name == model.default_pool:
            return pool, Reason.DEFAULT
    return candidates[0], Reason.GATE


def _standing_in(
    wanted: PoolSnapshot, reason: Reason, model: ModelSnapshot, candidates: Sequence[PoolSnapshot]
) -> tuple[PoolSnapshot, Reason]:
    """`wanted` if it is up, else one that is, the default first; with none up, `wanted` anyway."""
    if wanted.is_up:
        return wanted, reason
    up = [pool for pool in candidates if pool.is_up]
    if not up:
        return wanted, Reason.LAST_RESORT
    return next((pool for pool in up if pool.name == model.default_pool), up[0]), Reason.SPILL


def _verdict(pool: PoolSnapshot, refused: str | None, outcome: RuleOutcome) -> PoolVerdict:
    if refused is None and pool.name in outcome.forbidden:
        refused = f"forbidden by rule {outcome.rule}"
    if refused is None and not pool.is_up:
        refused = "all its workers are down"
    return _allowed(pool.name) if refused is None else PoolVerdict(pool=pool.name, refused=refused)


@cache
def _allowed(pool: str) -> PoolVerdict:
    return PoolVerdict(pool=pool, refused=None)


def _nobody_can(model: ModelSnapshot, refused: dict[str, str | None]) -> str:
    listed = "; ".join(f"{pool}: {why}" for pool, why in refused.items())
    return f"no pool of model {model.name} can serve this request ({listed})"
