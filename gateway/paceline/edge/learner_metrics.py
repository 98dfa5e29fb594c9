"""What is believed and learned, as metrics; read when they are, so that they cannot drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from paceline.core.beliefs import Beliefs
from paceline.core.types import Workload
from paceline.edge.replays import Replays


class BeliefsCollector(Collector):
    """Of each model, by its name."""

    def __init__(self, of: Mapping[str, Beliefs]) -> None:
        self._of = of

    def collect(self) -> Iterator[Metric]:
        knees = GaugeMetricFamily(
            "paceline_knee_running_sequences",
            "Running sequences from which a pool is slower than one that does not speculate; +Inf"
            " if that is far off",
            labels=["model", "pool", "workload"],
        )
        for model, beliefs in self._of.items():
            for pool, speculation in beliefs.pools.items():
                for workload in Workload if speculation is not None else ():
                    knee = beliefs.knee(pool, workload)
                    found = float("inf") if knee is None else float(knee)
                    knees.add_metric([model, pool, workload.value], found)
        yield knees


class ReplaysCollector(Collector):
    """Of the replay teacher."""

    def __init__(self, replays: Replays) -> None:
        self._replays = replays

    def collect(self) -> Iterator[Metric]:
        counts = self._replays.teacher.counts
        yield CounterMetricFamily(
            "paceline_replayed_answers",
            "Answers studied for what a lookup would have drafted",
            value=counts.taught,
        )
        dropped = CounterMetricFamily(
            "paceline_replay_dropped", "Answers that were not studied", labels=["reason"]
        )
        for reason, count in counts.dropped.items():
            dropped.add_metric([reason], count)
        residual = GaugeMetricFamily(
            "paceline_replay_residual",
            "Root mean square of tokens a pass as replayed and corrected, less as counted by the"
            " worker; NaN before the first",
            labels=["model", "pool"],
        )
        for key, correction in self._replays.corrections.items():
            known = correction.residual
            residual.add_metric(list(key), float("nan") if known is None else known)
        yield from (dropped, residual)
