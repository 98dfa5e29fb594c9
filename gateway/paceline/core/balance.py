"""One worker of a pool: the fewest requests in flight for the share of load that it may carry.

Among equals the one picked longest ago; a worker that is due for a trial comes first, for one
request. Scraped load is left out: it is a second old, and routing by it sends a whole burst to the
worker that looked idle (vllm-project/router #177). What the gateway itself has in flight is always
fresh.
"""

from __future__ import annotations

from paceline.core.types import PoolSnapshot, WorkerSnapshot


def pick_worker(pool: PoolSnapshot) -> WorkerSnapshot:
    """The least busy worker that is up; with none up, the least busy of all.

    Raises ValueError for a pool without workers, which the configuration does not allow.
    """
    if len(pool.workers) == 1:
        return pool.workers[0]
    candidates = [worker for worker in pool.workers if worker.up] or list(pool.workers)
    if not candidates:
        raise ValueError(f"pool {pool.name} has no workers")
    return min(candidates, key=_order)


def _order(worker: WorkerSnapshot) -> tuple[bool, float, int]:
    return (not worker.on_trial, (worker.in_flight + 1) / worker.share, worker.last_picked)
