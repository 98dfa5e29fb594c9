"""What stands between client and mock: nothing, Paceline, or another proxy; started and ready."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rich.console import Console

from paceline.bench import process_tree
from paceline.bench.proxy.bodies import KEY, MODEL, chat_body
from paceline.bench.proxy.cells import OURS
from paceline.testing.vllm_cpu.guarded import spawned
from paceline.testing.vllm_cpu.progress import evidence, last_line, progress

START_S = 60.0
ANSWER_S = 5.0
MOCK_PORTS = 3


class BenchError(RuntimeError):
    """A process did not do its part; the message has the end of its log."""


class NotStarted(BenchError):
    """A proxy exited, or did not answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A proxy that answers. `pid` is None for none at all."""

    name: str
    port: int
    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mock:
    ports: tuple[int, ...]
    pid: int

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start a proxy on a port."""

    arguments: Sequence[str]
    port: int
    env: Mapping[str, str]


Launch = Callable[[Sequence[str], Path], Command]
"""From the workers' addresses, and a folder of its own, to a command."""


@contextlib.contextmanager
def running_mock(logs: Path) -> Iterator[Mock]:
    """The mock worker on three ports. Raises BenchError if it does not start."""
    log = logs / "mock.log"
    module = [sys.executable, "-m", "paceline.bench.proxy.mock", "--ports", str(MOCK_PORTS)]
    with spawned(module, log, os.environ) as guard:
        said = "listening on "
        _wait(lambda: last_line(log).startswith(said), guard, log, "the mock")
        ports = tuple(map(int, last_line(log).removeprefix(said).split()))
        yield Mock(ports=ports, pid=_child(guard))


@contextlib.contextmanager
def running(
    name: str, launch: Launch, mock: Mock, logs: Path, console: Console
) -> Iterator[Target]:
    """A proxy that has answered a chat, until the block's end. Raises BenchError."""
    folder, log = logs / name, logs / f"{name}.log"
    folder.mkdir(parents=True, exist_ok=True)
    command = launch(mock.urls, folder)
    with spawned(command.arguments, log, {**os.environ, **command.env}) as guard:
        with progress(console, f"{name}: start") as beat:

            def ready() -> bool:
                beat(last_line(log))
                return _answers(command.port)

            _wait(ready, guard, log, name)
        yield Target(name=name, port=command.port, pid=_child(guard))


def _child(guard: subprocess.Popen[bytes]) -> int:
    """The process under a guard, which itself is none of what is measured."""
    return process_tree.descendants(guard.pid)[0].pid


def _wait(ready: Callable[[], bool], guard: subprocess.Popen[bytes], log: Path, name: str) -> None:
    deadline_s = time.monotonic() + START_S
    while not ready():
        if guard.poll() is not None:
            raise NotStarted(f"{name} exited{evidence(log)}")
        if time.monotonic() > deadline_s:
            raise NotStarted(f"{name} is not ready after {START_S:.0f} s{evidence(log)}")
        time.sleep(0.2)


def _answers(port: int) -> bool:
    """Whether a chat through it gets its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    try:
        body = chat_body(512, 0, stream=False)
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        return answer.status == 200 and b"Cyclists" in answer.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


# --- how each is started --------------------------------------------------------------------------


def free_port() -> int:
    """A port that nobody listens on now; for programs that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def paceline(workers: Sequence[str], folder: Path) -> Command:
    """Ours, with everything on."""
    text = resources.files("paceline.bench.proxy").joinpath("gateway.yaml").read_text("utf-8")
    for number, url in enumerate(workers):
        text = text.replace(f"@{number}@", url)
    config, port = folder / "gateway.yaml", free_port()
    config.write_text(text, encoding="utf-8")
    serve = ["serve", "--config", str(config), "--port", str(port), "--admin-port", "0"]
    return Command(
        arguments=[sys.executable, "-m", "paceline", *serve], port=port, env={"BENCH_KEY": KEY}
    )


def rust_router(*start: str) -> Launch:
    """vllm-router, or smg, which descends from the same code. Neither logs requests."""

    def launch(workers: Sequence[str], folder: Path) -> Command:
        port = free_port()
        arguments = [*start, "--host", "127.0.0.1", "--port", str(port)]
        arguments += ["--policy", "round_robin", "--prometheus-port", str(free_port())]
        arguments += ["--max-concurrent-requests", "32768", "--worker-urls", *workers]
        return Command(arguments=arguments, port=port, env={})

    return launch


def litellm(program: Path) -> Launch:
    """One process, no database, its keep-alive as long as ours."""

    def launch(workers: Sequence[str], folder: Path) -> Command:
        models = [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": "hosted_vllm/bench-model",
                    "api_base": f"{url}/v1",
                    "api_key": "none",
                },
            }
            for url in workers
        ]
        # JSON is YAML too.
        config, port = folder / "litellm.yaml", free_port()
        config.write_text(json.dumps({"model_list": models}), encoding="utf-8")
        arguments = [str(program), "--config", str(config), "--host", "127.0.0.1"]
        arguments += ["--port", str(port), "--num_workers", "1", "--telemetry", "False"]
        arguments += ["--keepalive_timeout", "75"]
        env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        return Command(arguments=arguments, port=port, env=env)

    return launch


def launches(programs: Mapping[str, Path]) -> dict[str, Launch]:
    """Ours and the installed peers, by name."""
    found: dict[str, Launch] = {OURS: paceline}
    for name, program in programs.items():
        if name == "vllm-router":
            found[name] = rust_router(str(program), "--log-level", "warning")
        elif name == "smg":
            found[name] = rust_router(
                str(program), "launch", "--log-level", "warn", "--disable-tokenizer-autoload"
            )
        else:
            found[name] = litellm(program)
    return found
