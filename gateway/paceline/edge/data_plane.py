"""The data plane: what becomes of a request, whatever it asks for.

`_serve` is a request's life from top to bottom: path, key, method, body; `forwarding` has the part
with a worker in it, and where it goes is decided by `core.decide`. Nothing stands between these and
the connections on either side.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable

from paceline.core.error_shapes import error_body
from paceline.edge.auth import Authenticator
from paceline.edge.bodies import read_body
from paceline.edge.client import Client, ClientGone
from paceline.edge.cors import Cors
from paceline.edge.decisions import Decisions
from paceline.edge.endpoints import ENDPOINTS
from paceline.edge.failure_log import FailureLog
from paceline.edge.forwarding import Forwarder
from paceline.edge.learner import Learner
from paceline.edge.own_answers import OwnAnswers
from paceline.edge.request import Request
from paceline.edge.telemetry import CLIENT_GONE, Telemetry
from paceline.edge.wire import JSON, allow, retry_after
from paceline.edge.workers import Fleet
from paceline.errors import MethodNotAllowed, NotFound, PacelineError, ShuttingDown
from paceline.settings import Settings

log = logging.getLogger(__name__)

OPEN_PATHS = frozenset(["/health", "/ready", "/version"])
"""What answers without a key, OPTIONS aside."""
GET = ("GET", "HEAD")

Handler = Callable[[Request], Awaitable[None]]


class DataPlane:
    """What answers every request of every client."""

    def __init__(
        self,
        settings: Settings,
        fleet: Fleet,
        telemetry: Telemetry,
        learner: Learner | None,
        decisions: Decisions,
        now_s: Callable[[], float],
        created: int,
    ) -> None:
        """`created` is the Unix time that the list of models shows."""
        self._settings = settings
        self._telemetry = telemetry
        self._decisions = decisions
        self._now_s = now_s
        self._failures = FailureLog()
        self._authenticator = Authenticator(settings.auth)
        self._cors = Cors(settings.listen.cors_origins)
        self._forwarder = Forwarder(settings, fleet, telemetry, learner, now_s)
        own = OwnAnswers(fleet, telemetry, created)
        self._one_model: Handler = own.one_model
        self._routes: dict[str, tuple[Handler, tuple[str, ...]]] = {
            **{path: (self._forwarded, ("POST",)) for path in ENDPOINTS},
            "/v1/models": (own.models, GET),
            "/health": (own.health, GET),
            "/ready": (own.ready, GET),
            "/version": (own.version, GET),
        }
        if settings.listen.metrics:
            self._routes["/metrics"] = (own.metrics, GET)

    async def __call__(self, client: Client) -> None:
        cors = self._cors.headers(client.named)
        request = Request.arrived(client, ENDPOINTS.get(client.path), cors, self._now_s())
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
            self._failures.note(record, record.ended_s)
            record.failure = None  # its traceback would keep the request, and its body, with it
            if request.endpoint is not None:
                self._telemetry.ended(record)
                if record.decision is not None:
                    self._decisions.ended(record)

    def _refuse(self, request: Request, error: PacelineError) -> None:
        """An error as the response; if one is under way already, it stays incomplete, which the
        connection turns into a cut."""
        if request.client.started:
            return
        headers = [JSON, *request.our_headers(), *retry_after(error), *allow(error)]
        request.client.answer(error.status, headers, error_body(error, request.endpoint))

    async def _serve(self, request: Request) -> None:
        client = request.client
        if client.method == "OPTIONS":
            self._options(request)
            return
        if client.path not in OPEN_PATHS:
            request.key = self._authenticator.caller(request.headers)
        handler, methods = self._route(client.path)
        if client.method not in methods:
            raise MethodNotAllowed(f"{client.path} takes {' or '.join(methods)}", allowed=methods)
        await handler(request)

    def _route(self, path: str) -> tuple[Handler, tuple[str, ...]]:
        route = self._routes.get(path)
        if route is not None:
            return route
        if path.startswith("/v1/models/"):
            return self._one_model, GET
        near = difflib.get_close_matches(path[:128], self._routes, n=1, cutoff=0.9)
        known = [each for each in (f"/v1{path}", path.removeprefix("/v1")) if each in self._routes]
        hint = f"; did you mean {(known or near)[0]}?" if known or near else ""
        raise NotFound(f"there is no {path[:128]}{hint}")

    def _options(self, request: Request) -> None:
        try:
            _, methods = self._route(request.client.path)
        except NotFound:
            methods = ()
        allowed = ", ".join([*methods, "OPTIONS"]).encode()
        request.cors = self._cors.preflight(request.headers, allowed)
        request.client.answer(204, [(b"allow", allowed), *request.our_headers()], b"")

    async def _forwarded(self, request: Request) -> None:
        assert request.endpoint is not None
        body = await read_body(
            request.client,
            request.endpoint,
            limit_bytes=self._settings.limits.body_bytes,
            timeout_s=self._settings.timeouts.between_bytes_s,
            hints=request.wants_hints,
        )
        request.record.body_read_s = self._now_s()
        await self._forwarder.forward(request, body)
