"""The admin plane: metrics, the state of the fleet, decisions and why they were made.

On a port of its own, on loopback unless the configuration says otherwise, and then with a key;
`guard` looks at every request first.
"""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from msgspec.structs import replace
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse

from paceline import __version__
from paceline.core.caller import caller_of
from paceline.core.decide import decide
from paceline.core.error_shapes import error_body
from paceline.core.explain import explain_whole
from paceline.core.features import measure
from paceline.core.types import Endpoint, Reason, Workload
from paceline.core.views import view_of
from paceline.edge.decisions import Decisions
from paceline.edge.guard import Guard
from paceline.edge.learner import Learner
from paceline.edge.own_answers import model_named
from paceline.edge.state import state_of
from paceline.edge.telemetry import Telemetry
from paceline.edge.workers import Fleet
from paceline.errors import InvalidRequest, PacelineError, PayloadTooLarge
from paceline.settings import Mode, Settings


def create_admin_app(
    settings: Settings,
    fleet: Fleet,
    telemetry: Telemetry,
    learner: Learner | None,
    decisions: Decisions,
) -> FastAPI:
    app = FastAPI(title="Paceline admin", version=__version__, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, settings=settings.admin)

    @app.exception_handler(PacelineError)
    async def refused(request: Request, error: PacelineError) -> Response:
        return Response(error_body(error, None), error.status, media_type="application/json")

    @app.get("/metrics")
    async def metrics() -> Response:
        """All of `paceline_*`, in the Prometheus text format."""
        return Response(telemetry.exposition(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/admin/state")
    async def state() -> dict[str, Any]:
        """Models, pools and workers as they are now; unknown values are null."""
        return state_of(settings.mode, fleet, telemetry, learner)

    @app.get("/admin/decisions")
    async def latest(
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        pool: str | None = None,
        workload: Workload | None = None,
        reason: Reason | None = None,
    ) -> dict[str, Any]:
        """The last decisions and what came of them, newest first. No prompts, no answers."""
        found = decisions.latest(limit=limit, pool=pool, workload=workload, reason=reason)
        return {"decisions": found, "num_dropped": decisions.num_dropped}

    @app.post("/admin/explain")
    async def explain(
        request: Request,
        endpoint: Endpoint = Endpoint.CHAT_COMPLETIONS,
        key: str | None = None,
    ) -> JSONResponse:
        """Where a request with this body would go now, every pool's terms, and why. Nothing is
        sent, and nothing is learned from it.

        The body is the one that the endpoint takes; headers count as the data plane's do
        (`x-paceline-workload`, sessions), and `key` names the API key that it comes with. In static
        mode `if_adaptive` says what costs would say, where something is learned.
        """
        settings.auth.check_name(key)
        body = _object(await _read(request, settings.limits.body_bytes))
        headers = {name.lower(): value for name, value in request.headers.items()}
        view = view_of(endpoint, body)
        model = model_named(fleet, view.model)
        caller = caller_of(view, body, headers, key_name=key, model=model.name, with_template=True)
        features, snapshot = measure(view), model.snapshot(fleet.now_s())
        adaptive = None
        if learner is not None:
            adaptive = replace(learner.adaptive(model.name, caller), exploration=0.0)
        if settings.mode is Mode.ADAPTIVE:
            return JSONResponse(
                explain_whole(decide(features, caller, snapshot, settings.rules, adaptive))
            )
        said = explain_whole(decide(features, caller, snapshot, settings.rules))
        if adaptive is not None:
            by_cost = decide(features, caller, snapshot, settings.rules, adaptive)
            said["if_adaptive"] = explain_whole(by_cost)
        return JSONResponse(said)

    return app


async def _read(request: Request, limit_bytes: int) -> bytes:
    """Raises PayloadTooLarge."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit_bytes:
            raise PayloadTooLarge(f"the body is longer than {limit_bytes} bytes")
    return bytes(body)


def _object(raw: bytes) -> dict[str, Any]:
    """Raises InvalidRequest."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise InvalidRequest("the body must be a JSON object, as the endpoint takes it")
    return body
