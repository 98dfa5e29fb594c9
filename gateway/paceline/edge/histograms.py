"""Histograms for what every request is counted in.

prometheus-client's own takes a lock and walks through its buckets for each value, for programs of
several threads; here one thread counts and shows. Its text format, and its registry, are used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Labels = tuple[str, ...]


class Histogram(Collector):
    """A family of histograms, one for each set of label values that was seen."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        """`buckets` are upper ends, ascending, without the last, which has none."""
        self._name = name
        self._documentation = documentation
        self._label_names = tuple(labels)
        self._ends = tuple(map(float, buckets))
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._begin(())
        registry.register(self)

    def observe(self, value: float, labels: Labels = ()) -> None:
        counts = self._counts.get(labels) or self._begin(labels)
        counts[bisect_left(self._ends, value)] += 1
        self._sums[labels] += value

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._label_names)
        names = [*map(str, self._ends), "+Inf"]
        for labels, counts in self._counts.items():
            upto = [*zip(names, map(float, accumulate(counts)), strict=True)]
            family.add_metric(labels, upto, self._sums[labels])
        yield family

    def _begin(self, labels: Labels) -> list[int]:
        self._counts[labels] = [0] * (len(self._ends) + 1)
        self._sums[labels] = 0.0
        return self._counts[labels]
