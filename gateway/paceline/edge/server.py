"""Both planes on their sockets, from start to a graceful end.

On SIGTERM or SIGINT the listeners close, running streams may end within `shutdown_s`, and what is
then still running ends with an error event. A second signal ends it all at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, cast

import uvicorn

from paceline.edge.app import Gateway, create_app
from paceline.edge.asgi import AsgiHandler
from paceline.edge.protocol import Handler, HttpConnection
from paceline.errors import ConfigurationError
from paceline.settings import Settings

log = logging.getLogger(__name__)

BACKLOG = 2048
KEEP_ALIVE_S = 75
"""Longer than clients' pools keep a connection, so that they close it and not we."""
TICK_S = 1.0
"""Between uvicorn's looks at the date, which its responses tell."""
OVER_S = 0.005
"""Between looks at whether all is over, once the server is ending."""
LAST_WORDS_S = 1.0
"""For a request whose time is up: it tells its client so."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the planes really listen, ports chosen by the system filled in."""

    data_plane: str
    admin: str


async def serve(settings: Settings, ready: Callable[[Addresses], None]) -> None:
    """Serves until a signal. Raises ConfigurationError if an address cannot be had."""
    async with serving(settings) as running:
        gc.collect()
        gc.freeze()  # what is here now stays: no collection need look at it again
        ready(running.addresses)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, running.stop)
        await running.ended()


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Running]:
    """Both planes, accepting connections within the context; ended gracefully with it."""
    with contextlib.ExitStack() as stack:
        bound = [
            stack.enter_context(_bound(at.host, at.port, key, option))
            for at, key, option in (
                (settings.listen, "listen", "--port"),
                (settings.admin, "admin", "--admin-port"),
            )
        ]
        gateway = create_app(settings)
        stalled_s = settings.timeouts.between_bytes_s
        servers = [
            _server(gateway.data_plane, settings.timeouts.shutdown_s, stalled_s),
            _server(AsgiHandler(gateway.admin), 1.0, stalled_s),
        ]
        async with gateway.running():
            tasks = [
                asyncio.create_task(server.serve(sockets=[listener]))
                for server, listener in zip(servers, bound, strict=True)
            ]
            running = Running(gateway, Addresses(*map(_address, bound)), servers, tasks)
            try:
                await running.started()
                yield running
            finally:
                running.stop()
                await running.ended()


class Running:
    """A gateway that is being served."""

    def __init__(
        self,
        gateway: Gateway,
        addresses: Addresses,
        servers: list[_Server],
        tasks: list[asyncio.Task[None]],
    ) -> None:
        self.gateway = gateway
        self.addresses = addresses
        self._servers = servers
        self._tasks = tasks

    @property
    def connections(self) -> Collection[HttpConnection]:
        """Of the data plane's clients, now."""
        return cast(Collection[HttpConnection], self._servers[0].server_state.connections)

    async def started(self) -> None:
        while not all(server.started for server in self._servers):
            if any(task.done() for task in self._tasks):
                await self.ended()
                raise RuntimeError("a server ended before it had started")
            await asyncio.sleep(0.005)

    def stop(self) -> None:
        """Gracefully the first time, at once the second."""
        in_flight = sum(worker.in_flight for worker in self.gateway.fleet.workers.values())
        if in_flight and not self._servers[0].should_exit:
            log.info(
                "ending: up to %d s for %d requests; a second signal ends them",
                self._servers[0].config.timeout_graceful_shutdown or 0,
                in_flight,
            )
        for server in self._servers:
            server.stop()

    async def ended(self) -> None:
        await asyncio.gather(*self._tasks)


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, since two of them share one process; and it
    ends when all is over, where uvicorn's looks ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told_to_end = asyncio.Event()

    def stop(self) -> None:
        """Gracefully the first time, at once the second."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._told_to_end.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._told_to_end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuses what is new, and gives what is under way its time; then it ends with an error."""
        for listening in [*self.servers, *(sockets or ())]:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self._busy and not self.force_exit:  # noqa: ASYNC110 (both are uvicorn's)
                    await asyncio.sleep(OVER_S)
        if tasks := list(self.server_state.tasks):
            log.warning("ending %d requests that are still running", len(tasks))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=LAST_WORDS_S)

    @property
    def _busy(self) -> bool:
        return bool(self.server_state.connections or self.server_state.tasks)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    """uvicorn wants one; our connections have a handler instead."""


def _server(handler: Handler, shutdown_s: float, stalled_s: float) -> _Server:
    protocol = functools.partial(HttpConnection, handler=handler, stalled_s=stalled_s)
    return _Server(
        uvicorn.Config(
            _no_app,
            http=cast(Any, protocol),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(shutdown_s)),
        )
    )


def _bound(host: str, port: int, key: str, option: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG)  # only a second listener, not a second bind, finds a port taken
    except OSError as error:
        bound.close()
        raise ConfigurationError(
            f"{key}: {host}:{port} cannot be listened on ({error.strerror}); choose another "
            f"{key}.port ({option}; for the demo --any-port), or stop what listens there"
        ) from error
    return bound


def _address(bound: socket.socket) -> str:
    host, port, *_ = bound.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
