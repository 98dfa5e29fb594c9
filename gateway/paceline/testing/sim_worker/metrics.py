"""`/metrics` as vLLM writes it: names, labels, buckets and `_created` twins.

Counters and gauges are read from the engine when somebody scrapes; latencies are observed as passes
are delivered. The names are those that vLLM 0.32 had (`vllm/v1/metrics/loggers.py`,
`vllm/v1/spec_decode/metrics.py`), less the families for which a simulation has nothing to say.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from paceline.sim.engine import Engine
from paceline.testing.sim_worker.options import SimWorkerOptions

CONTENT_TYPE = CONTENT_TYPE_LATEST
FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")
ADMISSION_REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")
_LABELS = ("model_name", "engine")

# vLLM's own bucket bounds, in seconds.
_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_TTFT_LONG = (20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5)
_PER_TOKEN_LONG = (10.0, 20.0, 40.0, 80.0)
_WHOLE = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_WHOLE_LONG = (120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)


class WorkerMetrics(Collector):
    """One worker's metrics, in a registry of their own."""

    def __init__(self, engine: Engine, options: SimWorkerOptions) -> None:
        self._engine = engine
        self._options = options
        self._created = time.time()
        self.finished: Tally[str] = Tally()
        self.rejected: Tally[str] = Tally()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        self.ttft = self._histogram("time_to_first_token", (*_TTFT, *_TTFT_LONG))
        self.itl = self._histogram("inter_token_latency", (*_PER_TOKEN, *_PER_TOKEN_LONG))
        self.tpot = self._histogram(
            "request_time_per_output_token", (*_PER_TOKEN, *_PER_TOKEN_LONG)
        )
        self.e2e = self._histogram("e2e_request_latency", (*_WHOLE, *_WHOLE_LONG))

    def exposition(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        yield from self._spec_decode()
        yield from self._load()
        yield from self._tokens()
        yield self._by("request_success", "finished_reason", FINISHED_REASONS, self.finished)
        rejections = CounterMetricFamily(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            labels=("model_name", "reason"),
        )
        for reason in ADMISSION_REASONS:
            labels = (self._options.model, reason)
            rejections.add_metric(labels, self.rejected[reason], created=self._created)
        yield rejections

    def _spec_decode(self) -> Iterator[Metric]:
        """Only on a worker that speculates; as many positions as it drafts tokens."""
        if self._options.speculation is None:
            return
        spec = self._engine.counters.spec
        yield self._counter(
            "spec_decode_num_drafts", "Number of spec decoding drafts.", spec.drafts
        )
        yield self._counter(
            "spec_decode_num_draft_tokens", "Number of draft tokens.", spec.draft_tokens
        )
        yield self._counter(
            "spec_decode_num_accepted_tokens", "Number of accepted tokens.", spec.accepted
        )
        counts = {str(i): number for i, number in enumerate(spec.accepted_per_position)}
        name = "spec_decode_num_accepted_tokens_per_pos"
        yield self._by(name, "position", tuple(counts), Tally(counts))

    def _load(self) -> Iterator[Metric]:
        waiting = len(self._engine.waiting)
        yield self._gauge("num_requests_running", len(self._engine.running))
        yield self._gauge("num_requests_waiting", waiting)
        by_reason = GaugeMetricFamily(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason.",
            labels=(*_LABELS, "reason"),
        )
        by_reason.add_metric((self._options.model, "0", "capacity"), waiting)
        by_reason.add_metric((self._options.model, "0", "deferred"), 0)
        yield by_reason
        yield self._gauge("kv_cache_usage_perc", self._engine.kv.usage)

    def _tokens(self) -> Iterator[Metric]:
        counters = self._engine.counters
        yield self._counter(
            "num_preemptions",
            "Cumulative number of preemption from the engine.",
            self._engine.preempted,
        )
        yield self._counter(
            "prompt_tokens", "Number of prefill tokens processed.", counters.prompt_tokens
        )
        yield self._counter(
            "generation_tokens",
            "Number of generation tokens processed.",
            counters.generation_tokens,
        )

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(f"vllm:{name}", text, labels=_LABELS)
        family.add_metric((self._options.model, "0"), value, created=self._created)
        return family

    def _gauge(self, name: str, value: float) -> Metric:
        family = GaugeMetricFamily(f"vllm:{name}", name.replace("_", " "), labels=_LABELS)
        family.add_metric((self._options.model, "0"), value)
        return family

    def _by(self, name: str, label: str, keys: Iterable[str], counts: Tally[str]) -> Metric:
        family = CounterMetricFamily(f"vllm:{name}", f"By {label}.", labels=(*_LABELS, label))
        for key in keys:
            family.add_metric((self._options.model, "0", key), counts[key], created=self._created)
        return family

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        histogram = Histogram(
            f"vllm:{name}_seconds",
            f"Histogram of {name.replace('_', ' ')} in seconds.",
            _LABELS,
            buckets=buckets,
            registry=self._registry,
        )
        return histogram.labels(self._options.model, "0")
