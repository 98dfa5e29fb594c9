"""Settings for workers known by address alone: `paceline serve --worker URL …`.

A worker's metrics say whether it speculates and with how many tokens, but not by which method, so
pools are named for what is known: `plain`, or `spec-k5`. Requests go to the plain pool unless it is
plausible that speculation pays whatever the method: an edit mostly repeats its prompt, which every
method drafts well, so it prefers the most tokens; code is the next best, but its runs are shorter,
so it prefers the fewest. Where that is wrong a configuration file with methods and rules is better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.core.rules import Action, Condition, Rule
from paceline.core.types import Speculation, Workload
from paceline.errors import ConfigurationError
from paceline.settings.fields import worker_url
from paceline.settings.problems import quoted
from paceline.settings.values import ModelSettings, PoolSettings, Settings, WorkerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredWorker:
    """What a worker said of itself; `num_speculative_tokens` is None if it does not speculate."""

    url: str  # as `worker_address` returns it
    model: str
    num_speculative_tokens: int | None

    @property
    def pool(self) -> str:
        tokens = self.num_speculative_tokens
        return "plain" if tokens is None else f"spec-k{tokens}"


def worker_address(text: str) -> str:
    """`--worker`'s argument as `scheme://host[:port]`. Raises ConfigurationError if it is not."""
    try:
        return worker_url(text)
    except ValueError as error:
        typed = re.sub(r"//.*@", "//…@", text, flags=re.DOTALL)  # without a password
        raise ConfigurationError(f"--worker {quoted(typed)}: {error}") from None


def discovered_settings(workers: Sequence[DiscoveredWorker]) -> Settings:
    """Settings that serve each worker's model, all else at its default.

    Workers are grouped by model, and within a model by tokens, in the order in which they come.
    Raises ConfigurationError if there is none, or one twice.
    """
    urls = [worker.url for worker in workers]
    repeated = sorted({url for url in urls if urls.count(url) > 1})
    if repeated or not urls:
        raise ConfigurationError(f"worker named twice: {repeated[0]}" if urls else "no workers")
    models = tuple(
        _model(name, [worker for worker in workers if worker.model == name])
        for name in _in_order(worker.model for worker in workers)
    )
    rules = [rule for model in models for rule in _rules(model, len(models) > 1)]
    return Settings(models=models, rules=tuple(rules))


def _model(name: str, workers: Sequence[DiscoveredWorker]) -> ModelSettings:
    pools = tuple(
        _pool([worker for worker in workers if worker.pool == pool])
        for pool in _in_order(worker.pool for worker in workers)
    )
    plain = (pool for pool in pools if pool.speculation is None)
    return ModelSettings(
        name=name,
        aliases=(),
        upstream_name=name,
        default_pool=next(plain, pools[0]).name,
        pools=pools,
    )


def _pool(workers: Sequence[DiscoveredWorker]) -> PoolSettings:
    tokens = workers[0].num_speculative_tokens
    return PoolSettings(
        name=workers[0].pool,
        speculation=(
            None if tokens is None else Speculation(method=None, num_speculative_tokens=tokens)
        ),
        workers=tuple(WorkerSettings(url=worker.url) for worker in workers),
    )


def _rules(model: ModelSettings, among_others: bool) -> list[Rule]:
    """Two preferences, where there are both plain and speculating workers to choose from."""
    by_tokens = sorted(
        (pool.speculation.num_speculative_tokens, pool.name)
        for pool in model.pools
        if pool.speculation is not None
    )
    if not by_tokens or len(by_tokens) == len(model.pools):
        return []
    return [
        _prefer(Workload.EDIT, by_tokens[-1][1], model.name, among_others),
        _prefer(Workload.CODE, by_tokens[0][1], model.name, among_others),
    ]


def _prefer(workload: Workload, pool: str, model: str, among_others: bool) -> Rule:
    of_model = (Condition(field="model", any_of=(model,)),) if among_others else ()
    return Rule(
        name=f"{workload.value}-{model}" if among_others else workload.value,
        when=(*of_model, Condition(field="workload", any_of=(workload.value,))),
        then=Action(prefer=pool),
    )


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
