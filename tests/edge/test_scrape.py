"""What a worker is asked beside its requests."""

from __future__ import annotations

from typing import Any

from harness import pool, settings
from paceline.edge.scrape import probe
from paceline.edge.workers import Fleet

URL = "http://127.0.0.1:1"


class _Answer:
    status = 200

    def __init__(self, body: bytes = b"") -> None:
        self._body = body

    async def read(self, timeout_s: float) -> bytes:
        body, self._body = self._body, b""
        return body

    def close(self) -> None:
        pass


class _Upstream:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send(self, method: str, path: str, *, timeout_s: float) -> _Answer:
        self.asked.append(path)
        return _Answer()


async def test_one_that_has_served_since_the_last_look_need_not_be_asked_for_its_health() -> None:
    worker: Any = Fleet(settings(pool("p", URL)), lambda: 1.0).workers[URL]
    upstream = worker.upstream = _Upstream()

    await probe(worker, of_load=False)
    worker.succeeded()
    await probe(worker, of_load=True)
    await probe(worker, of_load=False)

    assert upstream.asked == ["/health", "/metrics", "/v1/models", "/health"]


async def test_a_request_of_ours_that_ends_while_the_load_is_told_is_nobody_elses() -> None:
    worker: Any = Fleet(settings(pool("p", URL)), lambda: 1.0).workers[URL]
    request = worker.request(3)

    class Upstream(_Upstream):
        async def send(self, method: str, path: str, *, timeout_s: float) -> _Answer:
            if path != "/metrics":
                return _Answer()
            if worker.in_flight:
                request.__exit__(None, None, None)
            return _Answer(b"vllm:num_requests_running{} 3\nvllm:num_requests_waiting{} 0\n")

    worker.upstream = Upstream()
    request.__enter__()
    await probe(worker)
    assert (worker.in_flight, worker.snapshot(1.0).elsewhere) == (0, 2)
    await probe(worker)
    assert worker.snapshot(1.0).elsewhere == 3
