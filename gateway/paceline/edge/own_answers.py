"""What the data plane answers without asking a worker for a generation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from paceline import __version__
from paceline.core.exposition import SPECULATION, relabelled
from paceline.edge.request import Request
from paceline.edge.scrape import get
from paceline.edge.telemetry import Telemetry
from paceline.edge.wire import JSON
from paceline.edge.workers import Fleet, Model, Worker
from paceline.errors import ModelNotFound, WorkerError, WorkerUnavailable


class OwnAnswers:
    def __init__(self, fleet: Fleet, telemetry: Telemetry, created: int) -> None:
        """`created` is the Unix time that the list of models shows."""
        self._fleet = fleet
        self._telemetry = telemetry
        self._created = created

    async def health(self, request: Request) -> None:
        """The process lives."""
        _json(request, {"status": "ok"})

    async def ready(self, request: Request) -> None:
        """Every model has a worker that is known to be up. Raises WorkerUnavailable."""
        down = [model.name for model in self._fleet.models if not model.is_ready]
        if down:
            raise WorkerUnavailable(f"no worker is up for {', '.join(down)}", retry_after_s=1)
        _json(request, {"status": "ready"})

    async def version(self, request: Request) -> None:
        _json(request, {"version": __version__})

    async def models(self, request: Request) -> None:
        data = [self._card(name, model) for name, model in self._fleet.names.items()]
        _json(request, {"object": "list", "data": data})

    async def one_model(self, request: Request) -> None:
        """Raises ModelNotFound."""
        name = request.client.path.removeprefix("/v1/models/")
        _json(request, self._card(name, model_named(self._fleet, name)))

    async def metrics(self, request: Request) -> None:
        """Ours, and the workers' own counters of speculative decoding, each with its worker's
        address: asked for now, so that a difference between two readings is exact."""
        texts = await asyncio.gather(*map(_speculation, self._fleet.workers.values()))
        ours = self._telemetry.exposition()
        theirs = relabelled(
            zip(self._fleet.workers, texts, strict=True), label="worker", prefix=SPECULATION
        )
        headers = [(b"content-type", CONTENT_TYPE_LATEST.encode()), *request.our_headers()]
        request.client.answer(200, headers, ours + theirs.encode())

    def _card(self, name: str, model: Model) -> Mapping[str, Any]:
        """OpenAI's card under our name, with what the worker's own adds to it."""
        ours = {"id": name, "object": "model", "created": self._created, "owned_by": "paceline"}
        theirs = {key: value for key, value in model.card().items() if key not in ours}
        return {**ours, **theirs, **({"root": model.name} if theirs or name != model.name else {})}


def model_named(fleet: Fleet, name: str) -> Model:
    """The model that clients call so. Raises ModelNotFound."""
    model = fleet.names.get(name)
    if model is None:
        known = ", ".join(fleet.names)
        raise ModelNotFound(
            f"there is no model {name[:128]!r} here; there is: {known}", param="model"
        )
    return model


async def _speculation(worker: Worker) -> str:
    """A worker's metrics; nothing from one that does not answer."""
    try:
        return (await get(worker.upstream, "/metrics")).decode("utf-8", "replace")
    except WorkerError:
        return ""


def _json(request: Request, value: object) -> None:
    request.client.answer(200, [JSON, *request.our_headers()], orjson.dumps(value))
