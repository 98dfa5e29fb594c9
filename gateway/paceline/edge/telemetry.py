"""What the gateway counts, and one record per request.

Labels come from closed sets: our models and pools, the three workloads, status codes. Never a
user, never a prompt. Gauges that are facts of the fleet (in flight, up, mean acceptance length) are
read when the metrics are, so they cannot drift.
"""

from __future__ import annotations

import functools
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from paceline.core.acceptance import AcceptanceTotals, SpeculationReport
from paceline.core.beliefs import Outcome
from paceline.core.dialects import Said, said_by, said_in
from paceline.core.types import Decision
from paceline.edge.histograms import Histogram
from paceline.edge.workers import Fleet
from paceline.errors import PacelineError

CLIENT_GONE = 499
"""nginx's code for a client that closed its connection first."""

BATCH = 32
"""Requests counted at a time: the counters' code and tables are then at hand for all but the first,
which makes counting one several times cheaper."""

UNREAD_BYTES = 64 * 1024
"""Of an answer that is kept until somebody asks what it said."""
NOTHING = Said()

_LATENCY_BUCKETS = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
)  # fmt: skip
_TOKEN_BUCKETS = (0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.4, 1, 2.5)
_ADDED_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1)
_ERROR_BUCKETS = (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0)
_RATIO_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class RequestRecord(Struct):
    """What is known of one request, filled in as it goes. Times are monotonic, in seconds."""

    arrived_s: float
    request_id: str = ""
    decision: Decision | None = None
    code: int = 0
    failure: PacelineError | None = None  # what went wrong, before or within the answer
    body_read_s: float | None = None
    sent_s: float | None = None  # to the worker
    answered_s: float | None = None  # the worker's first event, or whole answer's headers
    first_event_s: float | None = None  # of a stream
    ended_s: float | None = None
    _said: Said = NOTHING
    _unread: bytes = b""

    @property
    def said(self) -> Said:
        """What its answer says of itself."""
        if self._unread:
            self._said, self._unread = said_in(self._unread), b""
        return self._said

    def learn(self, event: Any) -> None:
        """Takes usage and acceptance from an event of its answer."""
        if isinstance(event, dict):
            said = said_by(event)
            self._said = said if self._said is NOTHING else self._said.then(said)

    def learn_later(self, answer: bytes) -> None:
        """The same from a whole answer, when somebody asks what it said: that is among others of
        its kind, which is cheaper (see `BATCH`). A long one is not kept for it."""
        if len(answer) > UNREAD_BYTES:
            self._said = said_in(answer)
        else:
            self._unread = answer


@dataclass(slots=True)
class Acceptance:
    """Totals per (model, pool, workload) since the start: pools of two models may share a name."""

    totals: dict[tuple[str, str, str], AcceptanceTotals] = field(default_factory=dict)

    def add(self, where: tuple[str, str, str], totals: AcceptanceTotals) -> None:
        self.totals[where] = self.totals.get(where, AcceptanceTotals()).plus(totals)


class Telemetry:
    def __init__(self, fleet: Fleet) -> None:
        self._registry = registry = CollectorRegistry()
        self._acceptance = Acceptance()
        self._new_decisions: list[Decision] = []
        self._new_records: list[RequestRecord] = []
        cached = functools.cache  # finding a metric's child by its labels costs more than counting
        self._requests = cached(Counter(
            "paceline_requests", "Requests by outcome; 499 is a client that left",
            ["model", "pool", "workload", "code"], registry=registry,
        ).labels)  # fmt: skip
        self._decisions = cached(Counter(
            "paceline_decisions", "Routing decisions", ["model", "pool", "workload", "reason"],
            registry=registry,
        ).labels)  # fmt: skip
        self._ttft = Histogram(
            "paceline_ttft_seconds", "Arrival of a request to the first event of its stream",
            ["model", "pool", "workload"], buckets=_LATENCY_BUCKETS, registry=registry,
        )  # fmt: skip
        self._tpot = Histogram(
            "paceline_time_per_output_token_seconds",
            "(end - first event) / (output tokens - 1), streams with at least two tokens",
            ["model", "pool", "workload"], buckets=_TOKEN_BUCKETS, registry=registry,
        )  # fmt: skip
        self._added = Histogram(
            "paceline_added_latency_seconds",
            "From a request's last byte here to its first byte upstream",
            buckets=_ADDED_BUCKETS, registry=registry,
        )  # fmt: skip
        self._drafted = cached(Counter(
            "paceline_draft_tokens", "Draft tokens verified", ["model", "pool", "workload"],
            registry=registry,
        ).labels)  # fmt: skip
        self._accepted = cached(Counter(
            "paceline_accepted_tokens", "Draft tokens accepted", ["model", "pool", "workload"],
            registry=registry,
        ).labels)  # fmt: skip
        self._wasted = cached(Counter(
            "paceline_wasted_verify_tokens", "Draft tokens verified and refused",
            ["model", "pool", "workload"], registry=registry,
        ).labels)  # fmt: skip
        self._copy_ratio = Histogram(
            "paceline_predicted_copy_ratio", "Expected copy ratio of requests", ["workload"],
            buckets=_RATIO_BUCKETS, registry=registry,
        )  # fmt: skip
        self._prediction_error = Histogram(
            "paceline_prediction_error",
            "Seconds from first token to last over those expected, where costs decided",
            ["model", "pool"], buckets=_ERROR_BUCKETS, registry=registry,
        )  # fmt: skip
        self._looping = cached(Counter(
            "paceline_looping_outputs", "Outputs that repeat themselves, not learned from",
            ["model", "pool"], registry=registry,
        ).labels)  # fmt: skip
        self.loop_lag = Gauge(
            "paceline_event_loop_lag_seconds", "How late the event loop ran its last timer",
            registry=registry,
        )  # fmt: skip
        registry.register(_FleetCollector(fleet, self._acceptance))

    def decided(self, decision: Decision) -> None:
        self._new_decisions.append(decision)
        if len(self._new_decisions) >= BATCH:
            self._catch_up()

    def ended(self, record: RequestRecord) -> None:
        """Counts a request, whatever happened to it."""
        self._new_records.append(record)
        if len(self._new_records) >= BATCH:
            self._catch_up()

    def register(self, collector: Collector) -> None:
        """Has its metrics shown too."""
        self._registry.register(collector)

    def learned(self, decision: Decision, outcome: Outcome) -> None:
        """Something was learned from a request's end."""
        where = (decision.model, decision.pool)
        if outcome.loops:
            self._looping(*where).inc()
        choice, tokens = decision.choice, outcome.output_tokens
        if choice is not None and outcome.decode_s is not None and tokens is not None:
            expected_s = choice.chosen.decode_s * tokens / choice.chosen.output_tokens
            self._prediction_error.observe(outcome.decode_s / expected_s, where)

    @property
    def acceptance(self) -> Acceptance:
        """As of now."""
        self._catch_up()
        return self._acceptance

    def exposition(self) -> bytes:
        """Every metric, in the Prometheus text format."""
        self._catch_up()
        return generate_latest(self._registry)

    def _catch_up(self) -> None:
        decisions, self._new_decisions = self._new_decisions, []
        records, self._new_records = self._new_records, []
        for labels, count in Tally(map(_labels, decisions)).items():
            self._decisions(*labels).inc(count)
        for decision in decisions:
            copy_ratio = decision.classification.copy_ratio.expected
            self._copy_ratio.observe(copy_ratio, (decision.classification.workload,))
        for outcome, count in Tally(map(_outcome, records)).items():
            self._requests(*outcome).inc(count)
        reports: defaultdict[tuple[str, str, str], list[SpeculationReport]] = defaultdict(list)
        for record in records:
            if record.decision is not None:
                where = _where(record.decision)
                self._observe_latency(record, where)
                if record.said.report is not None:
                    reports[where].append(record.said.report)
        for where, told in reports.items():
            self._add_up(where, AcceptanceTotals.of(told))

    def _observe_latency(self, record: RequestRecord, where: tuple[str, str, str]) -> None:
        if record.body_read_s is not None and record.sent_s is not None:
            self._added.observe(record.sent_s - record.body_read_s)
        if record.first_event_s is None:
            return
        self._ttft.observe(record.first_event_s - record.arrived_s, where)
        tokens = record.said.num_output_tokens
        if tokens is not None and tokens > 1 and record.ended_s is not None:
            decode_s = record.ended_s - record.first_event_s
            self._tpot.observe(decode_s / (tokens - 1), where)

    def _add_up(self, where: tuple[str, str, str], totals: AcceptanceTotals) -> None:
        accepted, drafted = totals.num_accepted_draft_tokens, totals.num_draft_tokens
        self._acceptance.add(where, totals)
        self._drafted(*where).inc(drafted)
        self._accepted(*where).inc(accepted)
        self._wasted(*where).inc(drafted - accepted)


def _where(decision: Decision) -> tuple[str, str, str]:
    """The labels model, pool and workload."""
    return decision.model, decision.pool, decision.classification.workload


def _labels(decision: Decision) -> tuple[str, str, str, str]:
    return *_where(decision), decision.reason


def _outcome(record: RequestRecord) -> tuple[str, str, str, str]:
    where = ("", "", "") if record.decision is None else _where(record.decision)
    return *where, str(record.code)


class _FleetCollector(Collector):
    def __init__(self, fleet: Fleet, acceptance: Acceptance) -> None:
        self._fleet = fleet
        self._acceptance = acceptance

    def collect(self) -> Iterator[Metric]:
        in_flight = GaugeMetricFamily(
            "paceline_in_flight", "Requests at a worker now", labels=["model", "pool", "worker"]
        )
        up = GaugeMetricFamily(
            "paceline_worker_up",
            "1 if a worker may be sent requests",
            labels=["model", "pool", "worker"],
        )
        for model in self._fleet.models:
            for pool in model.pools:
                for worker in pool.workers:
                    in_flight.add_metric([model.name, pool.name, worker.url], worker.in_flight)
                    up.add_metric([model.name, pool.name, worker.url], float(worker.up))
        length = GaugeMetricFamily(
            "paceline_mean_acceptance_length",
            "1 + accepted draft tokens / passes that drafted, over all requests since the start",
            labels=["model", "pool", "workload"],
        )
        for key, totals in self._acceptance.totals.items():
            if totals.mean_acceptance_length is not None:
                length.add_metric(list(key), totals.mean_acceptance_length)
        yield from (in_flight, up, length)
