"""Processes that never outlive the one that started them, whole groups of them.

Each command runs under a small guard, which is this file run as a program: it needs the standard
library alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

STOP_S = 3.0
KILL = signal.SIGUSR1
"""Sent to a guard, it kills its command at once, as a crash would; the rest is then tidied up."""


@contextlib.contextmanager
def spawned(
    command: Sequence[str], log: Path, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command under a guard, its output in `log`, and end it with the block."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, *command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        release(process)
        process.wait()


def release(process: subprocess.Popen[bytes]) -> None:
    """Tell a guard to end its command, without waiting for that."""
    if process.stdin is not None:
        process.stdin.close()


def _guard(command: Sequence[str]) -> int:
    """Run a command in a process group of its own and end the whole group when stdin closes.

    stdin is a pipe from the process that started us. It closes when that process lets go or dies,
    even by SIGKILL. PR_SET_PDEATHSIG would reach vLLM's server but not its engine, and would strike
    as soon as the *thread* that started the server ends. The scratch folder is here because vLLM
    leaves its sockets behind.
    """
    signal.signal(signal.SIGTERM, _exit_on_signal)
    with tempfile.TemporaryDirectory(prefix="paceline-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "TMPDIR": scratch}
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
        signal.signal(KILL, lambda *_: child.kill())
        try:
            select.select([sys.stdin, os.pidfd_open(child.pid)], [], [])
        finally:
            _end_group(child)
        return child.wait()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Ask the child's whole group to end; after STOP_S kill the child; after that, everything.

    In between, because vLLM's server waits for open streams and can't be hurried, and because the
    helper of `multiprocessing` that removes 400 MB of shared memory works when the rest has gone.
    """
    steps: tuple[Callable[[], None], ...] = (
        lambda: os.killpg(child.pid, signal.SIGTERM),
        lambda: child.kill(),
        lambda: os.killpg(child.pid, signal.SIGKILL),
    )
    with contextlib.suppress(ProcessLookupError):
        for step in steps:
            step()
            deadline_s = time.monotonic() + STOP_S
            while time.monotonic() < deadline_s:
                child.poll()
                os.killpg(child.pid, 0)  # raises when the group has gone
                time.sleep(0.05)


def _exit_on_signal(number: int, _frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(_guard(sys.argv[1:]))
