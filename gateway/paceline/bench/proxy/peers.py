"""Other proxies, each installed on demand into an environment of its own.

Versions are pinned, since figures are only comparable then. litellm 1.82.7 and 1.82.8 were
published by an attacker (BerriAI/litellm #24512) and must never be installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from paceline.testing.vllm_cpu.guarded import spawned
from paceline.testing.vllm_cpu.installation import PIP_SETTINGS, default_cache
from paceline.testing.vllm_cpu.progress import evidence, last_line, progress, say

STAMP = "complete"


@dataclass(frozen=True, slots=True)
class Peer:
    """`requirement` is what pip is asked for, `command` the program that it installs."""

    name: str
    version: str
    requirement: str
    command: str


PEERS = {
    peer.name: peer
    for peer in (
        Peer("vllm-router", "0.1.17", "vllm-router==0.1.17", "vllm-router"),
        Peer("smg", "1.13.0", "smg==1.13.0", "smg"),
        Peer("litellm", "1.91.1", "litellm[proxy]==1.91.1", "litellm"),
    )
}


class NotInstalled(RuntimeError):
    """The message says which step failed, and shows its end."""


def install(peer: Peer, console: Console, cache: Path | None = None) -> Path:
    """The peer's program, installed unless it has been. Raises NotInstalled."""
    home = (cache or default_cache() / "bench-peers").absolute() / f"{peer.name}-{peer.version}"
    program, stamp = home / "bin" / peer.command, home / STAMP
    with _locked(home.with_suffix(".lock")):
        if not (stamp.exists() and program.exists()):
            shutil.rmtree(home, ignore_errors=True)
            _step(console, home, f"{peer.name}: environment", [sys.executable, "-m", "venv", home])
            pip: list[str | Path] = [home / "bin" / "python", "-m", "pip", "install"]
            _step(console, home, f"{peer.name}: {peer.requirement}", [*pip, peer.requirement])
            if not program.exists():
                raise NotInstalled(f"{peer.requirement} has no program {peer.command}")
            stamp.touch()
    return program


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; the kernel lets go of it when that process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _step(console: Console, home: Path, title: str, command: Sequence[str | Path]) -> None:
    log = home.parent / f"{home.name}.log"
    env = {**os.environ, **PIP_SETTINGS}
    with progress(console, title) as beat, spawned([str(part) for part in command], log, env) as it:
        while it.poll() is None:
            beat(last_line(log))
            time.sleep(0.2)
        if it.returncode != 0:
            say(console, f"{title}: failed")
            raise NotInstalled(f"{title} failed{evidence(log)}")
