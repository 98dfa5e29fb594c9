"""The simulated worker as a raw ASGI application: `create_sim_worker(options)`.

Everything of one worker hangs off one `SimWorker`; there is nothing global, so several can run in
one process. It needs no lifespan: the engine's task starts with the first request.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from paceline.sim.generation import Generation
from paceline.testing.sim_worker import refusals
from paceline.testing.sim_worker.answers import Exchange, WentDown, answer
from paceline.testing.sim_worker.engines import Engines, Rank
from paceline.testing.sim_worker.events import Envelope
from paceline.testing.sim_worker.faults import Fault, FaultKind, Faults, parse_faults
from paceline.testing.sim_worker.fields import read_body
from paceline.testing.sim_worker.info import VERSION, model_list
from paceline.testing.sim_worker.metrics import CONTENT_TYPE
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.refusals import Refusal
from paceline.testing.sim_worker.requests import GenerateRequest, read_request
from paceline.testing.sim_worker.responses import send_bytes, send_json, send_refusal
from paceline.testing.sim_worker.sequences import sequences

MAX_BODY_BYTES = 64 * 1024 * 1024
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
    """One worker: its engines, its faults, and an outage if there is one."""

    def __init__(
        self,
        options: SimWorkerOptions,
        faults: Faults,
        exit_process: Callable[[], object] | None,
    ) -> None:
        self._options = options
        self._faults = faults
        self._exit_process = exit_process
        self._engines = Engines(options, lambda: self._faults.saturation)
        self._desk = asyncio.Lock()
        self._outage: FaultKind | None = None
        self._back_s = 0.0  # when the outage ends, on the monotonic clock
        self._apply_standing_faults()
        self._routes: Mapping[str, Mapping[str, Handler]] = {
            "/v1/chat/completions": {"POST": self._chat},
            "/v1/completions": {"POST": self._completions},
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

    async def _chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._generate(scope, receive, send, chat=True)

    async def _completions(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._generate(scope, receive, send, chat=False)

    async def _generate(self, scope: Scope, receive: Receive, send: Send, *, chat: bool) -> None:
        headers = Headers(scope=scope)
        body = await _read(receive)
        if self._outage_now(scope):
            raise refusals.engine_failed()
        faults = self._faults.take()
        if faults.error is not None:
            raise faults.error
        fields = read_body(headers.get("content-type", ""), body)
        request = read_request(fields, self._options, chat=chat)
        self._admit(request)
        rank = self._rank(headers.get("x-data-parallel-rank"))
        request, generations = await self._queued(request, rank)
        identity = headers.get("x-request-id") or secrets.token_hex(8)
        envelope = Envelope(
            request=request,
            id=f"{'chatcmpl' if chat else 'cmpl'}-{identity}",
            model=self._options.model,
            created=int(time.time()),
        )
        exchange = Exchange(
            envelope=envelope,
            generations=generations,
            faults=faults,
            reports_spec=self._options.reports_spec_decode,
            reports_times=self._options.per_request_metrics,
            receive=receive,
            send=send,
            abort=scope.get("state", {}).get(ABORT, _nothing),
            exit_process=self._exit_process or _nothing,
        )
        await answer(exchange, rank.pacer)

    async def _queued(
        self, request: GenerateRequest, rank: Rank
    ) -> tuple[GenerateRequest, list[Generation]]:
        """The request's sequences, or none and what is refused within its stream.

        Texts are written one request at a time, with the loop's turn after each: a burst of
        hundreds, at about 0.7 ms each, would make the passes under way late. Meanwhile the queue
        may have filled up; a stream that finds it so gets its 503 after the status line, which is
        what vLLM's race does too (three of nine in a burst against a limit of six).
        """
        if request.late_refusal:
            return request, []
        async with self._desk:
            await asyncio.sleep(0)
            generations = sequences(request, self._options, rank.outputs)
        try:
            self._admit(request)
        except Refusal as refusal:
            if not request.stream:
                raise
            return replace(request, late_refusal=refusal), []
        return request, generations

    def _admit(self, request: GenerateRequest) -> None:
        """Raises Refusal where a queue limit is passed, with what was asked for counted in."""
        reqs, tokens = self._options.max_num_queued_reqs, self._options.max_num_queued_tokens
        present = self._engines.num_present + request.num_sequences
        reason = None
        if self._faults.saturation or (reqs is not None and present > reqs):
            reason = "max_num_queued_reqs"
        elif tokens is not None:
            queued = self._engines.prompt_tokens_waiting + request.num_prompt_tokens * request.n
            reason = "max_num_queued_tokens" if queued > tokens else None
        if reason is not None:
            self._engines.metrics.rejected[reason] += 1
            raise refusals.too_busy()

    def _rank(self, header: str | None) -> Rank:
        wanted = int(header) if header is not None and header.isdecimal() else None
        if header is not None and (wanted is None or wanted >= self._options.engines):
            text = f"data_parallel_rank {header} is out of range [0, {self._options.engines})."
            raise refusals.bad_value(text)
        return self._engines.choose(wanted)

    # --- the rest ---------------------------------------------------------------------------------

    async def _models(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, model_list(self._options))

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 503 if self._outage_now(scope) else 200, b"")

    async def _load(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {"server_load": 0})

    async def _version(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {"version": VERSION, "simulated": True})

    async def _exposition(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 200, self._engines.metrics.exposition(), CONTENT_TYPE)

    async def _stats(self, scope: Scope, receive: Receive, send: Send) -> None:
        """How punctual the simulation is: what no real worker would tell."""
        await send_json(send, 200, self._engines.stats())

    async def _show_faults(self, scope: Scope, receive: Receive, send: Send) -> None:
        _check_loopback(scope)
        await send_json(send, 200, self._faults.as_json())

    async def _set_faults(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Replace all faults. An empty list ends them."""
        _check_loopback(scope)
        try:
            wanted = json.loads(await _read(receive))
            self._faults.replace(parse_faults(wanted, can_exit=self._exit_process is not None))
        except ValueError as problem:
            raise Refusal(400, {"detail": str(problem)}) from None
        self._apply_standing_faults()
        await send_json(send, 200, self._faults.as_json())

    def _apply_standing_faults(self) -> None:
        outage = self._faults.take_outage()
        if outage is not None:
            self._begin_outage(outage)
        self._engines.slow_down(self._faults.slow_factor)

    def _begin_outage(self, outage: Fault) -> None:
        """End what is under way, and be as new when the outage is over."""
        died = outage.kind is FaultKind.ENGINE_DEATH
        self._engines.fail(refusals.engine_failed() if died else WentDown("the worker is down"))
        self._engines = Engines(self._options, lambda: self._faults.saturation)
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


async def _read(receive: Receive) -> bytes:
    """The whole body. Raises Refusal for one that is too large."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, {"detail": "the client left before its body was whole"})
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise Refusal(413, {"detail": "Request Entity Too Large"})
        if not message.get("more_body", False):
            return b"".join(parts)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
