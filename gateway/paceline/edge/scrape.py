"""Asking workers how they are: health, load, and the card of the model they serve.

Beside the requests, never on their path: one loop per worker, so that a dead one delays no other.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from paceline.core.exposition import num_speculative_tokens, worker_load
from paceline.edge.upstream import Upstream
from paceline.edge.workers import Worker
from paceline.errors import ConfigurationError, WorkerError, WorkerProtocolError, WorkerTimeout
from paceline.settings import DiscoveredWorker

log = logging.getLogger(__name__)

PERIOD_S = 1.0
ANSWER_S = 2.0
"""A probe slower than this counts as failed."""
MAX_ANSWER_BYTES = 8 * 2**20


async def get(upstream: Upstream, path: str, *, timeout_s: float = ANSWER_S) -> bytes:
    """The body of a 200. Raises WorkerError for anything else."""
    exchange = await upstream.send("GET", path, timeout_s=timeout_s)
    try:
        pieces: list[bytes] = []
        while data := await exchange.read(timeout_s):
            pieces.append(data)
            if sum(map(len, pieces)) > MAX_ANSWER_BYTES:
                raise WorkerProtocolError(f"{path} is longer than {MAX_ANSWER_BYTES} bytes")
        if exchange.status != 200:
            raise WorkerProtocolError(f"{path} answered {exchange.status}")
        return b"".join(pieces)
    except TimeoutError:
        raise WorkerTimeout(f"{path} did not arrive within {timeout_s:g} s") from None
    finally:
        exchange.close()


async def watch(worker: Worker, now_s: Callable[[], float], jitter: random.Random) -> None:
    """Probes one worker for ever. What goes wrong is its state, and never ends the loop."""
    while True:
        try:
            await probe(worker, now_s)
        except Exception:  # a fault of ours must not end the watch over a worker
            log.exception("probing %s failed", worker.url)
        await asyncio.sleep(PERIOD_S * jitter.uniform(0.9, 1.1))


async def probe(worker: Worker, now_s: Callable[[], float]) -> None:
    """One look at a worker: is it up, how loaded, and (once) what does it serve."""
    was_up = worker.up
    try:
        async with asyncio.timeout(ANSWER_S * 2):
            await get(worker.upstream, "/health")
    except (WorkerError, TimeoutError) as error:
        worker.failed_probe()
        if was_up and not worker.up:
            log.warning("worker %s is down: %s", worker.url, error)
        return
    worker.answered()
    if not was_up:
        log.warning("worker %s is up again", worker.url)
    try:
        async with asyncio.timeout(ANSWER_S * 2):
            text = await get(worker.upstream, "/metrics")
            worker.report(worker_load(text.decode("utf-8", "replace")), now_s())
            if worker.card is None:
                worker.card = _card(await get(worker.upstream, "/v1/models"))
    except (WorkerError, TimeoutError) as error:  # its load grows stale, and so unknown
        log.debug("worker %s says nothing of its load: %s", worker.url, error)


async def discover(url: str) -> DiscoveredWorker:
    """What a worker serves and whether it speculates. Raises ConfigurationError if it won't say.

    A worker that wants a key answers 401 here; keys belong into a configuration file.
    """
    upstream = Upstream(url)
    try:
        card = _card(await get(upstream, "/v1/models"))
        metrics = await get(upstream, "/metrics")
    except WorkerError as error:
        raise ConfigurationError(f"--worker {url}: {error.message}") from error
    finally:
        upstream.close()
    if "id" not in card:
        raise ConfigurationError(f"--worker {url}: its /v1/models names no model")
    k = num_speculative_tokens(metrics.decode("utf-8", "replace"))
    return DiscoveredWorker(url=url, model=card["id"], num_speculative_tokens=k)


def _card(body: bytes) -> Mapping[str, Any]:
    """The base model's entry in a list of models: the first one that is no adapter of another."""
    try:
        data = orjson.loads(body)["data"]
        return next(card for card in data if card.get("parent") is None and "id" in card)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, StopIteration):
        return {}
