"""The data plane: parse → decide → relay, as raw ASGI.

Raw, because a middleware that wraps responses puts a queue and a task between worker and client.
One request's life is `_serve` and then `_generate`, read from top to bottom; where it goes is
decided by `core.decide`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import orjson

from paceline import __version__
from paceline.core.decide import decide
from paceline.core.explain import explain
from paceline.core.features import conversation_key, measure, view_of
from paceline.core.rewrite import rewrite, wants_usage_added
from paceline.core.types import (
    Caller,
    Decision,
    Endpoint,
    Priority,
    RequestFeatures,
    RequestView,
    Workload,
)
from paceline.edge.auth import Authenticator
from paceline.edge.client import Client, ClientGone, Message, Receive, Send
from paceline.edge.relay import Answer, relay_stream, relay_whole
from paceline.edge.telemetry import CLIENT_GONE, RequestRecord, Telemetry
from paceline.edge.upstream import Exchange, Headers
from paceline.edge.wire import (
    JSON,
    error_body,
    header,
    passed_down,
    passed_up,
    request_id,
    retry_after,
    upstream_request_id,
)
from paceline.edge.workers import Fleet, Model, Worker
from paceline.errors import (
    Forbidden,
    InvalidRequest,
    MethodNotAllowed,
    ModelNotFound,
    NotFound,
    PacelineError,
    UnsupportedMediaType,
    WorkerDied,
    WorkerProtocolError,
    WorkerUnavailable,
)
from paceline.settings import ApiKey, Settings

log = logging.getLogger(__name__)

_Choice = TypeVar("_Choice", bound=StrEnum)

GENERATING: Mapping[str, Endpoint] = {
    "/v1/chat/completions": Endpoint.CHAT_COMPLETIONS,
    "/v1/completions": Endpoint.COMPLETIONS,
}
OPEN_PATHS = frozenset(["/health", "/ready", "/version"])
"""What answers without a key, OPTIONS aside."""
EXPLAIN_BYTES = 2048
RETRYABLE = (WorkerUnavailable, WorkerDied)
"""Failures after which, with nothing sent to the client, another worker may be asked. Once."""


@dataclass(slots=True)
class Request:
    """One request's pieces, gathered as they become known."""

    path: str
    method: str
    raw_headers: Headers
    headers: Mapping[str, str]
    id: str
    client: Client
    record: RequestRecord
    key: ApiKey | None = None


class DataPlane:
    """The ASGI application that clients talk to."""

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

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the data plane speaks HTTP only, not {scope['type']}")
        request = self._request(scope, Client(receive, send))
        record = request.record
        try:
            await self._serve(request)
        except ClientGone:
            record.code = CLIENT_GONE
        except PacelineError as error:
            record.code = error.status
            await self._refuse(request, error)
        except Exception as error:  # ours alone, and no reason to leave a client without an answer
            log.exception("request %s failed", request.id)
            record.code = PacelineError.status
            await self._refuse(request, PacelineError(f"internal error ({type(error).__name__})"))
        finally:
            record.code = record.code or request.client.status or 500
            record.ended_s = self._now_s()
            if request.path in GENERATING:
                self._telemetry.ended(record)

    def _request(self, scope: Message, client: Client) -> Request:
        raw_headers: Headers = scope["headers"]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw_headers}
        return Request(
            path=scope["path"],
            method=scope["method"],
            raw_headers=raw_headers,
            headers=headers,
            id=request_id(headers.get("x-request-id")),
            client=client,
            record=RequestRecord(arrived_s=self._now_s()),
        )

    async def _refuse(self, request: Request, error: PacelineError) -> None:
        """An error as the response; if one is under way already, it stays incomplete, which the
        server turns into a cut connection."""
        if request.client.started:
            return
        headers = [JSON, *self._our_headers(request), *retry_after(error)]
        await request.client.answer(error.status, headers, error_body(error))

    # -- every path ------------------------------------------------------------------------------

    async def _serve(self, request: Request) -> None:
        if request.method == "OPTIONS":
            await self._options(request)
            return
        if request.path not in OPEN_PATHS:
            request.key = self._authenticator.caller(request.headers)
        handler, methods = self._route(request.path)
        if request.method not in methods:
            raise MethodNotAllowed(f"{request.path} takes {' or '.join(methods)}")
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
            raise NotFound(f"there is no {path}")
        return simple[path], ("GET", "HEAD")

    async def _options(self, request: Request) -> None:
        try:
            _, methods = self._route(request.path)
        except NotFound:
            methods = ()
        allowed = ", ".join([*methods, "OPTIONS"]).encode()
        await request.client.answer(204, [(b"allow", allowed), *self._our_headers(request)], b"")

    async def _health(self, request: Request) -> None:
        await self._json(request, {"status": "ok"})

    async def _ready(self, request: Request) -> None:
        down = [model.name for model in self._fleet.models if not model.is_up]
        if down:
            raise WorkerUnavailable(f"no worker is up for {', '.join(down)}", retry_after_s=1)
        await self._json(request, {"status": "ready"})

    async def _version(self, request: Request) -> None:
        await self._json(request, {"version": __version__})

    async def _models(self, request: Request) -> None:
        data = [self._model_card(name, model) for name, model in self._fleet.names.items()]
        await self._json(request, {"object": "list", "data": data})

    async def _one_model(self, request: Request) -> None:
        name = request.path.removeprefix("/v1/models/")
        await self._json(request, self._model_card(name, self._model(name)))

    def _model_card(self, name: str, model: Model) -> dict[str, Any]:
        """OpenAI's card under our name, with what the worker's own adds to it."""
        ours = {"id": name, "object": "model", "created": self._created, "owned_by": "paceline"}
        theirs = {key: value for key, value in model.card().items() if key not in ours}
        return {**ours, **theirs, **({"root": model.name} if theirs or name != model.name else {})}

    async def _json(self, request: Request, value: object) -> None:
        headers = [JSON, *self._our_headers(request)]
        await request.client.answer(200, headers, orjson.dumps(value))

    # -- generation ------------------------------------------------------------------------------

    async def _generate(self, request: Request) -> None:
        raw, body = await self._body(request)
        view = view_of(GENERATING[request.path], body)
        model = self._model(view.model)
        caller = self._caller(request, view, body, model)
        async with request.client:
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
        """Asks the worker decided on, and one more if the first failed before it answered."""
        add_usage = wants_usage_added(body)
        upstream_body = rewrite(raw, body, model=model.settings.upstream_name, add_usage=add_usage)
        failed: list[str] = []
        while True:
            decision = self._decide(request, features, model, caller, failed)
            worker = self._fleet.workers[decision.worker]
            try:
                with worker.request():
                    await self._relay(request, worker, upstream_body, remove_usage=add_usage)
                return
            except RETRYABLE as error:
                if isinstance(error, WorkerUnavailable):
                    worker.unreachable()
                if request.client.started or failed or self._alone(worker, model):
                    raise
                failed.append(worker.url)

    def _decide(
        self,
        request: Request,
        features: RequestFeatures,
        model: Model,
        caller: Caller,
        failed: list[str],
    ) -> Decision:
        snapshot = model.snapshot(self._now_s(), without=failed)
        decision = decide(features, caller, snapshot, self._settings.rules)
        request.record.decision = decision
        self._telemetry.decided(decision)
        return decision

    def _alone(self, worker: Worker, model: Model) -> bool:
        others = (other for pool in model.pools for other in pool.workers if other is not worker)
        return not any(other.up for other in others)

    async def _relay(
        self, request: Request, worker: Worker, body: bytes, *, remove_usage: bool
    ) -> None:
        request.record.sent_s = self._now_s()
        exchange = await worker.upstream.send(
            "POST",
            request.path,
            headers=[
                JSON,
                (b"X-Request-Id", upstream_request_id(request.id)),
                *passed_up(request.raw_headers),
            ],
            body=body,
            timeout_s=self._settings.timeouts.first_byte_s,
        )
        try:
            worker.answered()
            _check_status(exchange)
            answer = Answer(
                exchange,
                request.client,
                request.record,
                headers=lambda: [*passed_down(exchange.headers), *self._our_headers(request)],
                timeouts=self._settings.timeouts,
                now_s=self._now_s,
            )
            kind = header(exchange.headers, b"content-type") or b""
            if exchange.status == 200 and kind.startswith(b"text/event-stream"):
                await relay_stream(answer, remove_usage=remove_usage)
            else:
                await relay_whole(answer)
        finally:
            exchange.close()

    # -- what a request says ---------------------------------------------------------------------

    async def _body(self, request: Request) -> tuple[bytes, dict[str, Any]]:
        """The body as it came (inflated), and as it reads. Raises RequestError."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise UnsupportedMediaType("send the body as Content-Type: application/json")
        raw = await request.client.body(
            limit_bytes=self._settings.limits.body_bytes,
            encoding=header(request.raw_headers, b"content-encoding"),
            declared=header(request.raw_headers, b"content-length"),
            timeout_s=self._settings.timeouts.between_bytes_s,
        )
        request.record.body_read_s = self._now_s()
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise InvalidRequest(f"the body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise InvalidRequest("the body must be a JSON object")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise InvalidRequest("model must be the name of a model", param="model")
        if not isinstance(body.get("stream"), bool | None):
            raise InvalidRequest("stream must be true or false", param="stream")
        return raw, body

    def _model(self, name: str) -> Model:
        model = self._fleet.names.get(name)
        if model is None:
            known = ", ".join(self._fleet.names)
            raise ModelNotFound(
                f"there is no model {name!r} here; there is: {known}", param="model"
            )
        return model

    def _caller(
        self, request: Request, view: RequestView, body: Mapping[str, Any], model: Model
    ) -> Caller:
        headers = request.headers
        key_name = request.key.name if request.key else ""
        if headers.get("x-paceline-explain") == "1" and not (request.key and request.key.debug):
            raise Forbidden("x-paceline-explain needs a key with debug", param="x-paceline-explain")
        conversation = conversation_key(view, body, headers)
        return Caller(
            key_name=key_name or None,
            headers=headers,
            workload=_choice(Workload, headers, "x-paceline-workload"),
            priority=_choice(Priority, headers, "x-paceline-priority") or Priority.INTERACTIVE,
            conversation=f"{key_name}\0{model.name}\0{conversation}",
        )

    # -- what we say -----------------------------------------------------------------------------

    def _our_headers(self, request: Request) -> Headers:
        headers: Headers = [(b"x-request-id", request.id.encode())]
        decision, record = request.record.decision, request.record
        if decision is None:
            return headers
        headers += [
            (b"x-paceline-workload", decision.classification.workload.value.encode()),
            (b"x-paceline-pool", decision.pool.encode()),
            (b"server-timing", _server_timing(record)),
        ]
        if request.headers.get("x-paceline-explain") == "1":
            headers.append((b"x-paceline-explain", _explain_header(decision)))
        return headers


def _check_status(exchange: Exchange) -> None:
    """Raises WorkerProtocolError for answers that must not reach a client as they are."""
    if exchange.status in (401, 403, 407):
        raise WorkerProtocolError("a worker refused the gateway's own key")
    if not (200 <= exchange.status < 300 or exchange.status >= 400):
        raise WorkerProtocolError(f"a worker answered with status {exchange.status}")


def _choice(kind: type[_Choice], headers: Mapping[str, str], name: str) -> _Choice | None:
    """A header whose value is one of few. Raises InvalidRequest, naming them."""
    value = headers.get(name)
    if value is None:
        return None
    try:
        return kind(value.strip().lower())
    except ValueError:
        known = ", ".join(kind)
        raise InvalidRequest(f"{name} may be {known}; not {value[:64]!r}", param=name) from None


def _server_timing(record: RequestRecord) -> bytes:
    """Milliseconds, as the header's specification asks: waiting here, deciding, the worker."""
    parts = ["queue;dur=0"]
    if record.body_read_s is not None and record.sent_s is not None:
        parts.append(f"decide;dur={(record.sent_s - record.body_read_s) * 1000:.3f}")
    if record.sent_s is not None and record.first_event_s is not None:
        parts.append(f"worker;dur={(record.first_event_s - record.sent_s) * 1000:.3f}")
    return ", ".join(parts).encode()


def _explain_header(decision: Decision) -> bytes:
    """The explanation, without its longest parts where it would be longer than a header should."""
    said = explain(decision)
    for longest in (None, "rules", "pools", "because"):
        if longest is not None:
            said[longest] = "too long to show"
        text = json.dumps(said, separators=(",", ":")).encode()
        if len(text) <= EXPLAIN_BYTES:
            return text
    return b"{}"
