"""What the tests of the edge share: settings in a line, and a gateway on a free port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx

from paceline.core.rules import Action, Condition, Rule
from paceline.core.types import Speculation, Workload
from paceline.edge.server import Running, serving
from paceline.settings import (
    Admin,
    Auth,
    Learning,
    Limits,
    Listen,
    Log,
    Mode,
    ModelSettings,
    PoolSettings,
    Settings,
    Timeouts,
    WorkerSettings,
)

NGRAM = Speculation(method="ngram", num_speculative_tokens=5)


def pool(name: str, *urls: str, speculation: Speculation | None = None, key: str | None = None):
    workers = tuple(WorkerSettings(url=url, key=key) for url in urls)
    return PoolSettings(name=name, speculation=speculation, workers=workers)


def prefer(workload: Workload, pool: str) -> Rule:
    condition = Condition(field="workload", any_of=(workload.value,))
    return Rule(name=workload.value, when=(condition,), then=Action(prefer=pool))


def settings(
    *pools: PoolSettings,
    rules: Sequence[Rule] = (),
    auth: Auth | None = None,
    limits: Limits | None = None,
    timeouts: Timeouts | None = None,
    listen: Listen | None = None,
    admin_key: str | None = None,
    upstream_name: str = "up",
    mode: Mode = Mode.STATIC,
    learning: Learning | None = None,
    log: Log | None = None,
) -> Settings:
    """One model `m` (alias `alias`) over these pools, the last one the default."""
    model = ModelSettings(
        name="m",
        aliases=("alias",),
        upstream_name=upstream_name,
        default_pool=pools[-1].name,
        pools=pools,
    )
    return Settings(
        models=(model,),
        listen=listen or Listen(port=0),
        admin=Admin(port=0, key=admin_key),
        auth=auth or Auth(),
        rules=tuple(rules),
        mode=mode,
        learning=learning,
        log=log or Log(),
        limits=limits or Limits(),
        timeouts=timeouts or Timeouts(shutdown_s=1),
    )


class Served:
    """A running gateway, and a client of it."""

    def __init__(self, running: Running, http: httpx.AsyncClient) -> None:
        self.running = running
        self.http = http
        self.fleet = running.gateway.fleet
        self.url = running.addresses.data_plane
        self.admin_url = running.addresses.admin

    async def chat(self, content: Any = "hi", *, headers: Any = None, **body: Any):
        body = {"model": "m", "messages": [{"role": "user", "content": content}], **body}
        return await self.http.post("/v1/chat/completions", json=body, headers=headers)

    @contextlib.asynccontextmanager
    async def streaming(self, content: Any = "hi", *, headers: Any = None, **body: Any):
        messages = [{"role": "user", "content": content}]
        body = {"model": "m", "messages": messages, "stream": True, **body}
        async with self.http.stream(
            "POST", "/v1/chat/completions", json=body, headers=headers
        ) as response:
            yield response

    @property
    def in_flight(self) -> int:
        return sum(worker.in_flight for worker in self.fleet.workers.values())

    @property
    def num_buffered_bytes(self) -> int:
        """What clients' sockets have not taken yet."""
        return sum(connection.num_unsent_bytes for connection in self.running.connections)

    async def metrics(self) -> dict[str, float]:
        """Samples of the admin plane by name and labels, as Prometheus writes them."""
        text = (await self.http.get(f"{self.admin_url}/metrics")).text
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}


@contextlib.asynccontextmanager
async def gateway(*pools: PoolSettings, **more: Any) -> AsyncIterator[Served]:
    async with serving(settings(*pools, **more)) as running:
        base_url = running.addresses.data_plane
        # Nothing here is TLS, and to load the authorities takes longer than most tests.
        async with httpx.AsyncClient(base_url=base_url, timeout=20, verify=False) as http:
            yield Served(running, http)


async def eventually(holds: Callable[[], bool], *, within_s: float = 5.0) -> None:
    """Waits until something holds; fails the test if it never does."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 (what holds is any predicate, so there is no event)
            await asyncio.sleep(0.005)
