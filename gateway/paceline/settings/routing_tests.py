"""Runs a configuration's `routing.tests` through the decisions that the gateway makes.

Every worker counts as up and idle: a test says where a request belongs, not what load makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.core.beliefs import Beliefs
from paceline.core.caller import caller_of
from paceline.core.choose import Adaptive
from paceline.core.decide import decide
from paceline.core.explain import how_sure, why
from paceline.core.features import measure
from paceline.core.types import (
    Decision,
    Endpoint,
    ModelSnapshot,
    PoolSnapshot,
    RequestView,
    WorkerSnapshot,
)
from paceline.core.views import view_of
from paceline.errors import ModelNotFound, PacelineError
from paceline.settings.values import Mode, ModelSettings, RoutingTest, Settings


def failed_tests(settings: Settings, *, file: str = "config") -> tuple[str, ...]:
    """A line for each test that fails: where it stands, what it expected, what came, and why.

    Empty if all pass. Never raises for a test's content: what a caller would be refused is a
    failure here.
    """
    failures = ((test, _failure(test, settings)) for test in settings.tests)
    return tuple(f"{file}:{test.line}: {why}" for test, why in failures if why is not None)


def _failure(test: RoutingTest, settings: Settings) -> str | None:
    try:
        decision = _decide(test, settings)
    except PacelineError as error:
        return f"expected {_expected(test)}, got an error: {error}"
    got = f"workload {decision.classification.workload}, pool {decision.pool}"
    fits = test.expect_workload in (None, decision.classification.workload)
    if fits and test.expect_pool in (None, decision.pool):
        return None
    return f"expected {_expected(test)}, got {got} ({'; '.join(_reasons(decision))})"


def _decide(test: RoutingTest, settings: Settings) -> Decision:
    return decision_when_idle(
        settings, test.endpoint, test.request, test.headers, key_name=test.key
    )


def decision_when_idle(
    settings: Settings,
    endpoint: Endpoint,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    key_name: str | None = None,
) -> Decision:
    """Where a request would go with every worker up and idle, and nothing learned yet.

    `headers` have lower-case names; a body without a model asks for the first. Raises RequestError.
    """
    settings.auth.check_name(key_name)
    view = view_of(endpoint, {"model": settings.models[0].name, **body})
    model = _asked_for(view, settings.models)
    caller = caller_of(view, body, headers, key_name=key_name, model=model.name)
    return decide(measure(view), caller, _all_up(model), settings.rules, _adaptive(settings, model))


def _adaptive(settings: Settings, model: ModelSettings) -> Adaptive | None:
    """What a gateway believes that has seen nothing yet, and that never explores."""
    if settings.mode is Mode.STATIC:
        return None
    return Adaptive(expectations=Beliefs(pools={p.name: p.speculation for p in model.pools}))


def _asked_for(view: RequestView, models: Iterable[ModelSettings]) -> ModelSettings:
    """Raises ModelNotFound; a test's model was checked when the settings were built."""
    for model in models:
        if view.model in (model.name, *model.aliases):
            return model
    raise ModelNotFound(f"there is no model {view.model[:256]!r} in this configuration")


def _all_up(model: ModelSettings) -> ModelSnapshot:
    pools = (
        PoolSnapshot(
            name=pool.name,
            speculation=pool.speculation,
            workers=tuple(WorkerSnapshot(url=worker.url) for worker in pool.workers),
            max_num_seqs=pool.max_num_seqs,
        )
        for pool in model.pools
    )
    return ModelSnapshot(name=model.name, default_pool=model.default_pool, pools=tuple(pools))


def _expected(test: RoutingTest) -> str:
    wanted = {"workload": test.expect_workload, "pool": test.expect_pool}
    return ", ".join(f"{what} {value}" for what, value in wanted.items() if value is not None)


def _reasons(decision: Decision) -> Iterator[str]:
    because = ", ".join(decision.classification.reasons) or "no evidence"
    yield f"{how_sure(decision.classification.label_confidence)} sure because of {because}"
    copied = decision.classification.copy_ratio.expected
    yield f"copy ratio {copied:.2f}"
    yield f"pool by {f'rule {decision.rule}' if decision.rule else decision.reason}"
    if decision.choice is not None:
        yield why(decision)
    for rule in decision.rules:
        if rule.why_not is not None:
            yield f"not {rule.rule}: {rule.why_not}"
    for pool in decision.pools:
        if pool.refused is not None:
            yield f"not {pool.pool}: {pool.refused}"
