"""The fleet and what is believed of it, as plain JSON values for operators."""

from __future__ import annotations

from typing import Any

from paceline.core.beliefs import Beliefs
from paceline.core.types import Workload
from paceline.edge.learner import Learner
from paceline.edge.telemetry import Telemetry
from paceline.edge.workers import Fleet, Model, Pool, Worker
from paceline.settings import Mode


def state_of(
    mode: Mode, fleet: Fleet, telemetry: Telemetry, learner: Learner | None
) -> dict[str, Any]:
    """Models, pools and workers as they are now; unknown values are null."""
    return {
        "mode": mode.value,
        "models": [
            {
                "name": model.name,
                "aliases": list(model.settings.aliases),
                "default_pool": model.settings.default_pool,
                "pools": [
                    _pool(model, pool, fleet, telemetry)
                    | ({} if learner is None else _believed(learner.beliefs[model.name], pool))
                    for pool in model.pools
                ],
            }
            for model in fleet.models
        ],
    }


def _pool(model: Model, pool: Pool, fleet: Fleet, telemetry: Telemetry) -> dict[str, Any]:
    speculation = pool.settings.speculation
    lengths = {
        workload: totals.mean_acceptance_length
        for (of_model, of_pool, workload), totals in telemetry.acceptance.totals.items()
        if (of_model, of_pool) == (model.name, pool.name)
    }
    return {
        "name": pool.name,
        "speculation": speculation
        and {
            "method": speculation.method,
            "num_speculative_tokens": speculation.num_speculative_tokens,
        },
        "mean_acceptance_length": lengths,
        "workers": [_worker(worker, fleet.now_s()) for worker in pool.workers],
    }


def _believed(beliefs: Beliefs, pool: Pool) -> dict[str, Any]:
    """What is expected of a pool: tokens a pass by workload and k, seconds of a pass, knees."""
    fit = beliefs.fit_of(pool.name)
    step = beliefs.pool_step_time(pool.name)
    return {
        "expected_tokens_per_pass": {
            workload.value: [round(tau, 3) for tau in beliefs.tokens_per_pass(pool.name, workload)]
            for workload in Workload
        },
        "knee_running_sequences": None
        if pool.settings.speculation is None
        else {workload.value: beliefs.knee(pool.name, workload) for workload in Workload},
        "step_time": {
            "fixed_s": step.fixed_s,
            "token_s": step.token_s,
            "kv_token_s": step.kv_token_s,
            "num_observed": round(fit.num_observed, 1),
            "residual": fit.residual,
        },
        "slowness": {
            worker.url: round(beliefs.slowness(pool.name, worker.url), 3) for worker in pool.workers
        },
    }


def _worker(worker: Worker, now_s: float) -> dict[str, Any]:
    load = worker.load(now_s)
    return {
        "url": worker.url,
        "up": worker.up,
        "in_flight": worker.in_flight,
        "running": load.running,
        "waiting": load.waiting,
        "kv_cache_usage": load.kv_cache_usage,
    }
