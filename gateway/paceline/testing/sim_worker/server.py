"""A simulated worker on a socket: for a process of its own, and for the length of a block."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from paceline.testing.sim_worker.app import ABORT, create_sim_worker
from paceline.testing.sim_worker.faults import Fault
from paceline.testing.sim_worker.options import SimWorkerOptions

BACKLOG = 2048
DIED = 70  # the exit status of a worker that a fault told to die


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises OSError or ValueError."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port {port} is not in 0..65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve_for_good(
    listener: socket.socket, options: SimWorkerOptions, faults: Sequence[Fault]
) -> None:
    """Serve until SIGTERM or SIGINT, which end the process at once whatever is under way."""
    app = create_sim_worker(options, faults=faults, exit_process=lambda: os._exit(DIED))
    gc.freeze()  # what is here stays: a full collection would hold passes up by tens of ms
    _Ending(_config(app)).run(sockets=[listener])


@contextlib.asynccontextmanager
async def running_sim_worker(
    options: SimWorkerOptions | None = None, *, faults: Sequence[Fault] = ()
) -> AsyncIterator[str]:
    """A worker in this process, on a free port of 127.0.0.1, while the block runs; its address.

    It ends as a process does: connections that are open then are reset.
    """
    listener = listen("127.0.0.1", 0)
    server = _Guest(_config(create_sim_worker(options, faults=faults)))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield address(listener)
    finally:
        await _end(server, task)
        listener.close()


async def _end(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    """At once: uvicorn's own shutdown waits, at least a tenth of a second."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    for listening in getattr(server, "servers", ()):  # none if the block ended before it began
        listening.close()
    for connection in list(server.server_state.connections):
        connection.transport.abort()


def _config(app: ASGIApp) -> uvicorn.Config:
    # "critical" keeps uvicorn silent about the answers that faults leave unfinished.
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        proxy_headers=False,
    )


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol; ours lets the application cut the connection, as a crash would."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, ABORT: transport.abort}


class _Ending(uvicorn.Server):
    """uvicorn's server, ended by a signal: a worker has nothing to save."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        os._exit(0)


class _Guest(uvicorn.Server):
    """uvicorn's server without its signal handlers, which belong to the host process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
