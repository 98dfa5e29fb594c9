"""One worker of a pool: the fewest requests in flight, counted here and now.

Scraped load is left out: it is a second old, and routing by it sends a whole burst to the worker
that looked idle (vllm-project/router #177). What the gateway itself has in flight is always fresh.
"""

from __future__ import annotations

from paceline.core.types import PoolSnapshot, WorkerSnapshot


def pick_worker(pool: PoolSnapshot, *, tie: int = 0) -> WorkerSnapshot:
    """The least busy worker that is up; with none up, the least busy of all.

    `tie` turns among equals, so that a counter spreads idle traffic evenly. Raises ValueError for
    a pool without workers, which the configuration does not allow.
    """
    candidates = [worker for worker in pool.workers if worker.up] or list(pool.workers)
    if not candidates:
        raise ValueError(f"pool {pool.name} has no workers")
    fewest = min(worker.in_flight for worker in candidates)
    least_busy = [worker for worker in candidates if worker.in_flight == fewest]
    return least_busy[tie % len(least_busy)]
