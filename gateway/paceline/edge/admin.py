"""The admin plane: metrics and the state of the fleet, for operators.

On a port of its own, on loopback unless the configuration says otherwise, and then with a key.
`Host` is checked against an allow-list, so that a page in a browser cannot read it through a name
of its own that points here.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from typing import Any

from fastapi import FastAPI, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from paceline import __version__
from paceline.edge.telemetry import Telemetry
from paceline.edge.workers import Fleet, Model, Pool, Worker
from paceline.settings import Admin


def create_admin_app(settings: Admin, fleet: Fleet, telemetry: Telemetry) -> FastAPI:
    app = FastAPI(title="Paceline admin", version=__version__, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, settings=settings)

    @app.get("/metrics")
    async def metrics() -> Response:
        """All of `paceline_*`, in the Prometheus text format."""
        return Response(telemetry.exposition(), media_type=CONTENT_TYPE_LATEST)

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


class Guard:
    """Refuses requests for a host that is not ours, and those without the key, on every path.

    A page that rebinds a name of its own to this address still sends that name, so hosts are
    allowed by address, as localhost, or as the name that the configuration gives. An address in
    `Host` cannot have come about that way.
    """

    def __init__(self, app: ASGIApp, settings: Admin) -> None:
        self._app = app
        self._names = {"localhost", settings.host.lower()}
        self._key = None if settings.key is None else settings.key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(dict(scope.get("headers", ())))
        if scope["type"] == "http" and refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> Response | None:
        host = re.sub(r":\d+\Z", "", headers.get(b"host", b"").decode("latin-1"))
        name = host.strip("[]").lower()
        if name not in self._names and not _is_address(name):
            return PlainTextResponse("this Host is not served here", 400)
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        is_known = scheme.lower() == b"bearer" and hmac.compare_digest(given, self._key or b"")
        if self._key is not None and not is_known:
            return PlainTextResponse("send the admin key as `Authorization: Bearer KEY`", 401)
        return None


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
