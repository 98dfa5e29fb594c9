"""How many files a process may hold open: thousands of streams need twice as many."""

from __future__ import annotations

import resource

SPARE_FILES = 400
"""For everything that is not a stream: listeners, logs, connections for probes."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, which children inherit; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def stream_counts(wanted: list[int], max_files: int) -> list[int]:
    """The wanted numbers of idle streams that a proxy can hold: two sockets each."""
    most = (max_files - SPARE_FILES) // 2
    return [count for count in wanted if count <= most]
