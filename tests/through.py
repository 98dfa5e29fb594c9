"""The vendors' clients on a gateway with keys, and on the workers behind it to compare with.

The gateway has one model, `m` or `alias`, over a plain pool and one that drafts from the prompt.
The plain one is the default; `x-paceline-workload: edit` leads to the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from harness import Served, gateway, pool, prefer
from official import MODEL, NGRAM, Clients, connected
from paceline.core.types import Workload
from paceline.settings import ApiKey, Auth
from paceline.testing.sim_worker import SimWorkerOptions, running_sim_worker

KEY = "the-callers-key"
AUTH = Auth(keys=(ApiKey(name="app", sha256=ApiKey.digest(KEY), debug=True),))
SAID: Any = [{"role": "user", "content": "Tell me about rivers."}]
EDIT = {"x-paceline-workload": "edit"}
"""The header that leads to the pool that speculates."""
_ITS_OWN = frozenset(
    {"id", "created", "created_at", "completed_at", "item_id", "call_id", "_request_id"}
)


class Through(Clients):
    """Clients of the gateway, and of its workers by the names of their pools."""

    def __init__(self, clients: Clients, served: Served, workers: Mapping[str, Clients]) -> None:
        super().__init__(clients.http, clients.openai, clients.anthropic)
        self.served, self.workers = served, workers

    @property
    def plain(self) -> Clients:
        return self.workers["plain"]

    async def set_worker_faults(self, *faults: dict[str, Any]) -> None:
        for worker in self.workers.values():
            await worker.set_faults(*faults)


@contextlib.asynccontextmanager
async def through(**more: Any) -> AsyncIterator[Through]:
    async with contextlib.AsyncExitStack() as stack:
        urls, workers = {}, {}
        for name, speculation in (("ngram", NGRAM), ("plain", None)):
            options = SimWorkerOptions(speculation=speculation, step_s=0.001, max_model_len=2048)
            urls[name] = await stack.enter_async_context(running_sim_worker(options))
            workers[name] = await stack.enter_async_context(connected(urls[name]))
        pools = (pool("ngram", urls["ngram"], speculation=NGRAM), pool("plain", urls["plain"]))
        served = await stack.enter_async_context(
            gateway(
                *pools,
                rules=[prefer(Workload.EDIT, "ngram")],
                auth=AUTH,
                upstream_name=MODEL,
                **more,
            )
        )
        clients = await stack.enter_async_context(connected(served.url, key=KEY))
        yield Through(clients, served, workers)


def alike(answer: Any) -> Any:
    """An answer without what differs between any two: ids and times."""
    if isinstance(answer, BaseModel):
        answer = answer.model_dump()
    if isinstance(answer, Mapping):
        return {key: alike(value) for key, value in answer.items() if key not in _ITS_OWN}
    if isinstance(answer, list | tuple):
        return [alike(item) for item in answer]
    return answer


async def idle(worker: Clients, *, within_s: float = 1.0) -> None:
    """Returns once a worker's engine has nothing to do. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while await worker.metric("num_requests_running") > 0:  # noqa: ASYNC110 (a gauge)
            await asyncio.sleep(0.01)


def program(name: str) -> str:
    """The path of a program that a test needs; without it see `absent`."""
    path = shutil.which(name)
    return path if path is not None else absent(f"there is no {name} here")


def absent(reason: str) -> Any:
    """Skips a test whose means are missing; fails it under CI, where nothing may go unseen."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)
