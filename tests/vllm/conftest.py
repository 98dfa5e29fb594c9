"""Two real vLLM workers on the CPU, an n-gram and a plain one, started once for all tests here."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from paceline.testing.vllm_cpu import Worker, running, two_pools


@dataclass(frozen=True)
class Pair:
    ngram: Worker
    plain: Worker


@pytest.fixture(scope="session")
def workers() -> Iterator[Pair]:
    with running(*two_pools(free_port(), free_port())) as (ngram, plain):
        yield Pair(ngram, plain)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test that ends a worker comes last, whatever the order of the others."""
    items.sort(key=lambda item: item.get_closest_marker("ends_a_worker") is not None)
