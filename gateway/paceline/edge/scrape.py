"""Asking workers how they are: health, load, and the card of the model they serve.

Beside the requests, never on their path: one loop per worker, so that a dead one delays no other.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Mapping
from typing import Any

import orjson

from paceline.core.exposition import num_speculative_tokens, worker_load
from paceline.edge.upstream import Upstream
from paceline.edge.workers import Worker
from paceline.errors import ConfigurationError, WorkerError, WorkerProtocolError, WorkerTimeout
from paceline.settings import DiscoveredWorker

log = logging.getLogger(__name__)

PERIOD_S = 1.0
LOAD_TURNS = 2
"""Every how many probes a worker is asked for its load: the answer is long, and good for 5 s."""
ANSWER_S = 2.0
"""A probe slower than this counts as failed."""
MAX_ANSWER_BYTES = 8 * 2**20


class Refused(WorkerProtocolError):
    """It wants a key, or another one."""


async def get(upstream: Upstream, path: str) -> bytes:
    """The body of a 200, all of it within ANSWER_S. Raises WorkerError for anything else."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await _get(upstream, path)
    except TimeoutError:
        raise WorkerTimeout(f"{path} did not arrive within {ANSWER_S:g} s") from None


async def _get(upstream: Upstream, path: str) -> bytes:
    exchange = await upstream.send("GET", path, timeout_s=ANSWER_S)
    try:
        pieces: list[bytes] = []
        while data := await exchange.read(ANSWER_S):
            pieces.append(data)
            if sum(map(len, pieces)) > MAX_ANSWER_BYTES:
                raise WorkerProtocolError(f"{path} is longer than {MAX_ANSWER_BYTES} bytes")
        if exchange.status in (401, 403):
            raise Refused(f"{path} answered {exchange.status}")
        if exchange.status != 200:
            raise WorkerProtocolError(f"{path} answered {exchange.status}")
        return b"".join(pieces)
    finally:
        exchange.close()


async def watch(worker: Worker, jitter: random.Random) -> None:
    """Probes one worker for ever. What goes wrong is its state, and never ends the loop."""
    for turn in itertools.count():
        try:
            await probe(worker, of_load=turn % LOAD_TURNS == 0)
        except Exception:  # a fault of ours must not end the watch over a worker
            log.exception("probing %s failed", worker.url)
        worker.upstream.close_idle()
        await asyncio.sleep(PERIOD_S * jitter.uniform(0.9, 1.1))


async def probe(worker: Worker, *, of_load: bool = True) -> None:
    """One look at a worker: is it up, and if asked how loaded, and (once) what does it serve.

    One that has answered a request since the last look is up, and need not be asked.
    """
    try:
        if not worker.has_served():
            await get(worker.upstream, "/health")
    except WorkerError as error:
        worker.probe_failed(error.message)
        return
    worker.probe_succeeded()
    if not of_load:
        return
    asked_with = worker.in_flight
    try:
        text = await get(worker.upstream, "/metrics")
        worker.report(worker_load(text.decode("utf-8", "replace")), asked_with=asked_with)
        if worker.card is None:
            worker.serves(_cards(await get(worker.upstream, "/v1/models")))
    except Refused as error:
        worker.complains(f"{error.message}: is its key right?")
    except WorkerError as error:  # its load grows stale, and so unknown
        log.debug("worker %s says nothing of its load: %s", worker.url, error)


async def discover(url: str) -> DiscoveredWorker:
    """What a worker serves and whether it speculates. Raises ConfigurationError if it won't say.

    Workers with keys are not asked with one: keys belong into a configuration file.
    """
    upstream = Upstream(url)
    try:
        cards = _cards(await get(upstream, "/v1/models"))
        metrics = await get(upstream, "/metrics")
    except Refused as error:
        raise ConfigurationError(
            f"--worker {url}: {error.message}; a worker with a key needs a configuration file"
        ) from error
    except WorkerProtocolError as error:
        raise ConfigurationError(f"--worker {url}: {error.message}; is it a vLLM?") from error
    except WorkerError as error:
        raise ConfigurationError(f"--worker {url}: {error.message}") from error
    finally:
        upstream.close()
    base = [card for card in cards if card.get("parent") is None]
    if not base:
        raise ConfigurationError(f"--worker {url}: its /v1/models names no model")
    k = num_speculative_tokens(metrics.decode("utf-8", "replace"))
    return DiscoveredWorker(url=url, model=base[0]["id"], num_speculative_tokens=k)


def _cards(body: bytes) -> list[Mapping[str, Any]]:
    """The entries of a list of models that have an id; none of what is no such list."""
    try:
        data = orjson.loads(body)["data"]
        return [card for card in data if isinstance(card.get("id"), str) and card["id"]]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return []
