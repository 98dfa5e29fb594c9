"""Our histograms say what prometheus-client's own would say of the same values."""

from __future__ import annotations

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from paceline.edge.histograms import Histogram

BUCKETS = (0.1, 0.5, 1, 2.5)
values = st.floats(0.0, 4.0) | st.sampled_from(BUCKETS)


def lines(registry: CollectorRegistry) -> list[str]:
    """But for when a series began, which nobody reads."""
    return [
        each for each in generate_latest(registry).decode().splitlines() if "created" not in each
    ]


@given(st.lists(st.tuples(st.sampled_from(["code", "chat", "edit"]), values)))
def test_with_labels(observed: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    mine = Histogram("ratio", "Of it", ["workload"], buckets=BUCKETS, registry=ours)
    other = prometheus_client.Histogram(
        "ratio", "Of it", ["workload"], buckets=BUCKETS, registry=theirs
    )
    for workload, value in observed:
        mine.observe(value, (workload,))
        other.labels(workload).observe(value)
    assert lines(ours) == lines(theirs)


@given(st.lists(values))
def test_without(observed: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    mine = Histogram("ratio", "Of it", buckets=BUCKETS, registry=ours)
    other = prometheus_client.Histogram("ratio", "Of it", buckets=BUCKETS, registry=theirs)
    for value in observed:
        mine.observe(value)
        other.observe(value)
    assert lines(ours) == lines(theirs)
