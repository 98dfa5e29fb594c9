"""`/metrics` as vLLM writes it: names, labels, buckets and `_created` twins.

Counters and gauges are read from the engine when somebody scrapes; latencies are observed as passes
are delivered. The names are those that vLLM 0.32 had (`vllm/v1/metrics/loggers.py`,
`vllm/v1/spec_decode/metrics.py`), less the families for which a simulation has nothing to say.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence

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
from paceline.sim.kv_cache import BLOCK_TOKENS
from paceline.testing.sim_worker.faults import Fault
from paceline.testing.sim_worker.options import SimWorkerOptions

CONTENT_TYPE = CONTENT_TYPE_LATEST
FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")
SLEEP_STATES = ("awake", "weights_offloaded", "discard_all")
ADMISSION_REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")
_LABELS = ("model_name", "engine")

# vLLM's own bucket bounds, in seconds.
_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_TTFT_LONG = (20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5)
_PER_TOKEN_LONG = (10.0, 20.0, 40.0, 80.0)
_WHOLE = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
_WHOLE_LONG = (120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)


class Histograms:
    """vLLM's histograms, one registry for all engines of a worker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def seconds(name: str, buckets: Sequence[float]) -> Histogram:
            text = f"Histogram of {name.replace('_', ' ')} in seconds."
            return _histogram(registry, f"{name}_seconds", text, buckets)

        def tokens(name: str) -> Histogram:
            text = f"Number of {name.replace('_', ' ')}."
            return _histogram(registry, name, text, _TOKENS)

        whole = (*_WHOLE, *_WHOLE_LONG)
        self.ttft = seconds("time_to_first_token", (*_TTFT, *_TTFT_LONG))
        self.itl = seconds("inter_token_latency", (*_PER_TOKEN, *_PER_TOKEN_LONG))
        self.tpot = seconds("request_time_per_output_token", (*_PER_TOKEN, *_PER_TOKEN_LONG))
        self.e2e = seconds("e2e_request_latency", whole)
        self.queue = seconds("request_queue_time", whole)
        self.inference = seconds("request_inference_time", whole)
        self.prefill = seconds("request_prefill_time", whole)
        self.decode = seconds("request_decode_time", whole)
        self.prompt_tokens = tokens("request_prompt_tokens")
        self.generation_tokens = tokens("request_generation_tokens")


def _histogram(
    registry: CollectorRegistry, name: str, text: str, buckets: Sequence[float]
) -> Histogram:
    return Histogram(f"vllm:{name}", text, _LABELS, buckets=buckets, registry=registry)


class EngineMetrics:
    """What is observed of one engine as it runs; latencies once a pass or once a request.

    As in vLLM the inter-token latency is the time between passes, not between tokens: speculation
    makes it look worse.
    """

    def __init__(self, histograms: Histograms, model: str, engine: str) -> None:
        self.finished: Tally[str] = Tally()
        self.ttft = histograms.ttft.labels(model, engine)
        self.itl = histograms.itl.labels(model, engine)
        self.tpot = histograms.tpot.labels(model, engine)
        self.e2e = histograms.e2e.labels(model, engine)
        self.queue = histograms.queue.labels(model, engine)
        self.inference = histograms.inference.labels(model, engine)
        self.prefill = histograms.prefill.labels(model, engine)
        self.decode = histograms.decode.labels(model, engine)
        self.prompt_tokens = histograms.prompt_tokens.labels(model, engine)
        self.generation_tokens = histograms.generation_tokens.labels(model, engine)


class WorkerMetrics(Collector):
    """One worker's metrics, in a registry of their own; every family has a sample an engine."""

    def __init__(
        self,
        engines: Sequence[Engine],
        options: SimWorkerOptions,
        saturation: Callable[[], Fault | None] = lambda: None,
    ) -> None:
        self._engines = engines
        self._options = options
        self._saturation = saturation
        self._created = time.time()
        self.rejected: Tally[str] = Tally()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        histograms = Histograms(self._registry)
        self.engines = [
            EngineMetrics(histograms, options.model, str(rank)) for rank in range(len(engines))
        ]

    def exposition(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        yield from self._spec_decode()
        yield from self._load()
        yield from self._tokens()
        finished = [metrics.finished for metrics in self.engines]
        yield self._by("request_success", "finished_reason", FINISHED_REASONS, finished)
        yield self._rejections()
        yield self._cache_config()

    def _spec_decode(self) -> Iterator[Metric]:
        """Only on a worker that speculates; as many positions as it drafts tokens."""
        if self._options.speculation is None:
            return
        specs = [engine.counters.spec for engine in self._engines]
        yield self._counter(
            "spec_decode_num_drafts",
            "Number of spec decoding drafts.",
            [spec.drafts for spec in specs],
        )
        yield self._counter(
            "spec_decode_num_draft_tokens",
            "Number of draft tokens.",
            [spec.draft_tokens for spec in specs],
        )
        yield self._counter(
            "spec_decode_num_accepted_tokens",
            "Number of accepted tokens.",
            [spec.accepted for spec in specs],
        )
        counts = [
            Tally({str(i): number for i, number in enumerate(spec.accepted_per_position)})
            for spec in specs
        ]
        positions = tuple(str(i) for i in range(self._options.num_speculative_tokens))
        name = "spec_decode_num_accepted_tokens_per_pos"
        yield self._by(name, "position", positions, counts)

    def _load(self) -> Iterator[Metric]:
        full = self._saturation()
        waiting = [len(e.waiting) + (full.waiting if full else 0) for e in self._engines]
        most = self._options.max_num_seqs
        yield self._gauge(
            "num_requests_running", [most if full else len(e.running) for e in self._engines]
        )
        yield self._gauge("num_requests_waiting", waiting)
        by_reason = GaugeMetricFamily(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason.",
            labels=(*_LABELS, "reason"),
        )
        for rank, number in enumerate(waiting):
            by_reason.add_metric((self._options.model, str(rank), "capacity"), number)
            by_reason.add_metric((self._options.model, str(rank), "deferred"), 0)
        yield by_reason
        usage = [1.0 if full else engine.kv.usage for engine in self._engines]
        yield self._gauge("kv_cache_usage_perc", usage)
        asleep = GaugeMetricFamily(
            "vllm:engine_sleep_state", "Engine sleep state.", labels=(*_LABELS, "sleep_state")
        )
        for rank in range(len(self._engines)):
            for state in SLEEP_STATES:
                labels = (self._options.model, str(rank), state)
                asleep.add_metric(labels, float(state == "awake"))
        yield asleep

    def _tokens(self) -> Iterator[Metric]:
        counters = [engine.counters for engine in self._engines]
        prompts = [each.prompt_tokens for each in counters]
        for name, text, values in (
            (
                "num_preemptions",
                "Cumulative number of preemption from the engine.",
                [engine.preempted for engine in self._engines],
            ),
            ("prompt_tokens", "Number of prefill tokens processed.", prompts),
            (
                "generation_tokens",
                "Number of generation tokens processed.",
                [each.generation_tokens for each in counters],
            ),
            # There is no prefix cache: everything is asked for and nothing found.
            ("prefix_cache_queries", "Prefix cache queries, in tokens.", prompts),
            ("prefix_cache_hits", "Prefix cache hits, in tokens.", [0] * len(prompts)),
        ):
            yield self._counter(name, text, values)

    def _rejections(self) -> Metric:
        family = CounterMetricFamily(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            labels=("model_name", "reason"),
        )
        for reason in ADMISSION_REASONS:
            labels = (self._options.model, reason)
            family.add_metric(labels, self.rejected[reason], created=self._created)
        return family

    def _cache_config(self) -> Metric:
        names = ("block_size", "num_gpu_blocks", "engine")
        family = GaugeMetricFamily(
            "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", labels=names
        )
        for rank, engine in enumerate(self._engines):
            family.add_metric((str(BLOCK_TOKENS), str(engine.kv.num_blocks), str(rank)), 1)
        return family

    def _counter(self, name: str, text: str, values: Sequence[float]) -> Metric:
        family = CounterMetricFamily(f"vllm:{name}", text, labels=_LABELS)
        for rank, value in enumerate(values):
            family.add_metric((self._options.model, str(rank)), value, created=self._created)
        return family

    def _gauge(self, name: str, values: Sequence[float]) -> Metric:
        family = GaugeMetricFamily(f"vllm:{name}", name.replace("_", " "), labels=_LABELS)
        for rank, value in enumerate(values):
            family.add_metric((self._options.model, str(rank)), value)
        return family

    def _by(
        self, name: str, label: str, keys: Iterable[str], counts: Sequence[Tally[str]]
    ) -> Metric:
        family = CounterMetricFamily(f"vllm:{name}", f"By {label}.", labels=(*_LABELS, label))
        for key in keys:
            for rank, tally in enumerate(counts):
                labels = (self._options.model, str(rank), key)
                family.add_metric(labels, tally[key], created=self._created)
        return family
