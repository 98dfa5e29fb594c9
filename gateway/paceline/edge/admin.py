"""The admin plane: metrics and the state of the fleet, for operators.

On a port of its own, on loopback unless the configuration says otherwise, and then with a key.
`Host` is checked against an allow-list, so that a page in a browser cannot read it through a name
of its own that points here.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from paceline import __version__
from paceline.edge.telemetry import Telemetry
from paceline.edge.workers import Fleet, Model, Pool, Worker
from paceline.settings import Admin


def create_admin_app(settings: Admin, fleet: Fleet, telemetry: Telemetry) -> FastAPI:
    def authorised(authorization: Annotated[str, Header()] = "") -> None:
        given = authorization.removeprefix("Bearer ").encode()
        if settings.key is not None and not hmac.compare_digest(given, settings.key.encode()):
            raise HTTPException(401, "send the admin key as `Authorization: Bearer KEY`")

    app = FastAPI(
        title="Paceline admin", version=__version__, docs_url=None, redoc_url=None,
        dependencies=[Depends(authorised)],
    )  # fmt: skip
    app.add_middleware(HostAllowList, name=settings.host)

    @app.get("/metrics")
    async def metrics() -> Response:
        """All of `paceline_*`, in the Prometheus text format."""
        return Response(generate_latest(telemetry.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/admin/state")
    async def state() -> dict[str, Any]:
        """Models, pools and workers as they are now; unknown values are null."""
        return {
            "models": [
                {
                    "name": model.name,
                    "aliases": list(model.settings.aliases),
                    "default_pool": model.settings.default_pool,
                    "pools": [_pool(model, pool, fleet, telemetry) for pool in model.pools],
                }
                for model in fleet.models
            ]
        }

    return app


class HostAllowList:
    """Answers requests for a host by address, for localhost, and for `name`; refuses others.

    A page that rebinds a name of its own to this address still sends that name. An address in
    `Host` cannot have come about that way.
    """

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app = app
        self._names = {"localhost", name}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._allows(dict(scope["headers"]).get(b"host", b"")):
            refusal = PlainTextResponse("this Host is not served here", status_code=400)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allows(self, host: bytes) -> bool:
        name = re.sub(r":\d+\Z", "", host.decode("latin-1")).strip("[]")
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _pool(model: Model, pool: Pool, fleet: Fleet, telemetry: Telemetry) -> dict[str, Any]:
    speculation = pool.settings.speculation
    lengths = {
        workload: totals.mean_acceptance_length
        for (of_model, of_pool, workload), totals in telemetry.acceptance.totals.items()
        if (of_model, of_pool) == (model.name, pool.name)
    }
    return {
        "name": pool.name,
        "speculation": speculation
        and {
            "method": speculation.method,
            "num_speculative_tokens": speculation.num_speculative_tokens,
        },
        "mean_acceptance_length": lengths,
        "workers": [_worker(worker, fleet.now_s()) for worker in pool.workers],
    }


def _worker(worker: Worker, now_s: float) -> dict[str, Any]:
    load = worker.load(now_s)
    return {
        "url": worker.url,
        "up": worker.up,
        "in_flight": worker.in_flight,
        "running": load.running,
        "waiting": load.waiting,
        "kv_cache_usage": load.kv_cache_usage,
    }
