"""The engines behind one worker's port: one, or several data parallel ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from paceline.core.suffix import SuffixIndex, SuffixRules
from paceline.sim.engine import Engine
from paceline.testing.sim_worker.faults import Fault
from paceline.testing.sim_worker.metrics import EngineMetrics, WorkerMetrics
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.pacing import EnginePacer

MOST_OUTPUTS = 500  # that suffix decoding looks in, of vLLM's 10,000: 150 KB each in Python
WAITING_WEIGHT = 4  # vLLM's balancer counts one waiting as four running (v1/engine/core_client.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One engine, what drives it and what it has in common with its sequences."""

    engine: Engine
    pacer: EnginePacer
    outputs: SuffixIndex | None


class Engines:
    """All ranks of a worker, as new. `saturation` tells of a fault that makes them look full."""

    def __init__(
        self, options: SimWorkerOptions, saturation: Callable[[], Fault | None] = lambda: None
    ) -> None:
        self._options = options
        self._costs = options.costs
        engines = [_engine(options) for _ in range(options.engines)]
        self.metrics = WorkerMetrics(engines, options, saturation)
        self.ranks = [
            self._rank(engine, metrics)
            for engine, metrics in zip(engines, self.metrics.engines, strict=True)
        ]

    def _rank(self, engine: Engine, metrics: EngineMetrics) -> Rank:
        pacer = EnginePacer(engine, metrics, time_scale=self._options.time_scale)
        return Rank(engine=engine, pacer=pacer, outputs=_outputs(self._options))

    def choose(self, wanted: int | None) -> Rank:
        """The rank that was asked for (IndexError if there is none), or the least loaded."""
        if wanted is not None:
            return self.ranks[wanted]
        return min(self.ranks, key=lambda rank: _load(rank.engine))

    @property
    def num_present(self) -> int:
        """Sequences running and waiting."""
        return sum(len(r.engine.running) + len(r.engine.waiting) for r in self.ranks)

    @property
    def prompt_tokens_waiting(self) -> int:
        return sum(rank.engine.prompt_tokens_waiting for rank in self.ranks)

    def slow_down(self, factor: float) -> None:
        """Every pass takes `factor` times as long as by the hardware."""
        for rank in self.ranks:
            rank.engine.costs = self._costs.slowed(factor)

    def fail(self, failure: Exception) -> None:
        for rank in self.ranks:
            rank.pacer.fail(failure)

    def stats(self) -> dict[str, Any]:
        """How late passes were handed out, in seconds, of the last that are remembered."""
        late = [seconds for rank in self.ranks for seconds in rank.pacer.lateness_s]
        cuts = quantiles(late, n=100) if len(late) > 1 else [0.0] * 99
        passes = sum(rank.engine.counters.passes for rank in self.ranks)
        return {
            "passes": passes,
            "lateness_s": {"p50": cuts[49], "p99": cuts[98], "max": max(late, default=0.0)},
        }


def _engine(options: SimWorkerOptions) -> Engine:
    return Engine(
        num_speculative_tokens=options.num_speculative_tokens,
        max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens,
        kv_cache_tokens=options.kv_cache_tokens,
        schedule=options.schedule,
        costs=options.costs,
    )


def _outputs(options: SimWorkerOptions) -> SuffixIndex | None:
    speculation = options.speculation
    if speculation is None or speculation.method != "suffix":
        return None
    rules = SuffixRules.of(speculation.num_speculative_tokens, speculation.options)
    most = min(rules.max_cached_requests, MOST_OUTPUTS)
    return SuffixIndex(most) if most else None


def _load(engine: Engine) -> int:
    return WAITING_WEIGHT * len(engine.waiting) + len(engine.running)
