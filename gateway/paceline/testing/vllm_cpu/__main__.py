"""`setup` builds the environment and the model; `workers` keeps two workers up until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from paceline.testing.vllm_cpu import (
    Installation,
    VllmCpuError,
    WorkerSpec,
    prepare,
    running,
    two_pools,
)
from paceline.testing.vllm_cpu.progress import evidence, say


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 1 with what went wrong on stderr."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    console = Console()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    try:
        installation = prepare(options.cache, console)
        say(console, f"environment: {installation.python.parents[1]}")
        say(console, f"model: {installation.model}")
        if options.command == "workers":
            _serve(two_pools(options.ngram_port, options.plain_port), installation, console)
    except VllmCpuError as error:
        say(Console(stderr=True), f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m paceline.testing.vllm_cpu")
    parser.add_argument("--cache", type=Path, help="folder to build in (default: $PACELINE_CACHE)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="build the environment and the model")
    workers = commands.add_parser("workers", help="run an n-gram and a plain worker until Ctrl-C")
    workers.add_argument("--ngram-port", type=int, default=8101)
    workers.add_argument("--plain-port", type=int, default=8102)
    return parser.parse_args(argv)


def _serve(specs: Sequence[WorkerSpec], installation: Installation, console: Console) -> None:
    with running(*specs, installation=installation, console=console) as workers:
        for worker in workers:
            say(console, f"{worker.spec.name}: {worker.url}/v1 (log: {worker.log})")
        say(console, "serving; Ctrl-C stops both")
        while all(worker.process.poll() is None for worker in workers):
            time.sleep(0.5)
        ended = [worker for worker in workers if worker.process.poll() is not None]
        names = ", ".join(worker.spec.name for worker in ended)
        raise VllmCpuError(f"worker {names} exited{evidence(ended[0].log)}")


if __name__ == "__main__":
    sys.exit(main())
