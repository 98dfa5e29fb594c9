"""`paceline demo`: a configuration served with workers of our own in the place of the real ones.

Simulated ones, which need nothing, or real vLLM on the CPU, one core and about 3 GB each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop
from rich.console import Console

from paceline.cli.serve import announce, with_ports
from paceline.edge.server import Running, serving
from paceline.errors import ConfigurationError
from paceline.settings import Auth, ModelSettings, PoolSettings, Settings, WorkerSettings, load
from paceline.testing import vllm_cpu
from paceline.testing.showcase import EXAMPLES, Outcome, ask_worker, curl_line, faults, show

PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""
START_S = 20.0
"""A simulated worker that has not said where it listens by then has failed."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "demo", help="a gateway over workers of its own", description=__doc__
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--check", action="store_true",
        help="on free ports: one request of each workload, compared; exit status 0 if all is well",
    )  # fmt: skip
    parser.add_argument(
        "--any-port", action="store_true", help="free ports instead of the configuration's"
    )
    parser.add_argument(
        "--workers", choices=["sim", "vllm-cpu"], default="sim", help="what to start (default: sim)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0, or 1 if a check failed. Raises ConfigurationError."""
    if args.check and importlib.util.find_spec("openai") is None:
        raise ConfigurationError("the check asks with the real client: pip install openai")
    settings = _on_loopback(load(args.config, os.environ))
    any_port = args.check or args.any_port
    if any_port:
        settings = with_ports(settings, 0, 0)
    if args.workers == "sim":
        return uvloop.run(_demo(_simulated(settings, any_port=any_port), check=args.check))
    try:
        with vllm_cpu.running(*_vllm_specs(settings)):
            return uvloop.run(_demo(contextlib.nullcontext(settings), check=args.check))
    except vllm_cpu.VllmCpuError as error:
        raise ConfigurationError(str(error)) from error


def _on_loopback(settings: Settings) -> Settings:
    """Without keys, and so on loopback alone, whatever the configuration says."""
    return replace(
        settings,
        auth=Auth(),
        listen=replace(settings.listen, host="127.0.0.1"),
        admin=replace(settings.admin, host="127.0.0.1", key=None),
    )


async def _demo(workers: AbstractAsyncContextManager[Settings], *, check: bool) -> int:
    """Serves and shows; a signal at any time ends it, and its workers with it."""
    console = Console(highlight=False)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, task.cancel)
    try:
        async with workers as settings, serving(settings) as running:
            announce(settings, running.addresses)
            console.print()
            return await _show(settings, running, console, check=check)
    except asyncio.CancelledError:
        return 0


async def _show(settings: Settings, running: Running, console: Console, *, check: bool) -> int:
    base_url = running.addresses.data_plane
    outcomes: list[Outcome] = []
    if importlib.util.find_spec("openai") is None:
        console.print("(pip install openai, and the demo shows three requests here)")
    else:
        outcomes = await show(base_url, settings, console)
    if check:
        return await _report(outcomes, settings, console)
    console.print(f"\ntry it\n{curl_line(base_url, settings.models[0].name)}", soft_wrap=True)
    console.print("\nCtrl-C ends it")
    await asyncio.Event().wait()  # until a signal
    return 0


async def _report(outcomes: list[Outcome], settings: Settings, console: Console) -> int:
    """Compares each outcome with its worker's own answer and says what differs."""
    model = settings.models[0]
    num_faults = 0
    for outcome in outcomes:
        worker = outcome.explained["worker"]
        direct = await ask_worker(worker, model.upstream_name, outcome.example)
        for fault in faults(outcome, settings, direct):
            num_faults += 1
            console.print(f"{outcome.example.workload.value}: {fault}")
    complete = len(outcomes) == len(EXAMPLES)
    console.print("demo check passed" if complete and not num_faults else "demo check FAILED")
    return 0 if complete and not num_faults else 1


@contextlib.asynccontextmanager
async def _simulated(settings: Settings, *, any_port: bool) -> AsyncIterator[Settings]:
    """The settings with every worker simulated, for as long as the context lasts.

    On the configuration's own ports, unless `any_port`, or unless two workers would share one.
    """
    ports = [
        urlsplit(worker.url).port
        for model in settings.models
        for pool in model.pools
        for worker in pool.workers
    ]
    any_port = any_port or len(set(ports)) < len(ports)
    async with contextlib.AsyncExitStack() as stack:

        async def simulate(model: ModelSettings, pool: PoolSettings) -> PoolSettings:
            workers = []
            for worker in pool.workers:
                port = 0 if any_port else urlsplit(worker.url).port or 80
                process = _sim_worker(model, pool, worker, port)
                workers.append(replace(worker, url=await stack.enter_async_context(process)))
            return replace(pool, workers=tuple(workers))

        models = []
        for model in settings.models:
            pools = [await simulate(model, pool) for pool in model.pools]
            models.append(replace(model, pools=tuple(pools)))
        yield replace(settings, models=tuple(models))


@contextlib.asynccontextmanager
async def _sim_worker(
    model: ModelSettings, pool: PoolSettings, worker: WorkerSettings, port: int
) -> AsyncIterator[str]:
    """One simulated worker as a process of its own; gives its address."""
    arguments = ["sim-worker", "--port", str(port), "--model", model.upstream_name]
    speculation = _speculation(pool)
    arguments += ["--speculation", json.dumps(speculation) if speculation else "none"]
    if pool.max_num_seqs is not None:
        arguments += ["--max-num-seqs", str(pool.max_num_seqs)]
    if worker.key is not None:
        arguments += ["--api-key", worker.key]
    command = [sys.executable, "-m", "paceline", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, preexec_fn=_end_with_parent
    )
    try:
        yield await _address_of(process, f"the simulated worker of pool {pool.name}")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _end_with_parent() -> None:
    """In the child: SIGTERM when the demo dies, even by SIGKILL. Linux alone can say so."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def _address_of(process: asyncio.subprocess.Process, name: str) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await process.stdout.readline()).decode()
    except TimeoutError:
        raise ConfigurationError(f"{name} did not start within {START_S:g} s") from None
    if not line.startswith("listening on "):
        raise ConfigurationError(
            f"{name} did not start; what it said stands above"
            " (if its port is in use: --any-port takes free ones)"
        )
    return line.removeprefix("listening on ").strip()


def _vllm_specs(settings: Settings) -> list[vllm_cpu.WorkerSpec]:
    """A CPU worker for each of the configuration's, on the cores we have in turn."""
    cores = sorted(os.sched_getaffinity(0))
    workers = [
        (model, pool, worker)
        for model in settings.models
        for pool in model.pools
        for worker in pool.workers
    ]
    return [
        vllm_cpu.WorkerSpec(
            name=f"{pool.name}-{number}",
            port=urlsplit(worker.url).port or 80,
            core=cores[number % len(cores)],
            speculation=_speculation(pool),
            served_model_name=model.upstream_name,
        )
        for number, (model, pool, worker) in enumerate(workers)
    ]


def _speculation(pool: PoolSettings) -> dict[str, Any] | None:
    """The pool's speculation as vLLM is told it."""
    speculation = pool.speculation
    if speculation is None:
        return None
    tokens = {"num_speculative_tokens": speculation.num_speculative_tokens}
    return {"method": speculation.method, **tokens, **speculation.options}
