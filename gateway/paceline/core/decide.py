"""A request's whole path through the decisions: the function that every driver calls.

    features ─► classify ─► gates ─► rules ─► choose (or as rules and defaults say) ─► worker, k

The gateway calls `decide` for each request with a snapshot of its fleet, `paceline check` calls it
for the configuration's tests, and the tests call it with values written by hand. The simulator,
which has no texts, hands its own classification to `route`, where `decide` goes on too. What is
known comes in, a `Decision` with its reasons comes out, and nothing is remembered.

Without `adaptive` the operator's rules are all there is (`mode: static`). With it, what the rules
leave open is decided by expected cost (`choose.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter

from msgspec.structs import replace

from paceline.core.balance import pick_worker
from paceline.core.beliefs import Outlook
from paceline.core.choose import Adaptive
from paceline.core.classify import classify
from paceline.core.compiled import choose, outcome_of
from paceline.core.gates import refusals
from paceline.core.rules import Rule, RuleOutcome
from paceline.core.types import (
    GENERATING,
    Caller,
    Choice,
    Classification,
    Decision,
    ModelSnapshot,
    PoolSnapshot,
    PoolVerdict,
    Reason,
    RequestFeatures,
    Workload,
)
from paceline.errors import NoCompatiblePool

_NAME = attrgetter("name")


def decide(
    features: RequestFeatures,
    caller: Caller,
    model: ModelSnapshot,
    rules: Sequence[Rule],
    adaptive: Adaptive | None = None,
) -> Decision:
    """Where the request goes: workload, pool, worker, k, and why.

    Raises NoCompatiblePool if the gates refuse every pool of the model.
    """
    return route(features, classify(features), caller, model, rules, adaptive)


def route(
    features: RequestFeatures,
    classification: Classification,
    caller: Caller,
    model: ModelSnapshot,
    rules: Sequence[Rule],
    adaptive: Adaptive | None = None,
) -> Decision:
    """As `decide`, for a request that was classified already. Raises NoCompatiblePool."""
    if caller.workload is not None:
        classification = _labelled(classification, caller.workload)
    refused = refusals(features.view, model.pools)
    allowed = frozenset(map(_NAME, model.pools)).difference(refused)
    if not allowed:
        raise NoCompatiblePool(_nobody_can(model, refused))
    outcome = outcome_of(rules, features, classification, caller, allowed)
    candidates: list[PoolSnapshot] = []
    up: list[PoolSnapshot] = []
    verdicts: list[PoolVerdict] = []
    for pool in model.pools:  # in one loop, since each comprehension costs as much as all of it
        is_candidate = pool.name in allowed and pool.name not in outcome.forbidden
        if is_candidate:
            candidates.append(pool)
        if is_candidate and pool.is_up:
            up.append(pool)
            verdicts.append(_allowed(pool.name))
        else:
            verdicts.append(_not_used(pool, refused, outcome))
    choice = None
    if adaptive is not None and up and features.view.endpoint in GENERATING:
        outlook = adaptive.expectations.outlook(features, classification, caller)
        choice, reason = _by_cost(up, outlook, adaptive, model, outcome)
        if len(candidates) == 1 and outcome.pool is None:
            reason = Reason.ONLY
    if choice is not None:
        pool_name, worker = choice.chosen.pool, choice.chosen.worker
    else:
        pool, reason = _standing_in(*_wanted_pool(model, candidates, outcome), model, candidates)
        pool_name, worker = pool.name, pick_worker(pool).url
    return Decision(
        classification=classification,
        model=model.name,
        pool=pool_name,
        worker=worker,
        reason=reason,
        rule=outcome.rule,
        pools=tuple(verdicts),
        rules=outcome.verdicts,
        choice=choice,
    )


def _by_cost(
    up: Sequence[PoolSnapshot],
    outlook: Outlook,
    adaptive: Adaptive,
    model: ModelSnapshot,
    outcome: RuleOutcome,
) -> tuple[Choice, Reason]:
    """The cheapest of the pools that are `up`; of one that a rule names, its cheapest worker."""
    named: Sequence[PoolSnapshot] = ()
    if outcome.pool is not None:
        named = [pool for pool in up if pool.name == outcome.pool]
    choice, reason = choose(named or up, outlook, adaptive, model.default_pool, outcome.preferred)
    if outcome.pool is not None:
        reason = Reason.RULE if named else Reason.SPILL
    return choice, reason


def _labelled(classification: Classification, workload: Workload) -> Classification:
    """The client's own label in place of our guess."""
    return replace(
        classification,
        workload=workload,
        label_confidence=1.0,
        evidence=("client-label", *classification.reasons),
    )


def _wanted_pool(
    model: ModelSnapshot, candidates: Sequence[PoolSnapshot], outcome: RuleOutcome
) -> tuple[PoolSnapshot, Reason]:
    """The pool that rules and defaults ask for, whether or not it is up."""
    named = outcome.pool or outcome.preferred
    if named is not None:
        return model.pool(named), Reason.RULE
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


@cache
def _allowed(pool: str) -> PoolVerdict:
    return PoolVerdict(pool=pool, refused=None)


def _not_used(pool: PoolSnapshot, refused: Mapping[str, str], outcome: RuleOutcome) -> PoolVerdict:
    why = refused.get(pool.name)
    if why is None and pool.name in outcome.forbidden:
        why = f"forbidden by rule {outcome.rule}"
    return PoolVerdict(pool=pool.name, refused=why or "all its workers are down")


def _nobody_can(model: ModelSnapshot, refused: Mapping[str, str]) -> str:
    listed = "; ".join(f"{pool}: {why}" for pool, why in refused.items())
    return f"no pool of model {model.name} can serve this request ({listed})"
