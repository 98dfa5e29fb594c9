"""The data plane: parse → decide → relay.

One request's life is `_serve` and then `_generate`, read from top to bottom; where it goes is
decided by `core.decide`. Nothing stands between it and the connections on either side.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from paceline import __version__
from paceline.core.decide import decide
from paceline.core.features import measure
from paceline.core.rewrite import rewrite, wants_usage_added
from paceline.core.types import Caller, Decision, Endpoint, RequestFeatures
from paceline.core.views import view_of
from paceline.edge.auth import Authenticator
from paceline.edge.client import Client, ClientGone
from paceline.edge.relay import Answer, Stream, Whole, check_status
from paceline.edge.request import Request
from paceline.edge.telemetry import CLIENT_GONE, Telemetry
from paceline.edge.wire import (
    JSON,
    error_body,
    header,
    passed_down,
    passed_up,
    retry_after,
    upstream_request_id,
)
from paceline.edge.workers import BACK_PRESSURE, Fleet, Model, Worker
from paceline.errors import (
    MethodNotAllowed,
    ModelNotFound,
    NotFound,
    PacelineError,
    RequestError,
    ShuttingDown,
    WorkerBusy,
    WorkerDied,
    WorkerError,
    WorkerUnavailable,
)
from paceline.settings import Settings

log = logging.getLogger(__name__)

GENERATING: Mapping[str, Endpoint] = {
    "/v1/chat/completions": Endpoint.CHAT_COMPLETIONS,
    "/v1/completions": Endpoint.COMPLETIONS,
}
OPEN_PATHS = frozenset(["/health", "/ready", "/version"])
"""What answers without a key, OPTIONS aside."""
RETRYABLE = (WorkerUnavailable, WorkerDied, WorkerBusy)
"""Failures after which, with nothing sent to the client, another worker may be asked. Once."""


class DataPlane:
    """What answers every request of every client."""

    def __init__(
        self,
        settings: Settings,
        fleet: Fleet,
        telemetry: Telemetry,
        now_s: Callable[[], float],
        created: int,
    ) -> None:
        """`created` is the Unix time that the list of models shows."""
        self._settings = settings
        self._fleet = fleet
        self._telemetry = telemetry
        self._now_s = now_s
        self._created = created
        self._authenticator = Authenticator(settings.auth)

    async def __call__(self, client: Client) -> None:
        request = Request.arrived(client, self._now_s())
        record = request.record
        try:
            await self._serve(request)
        except ClientGone:
            record.code = CLIENT_GONE
        except PacelineError as error:
            record.code, record.failure = error.status, error
            self._refuse(request, error)
        except asyncio.CancelledError:
            if client.gone:
                record.code = CLIENT_GONE
            else:  # the server's patience has ended
                self._refuse(request, ShuttingDown("the gateway is shutting down"))
                record.code = ShuttingDown.status
        except Exception as error:  # ours alone, and no reason to leave a client without an answer
            log.exception("request %s failed", request.id)
            record.code = PacelineError.status
            self._refuse(request, PacelineError(f"internal error ({type(error).__name__})"))
        finally:
            record.code = record.code or client.status or 500
            record.ended_s = record.ended_s or self._now_s()
            _log_failure(request)
            if client.path in GENERATING:
                self._telemetry.ended(record)

    def _refuse(self, request: Request, error: PacelineError) -> None:
        """An error as the response; if one is under way already, it stays incomplete, which the
        connection turns into a cut."""
        if request.client.started:
            return
        headers = [JSON, *request.our_headers(), *retry_after(error)]
        request.client.answer(error.status, headers, error_body(error))

    # -- every path ------------------------------------------------------------------------------

    async def _serve(self, request: Request) -> None:
        if request.client.method == "OPTIONS":
            self._options(request)
            return
        if request.client.path not in OPEN_PATHS:
            request.key = self._authenticator.caller(request.headers)
        handler, methods = self._route(request.client.path)
        if request.client.method not in methods:
            raise MethodNotAllowed(f"{request.client.path} takes {' or '.join(methods)}")
        await handler(request)

    def _route(self, path: str) -> tuple[Callable[[Request], Awaitable[None]], tuple[str, ...]]:
        if path in GENERATING:
            return self._generate, ("POST",)
        if path.startswith("/v1/models/"):
            return self._one_model, ("GET", "HEAD")
        simple = {
            "/v1/models": self._models,
            "/health": self._health,
            "/ready": self._ready,
            "/version": self._version,
        }
        if path not in simple:
            meant = f"/v1{path}"
            hint = f"; did you mean {meant}?" if meant in GENERATING or meant in simple else ""
            raise NotFound(f"there is no {path[:128]}{hint}")
        return simple[path], ("GET", "HEAD")

    def _options(self, request: Request) -> None:
        try:
            _, methods = self._route(request.client.path)
        except NotFound:
            methods = ()
        allowed = ", ".join([*methods, "OPTIONS"]).encode()
        request.client.answer(204, [(b"allow", allowed), *request.our_headers()], b"")

    async def _health(self, request: Request) -> None:
        self._json(request, {"status": "ok"})

    async def _ready(self, request: Request) -> None:
        down = [model.name for model in self._fleet.models if not model.is_ready]
        if down:
            raise WorkerUnavailable(f"no worker is up for {', '.join(down)}", retry_after_s=1)
        self._json(request, {"status": "ready"})

    async def _version(self, request: Request) -> None:
        self._json(request, {"version": __version__})

    async def _models(self, request: Request) -> None:
        data = [self._model_card(name, model) for name, model in self._fleet.names.items()]
        self._json(request, {"object": "list", "data": data})

    async def _one_model(self, request: Request) -> None:
        name = request.client.path.removeprefix("/v1/models/")
        self._json(request, self._model_card(name, self._model(name)))

    def _model_card(self, name: str, model: Model) -> dict[str, Any]:
        """OpenAI's card under our name, with what the worker's own adds to it."""
        ours = {"id": name, "object": "model", "created": self._created, "owned_by": "paceline"}
        theirs = {key: value for key, value in model.card().items() if key not in ours}
        return {**ours, **theirs, **({"root": model.name} if theirs or name != model.name else {})}

    def _json(self, request: Request, value: object) -> None:
        headers = [JSON, *request.our_headers()]
        request.client.answer(200, headers, orjson.dumps(value))

    # -- generation ------------------------------------------------------------------------------

    async def _generate(self, request: Request) -> None:
        raw, body = await request.body(
            limit_bytes=self._settings.limits.body_bytes,
            timeout_s=self._settings.timeouts.between_bytes_s,
        )
        request.record.body_read_s = self._now_s()
        view = view_of(GENERATING[request.client.path], body)
        request.num_choices = view.num_choices
        model = self._model(view.model)
        caller = request.caller(view, body, model.name)
        await self._route_and_relay(request, raw, body, measure(view), model, caller)

    async def _route_and_relay(
        self,
        request: Request,
        raw: bytes,
        body: Mapping[str, Any],
        features: RequestFeatures,
        model: Model,
        caller: Caller,
    ) -> None:
        """Asks the worker decided on, and one more if the first failed before it answered, or has
        too much to do."""
        add_usage = wants_usage_added(body)
        upstream_body = rewrite(raw, body, model=model.settings.upstream_name, add_usage=add_usage)

        def decided(*tried: str) -> Decision:
            snapshot = model.snapshot(self._now_s(), without=tried)
            return decide(features, caller, snapshot, self._settings.rules)

        async def ask(decision: Decision, others: Callable[[], bool]) -> None:
            request.record.decision = decision
            self._telemetry.decided(decision)
            worker = self._fleet.workers[decision.worker]
            with worker.request():
                await self._ask(request, worker, upstream_body, add_usage, others)

        first = decided()
        try:
            await ask(first, lambda: decided(first.worker).worker != first.worker)
        except RETRYABLE:
            if request.client.started:
                raise
            second = decided(first.worker)
            if second.worker == first.worker:  # there is nobody else
                raise
            await ask(second, lambda: False)

    async def _ask(
        self,
        request: Request,
        worker: Worker,
        body: bytes,
        remove_usage: bool,
        others: Callable[[], bool],
    ) -> None:
        """One worker's answer, passed on. Raises WorkerBusy instead if it has too much to do and
        there are `others`; WorkerError, if it fails before anything of it went out."""
        request.record.sent_s = self._now_s()
        exchange = await worker.upstream.send(
            "POST",
            request.client.path,
            headers=[
                JSON,
                (b"X-Request-Id", upstream_request_id(request.id)),
                *passed_up(request.client.headers),
            ],
            body=body,
            timeout_s=self._settings.timeouts.first_byte_s,
        )
        try:
            check_status(exchange.status)
            answer = Answer(
                exchange,
                request.client,
                request.record,
                headers=lambda: [*passed_down(exchange.headers), *request.our_headers()],
                timeouts=self._settings.timeouts,
                now_s=self._now_s,
            )
            kind = header(exchange.headers, b"content-type") or b""
            if exchange.status == 200 and kind.startswith(b"text/event-stream"):
                relay: Whole | Stream = Stream(
                    answer, remove_usage=remove_usage, num_choices=request.num_choices
                )
            else:
                relay = Whole(answer)
            status = await relay.begin()
            worker.answers(status)
            if status in BACK_PRESSURE and others():
                raise WorkerBusy(f"a worker answered {status}")
            await relay.relay()
            if isinstance(request.record.failure, WorkerError):
                worker.failed(request.record.failure.message)
            elif status < 500:
                worker.succeeded()
        finally:
            exchange.close()

    def _model(self, name: str) -> Model:
        model = self._fleet.names.get(name)
        if model is None:
            known = ", ".join(self._fleet.names)
            raise ModelNotFound(
                f"there is no model {name[:128]!r} here; there is: {known}", param="model"
            )
        return model


def _log_failure(request: Request) -> None:
    """What operators must know of: not what callers do, but what workers and we fail at."""
    failure, decision = request.record.failure, request.record.decision
    if failure is not None and not isinstance(failure, RequestError):
        where = decision.worker if decision else "no worker"
        log.warning("request %s, %s: %s (%s)", request.id, where, failure.message, failure.code)
