"""The simulated worker as a raw ASGI application: `create_sim_worker(options)`.

Everything of one worker hangs off one `SimWorker`; there is nothing global, so several can run in
one process. It needs no lifespan: the engine's task starts with the first request.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.answers import Exchange, WentDown, answer
from paceline.testing.sim_worker.desk import Desk
from paceline.testing.sim_worker.dialects import DIALECTS, Dialect
from paceline.testing.sim_worker.dialects.messages_body import count_tokens, refused
from paceline.testing.sim_worker.faults import Fault, FaultKind, Faults, parse_faults
from paceline.testing.sim_worker.fields import Body, read_body, read_bytes
from paceline.testing.sim_worker.forms import read_form
from paceline.testing.sim_worker.info import VERSION, model_list
from paceline.testing.sim_worker.metrics import CONTENT_TYPE
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.pacing import EnginePacer
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.requests import GenerateRequest
from paceline.testing.sim_worker.sending import send_bytes, send_json, send_refusal
from paceline.testing.sim_worker.tokenizing import detokenized, tokenized
from paceline.testing.sim_worker.vocabulary import Vocabulary
from paceline.testing.sim_worker.writers import Envelope

ABORT = "abort_connection"  # where a server that can cut a connection leaves the means to
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", "testclient"})

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]


def create_sim_worker(
    options: SimWorkerOptions | None = None,
    *,
    faults: Sequence[Fault] = (),
    exit_process: Callable[[], object] | None = None,
) -> ASGIApp:
    """An ASGI application that behaves like a vLLM server with these options.

    `exit_process` is what a `die` fault with `exit` calls; without it such faults are refused.
    """
    return SimWorker(options or SimWorkerOptions(), Faults(faults), exit_process)


class SimWorker:
    """One worker: its desk, its faults, and an outage if there is one."""

    def __init__(
        self,
        options: SimWorkerOptions,
        faults: Faults,
        exit_process: Callable[[], object] | None,
    ) -> None:
        self._options = options
        self._faults = faults
        self._exit_process = exit_process
        self._vocabulary = Vocabulary()
        self._desk = Desk(options, faults, self._vocabulary)
        self._outage: FaultKind | None = None
        self._back_s = 0.0  # when the outage ends, on the monotonic clock
        self._apply_standing_faults()
        self._routes: Mapping[str, Mapping[str, Handler]] = {
            **{
                path: {"POST": partial(self._generate, dialect)}
                for path, dialect in DIALECTS.items()
            },
            "/v1/messages/count_tokens": {"POST": self._count_tokens},
            "/tokenize": {"POST": self._tokenize},
            "/detokenize": {"POST": self._detokenize},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._health},
            "/ping": {"GET": self._health, "POST": self._health},
            "/load": {"GET": self._load},
            "/version": {"GET": self._version},
            "/metrics": {"GET": self._exposition},
            "/sim/faults": {"GET": self._show_faults, "POST": self._set_faults},
            "/sim/stats": {"GET": self._stats},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                if self._outage_now(scope) is FaultKind.DOWN:
                    scope.get("state", {}).get(ABORT, _nothing)()
                    return
                await self._handler(scope)(scope, receive, send)
            except Refusal as refusal:
                await send_refusal(send, refusal)

    def _handler(self, scope: Scope) -> Handler:
        methods = self._routes.get(scope["path"])
        if methods is None:
            raise Refusal(404, {"detail": "Not Found"})
        if scope["method"] not in methods:
            allow = {"allow": ", ".join(methods)}
            raise Refusal(405, {"detail": "Method Not Allowed"}, allow)
        guarded = scope["path"].startswith("/v1/") and self._options.api_key is not None
        if (
            guarded
            and Headers(scope=scope).get("authorization") != f"Bearer {self._options.api_key}"
        ):
            raise Refusal(401, {"error": "Unauthorized"})
        return methods[scope["method"]]

    # --- generating -------------------------------------------------------------------------------

    async def _generate(self, dialect: Dialect, scope: Scope, receive: Receive, send: Send) -> None:
        """Any endpoint that the engine works for, its refusals in its own shape."""
        try:
            await answer(*await self._exchange(dialect, scope, receive, send))
        except Refusal as refusal:
            raise dialect.refused(refusal) from None

    async def _exchange(
        self, dialect: Dialect, scope: Scope, receive: Receive, send: Send
    ) -> tuple[Exchange, EnginePacer]:
        headers = Headers(scope=scope)
        body = await read_bytes(receive)
        if self._outage_now(scope):
            raise refusals.engine_failed()
        faults = self._faults.take()
        if faults.error is not None:
            raise faults.error
        fields = await _fields(dialect, headers, body)
        request = dialect.read(fields, self._options)
        rank = self._desk.rank(headers.get("x-data-parallel-rank"), request)
        request, generations = await self._desk.queued(request, rank)
        exchange = Exchange(
            request=request,
            writer=dialect.writer(self._envelope(dialect, request, headers)),
            generations=generations,
            faults=faults,
            reports_spec=self._options.reports_spec_decode,
            reports_times=self._options.per_request_metrics,
            receive=receive,
            send=send,
            abort=scope.get("state", {}).get(ABORT, _nothing),
            exit_process=self._exit_process or _nothing,
        )
        return exchange, rank.pacer

    def _envelope(self, dialect: Dialect, request: GenerateRequest, headers: Headers) -> Envelope:
        asked = None if dialect.own_ids else headers.get("x-request-id")
        return Envelope(
            request=request,
            id=f"{dialect.id_prefix}{asked or secrets.token_hex(8)}",
            model=self._options.model,
            created=int(time.time()),
        )

    # --- the rest ---------------------------------------------------------------------------------

    async def _count_tokens(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _json(scope, receive)
            await send_json(send, 200, count_tokens(body, self._options))
        except Refusal as refusal:
            raise refused(refusal) from None

    async def _tokenize(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _json(scope, receive)
        await send_json(send, 200, tokenized(body, self._options, self._vocabulary))

    async def _detokenize(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _json(scope, receive)
        await send_json(send, 200, detokenized(body, self._options, self._vocabulary))

    async def _models(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, model_list(self._options))

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 503 if self._outage_now(scope) else 200, b"")

    async def _load(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {"server_load": 0})

    async def _version(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {"version": VERSION, "simulated": True})

    async def _exposition(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 200, self._desk.engines.metrics.exposition(), CONTENT_TYPE)

    async def _stats(self, scope: Scope, receive: Receive, send: Send) -> None:
        """How punctual the simulation is: what no real worker would tell."""
        await send_json(send, 200, self._desk.engines.stats())

    async def _show_faults(self, scope: Scope, receive: Receive, send: Send) -> None:
        _check_loopback(scope)
        await send_json(send, 200, self._faults.as_json())

    async def _set_faults(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Replace all faults. An empty list ends them."""
        _check_loopback(scope)
        try:
            wanted = json.loads(await read_bytes(receive))
            self._faults.replace(parse_faults(wanted, can_exit=self._exit_process is not None))
        except ValueError as problem:
            raise Refusal(400, {"detail": str(problem)}) from None
        self._apply_standing_faults()
        await send_json(send, 200, self._faults.as_json())

    def _apply_standing_faults(self) -> None:
        outage = self._faults.take_outage()
        if outage is not None:
            self._begin_outage(outage)
        self._desk.engines.slow_down(self._faults.slow_factor)

    def _begin_outage(self, outage: Fault) -> None:
        """End what is under way, and be as new when the outage is over."""
        died = outage.kind is FaultKind.ENGINE_DEATH
        self._desk.begin_anew(refusals.engine_failed() if died else WentDown("the worker is down"))
        self._outage, self._back_s = outage.kind, time.monotonic() + outage.for_s

    def _outage_now(self, scope: Scope) -> FaultKind | None:
        """The outage, if there is one; never for who controls it."""
        if self._outage is not None and time.monotonic() >= self._back_s:
            self._outage = None
        return None if scope["path"].startswith("/sim/") else self._outage


def _nothing() -> None:
    """Without a socket there is none to cut: the answer just ends."""


def _check_loopback(scope: Scope) -> None:
    client = scope.get("client")
    if client and client[0] not in LOOPBACK and not client[0].startswith("127."):
        raise Refusal(403, {"detail": "faults are set from this machine only"})


async def _fields(dialect: Dialect, headers: Headers, body: bytes) -> Body:
    if dialect.form:
        return await read_form(headers, body)
    return read_body(headers.get("content-type", ""), body)


async def _json(scope: Scope, receive: Receive) -> Body:
    return read_body(Headers(scope=scope).get("content-type", ""), await read_bytes(receive))


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
