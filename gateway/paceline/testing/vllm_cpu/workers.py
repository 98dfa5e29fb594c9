"""vLLM servers on CPU cores, up for the length of a `with` block."""

from __future__ import annotations

import contextlib
import ctypes.util
import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from paceline.testing.vllm_cpu.guarded import KILL, release, spawned
from paceline.testing.vllm_cpu.installation import Installation, VllmCpuError, prepare
from paceline.testing.vllm_cpu.progress import evidence, last_line, progress, say

NGRAM: Mapping[str, object] = {
    "method": "ngram",
    "num_speculative_tokens": 5,
    "prompt_lookup_min": 2,
    "prompt_lookup_max": 4,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """One vLLM server: its port on 127.0.0.1, its core, and how it speculates.

    `speculation` is vLLM's own `--speculative-config`; None is plain decoding. `extra_args` and
    `extra_env` come last and win.
    """

    name: str
    port: int
    core: int
    speculation: Mapping[str, object] | None = None
    served_model_name: str = "smollm2"
    max_model_len: int = 2048
    extra_args: tuple[str, ...] = ()
    extra_env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A started server. `process` is its guard (see `guarded`), not vLLM itself."""

    spec: WorkerSpec
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """Where it listens, without a trailing slash or `/v1`."""
        return f"http://127.0.0.1:{self.spec.port}"

    def kill(self) -> None:
        """Ends the server as a crash would: at once, its connections cut."""
        self.process.send_signal(KILL)


def two_pools(ngram_port: int, plain_port: int) -> tuple[WorkerSpec, WorkerSpec]:
    """The n-gram worker and the plain worker, on the first and the last core we may use."""
    cores = sorted(os.sched_getaffinity(0))
    return (
        WorkerSpec(name="ngram", port=ngram_port, core=cores[0], speculation=NGRAM),
        WorkerSpec(name="plain", port=plain_port, core=cores[-1]),
    )


@contextlib.contextmanager
def running(
    *specs: WorkerSpec,
    installation: Installation | None = None,
    deadline_s: float = 400.0,
    console: Console | None = None,
) -> Iterator[list[Worker]]:
    """Start a server for each spec, all at once, wait until all are healthy, stop all at the end.

    Start-up takes 40-60 s on two idle cores, 150 s on busy ones. Raises VllmCpuError, with the end
    of a log, when a port is taken, a server exits, or one is not healthy after `deadline_s`.
    """
    console = console or Console()
    installation = installation or prepare(console=console)
    with contextlib.ExitStack() as stack:
        workers = [_start(spec, installation, console, stack) for spec in specs]
        # Last in, first out: all guards are told to stop before the first one is waited for.
        for worker in workers:
            stack.callback(release, worker.process)
        _await_healthy(workers, deadline_s, console)
        yield workers


def command(spec: WorkerSpec, installation: Installation) -> list[str]:
    """The server's command line. vLLM's own console script fails under this package's name."""
    arguments = [str(installation.python), "-m", "vllm.entrypoints.openai.api_server"]
    arguments += ["--host", "127.0.0.1", "--port", str(spec.port)]
    arguments += ["--model", str(installation.model), "--served-model-name", spec.served_model_name]
    arguments += ["--dtype", "float32", "--enforce-eager"]
    arguments += ["--max-model-len", str(spec.max_model_len)]
    if spec.speculation is not None:
        arguments += ["--speculative-config", json.dumps(dict(spec.speculation))]
        # Only here: without speculation vLLM refuses to start with it.
        arguments += ["--per-request-spec-decode-metrics", "summary"]
    return [*arguments, *spec.extra_args]


def environment(spec: WorkerSpec, installation: Installation) -> dict[str, str]:
    """The server's environment: ours, offline, one thread on the worker's core.

    Intel's OpenMP and tcmalloc are preloaded where they exist: with them a five-position verify
    pass fell from 200-290 to 130-180 ms, and the gaps between passes became even. Dynamo is off
    because the first request for logprobs would wait 18 s for it, and need a C++ compiler.
    """
    iomp = installation.python.parents[1] / "lib" / "libiomp5.so"
    preload = [str(iomp)] if iomp.exists() else []
    if tcmalloc := ctypes.util.find_library("tcmalloc_minimal"):
        preload.append(tcmalloc)
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": str(installation.cache / "vllm-state"),
        "TORCHDYNAMO_DISABLE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": str(spec.core),
        "OMP_NUM_THREADS": "1",
        "LD_PRELOAD": ":".join(preload),
        **spec.extra_env,
    }


def _start(
    spec: WorkerSpec, installation: Installation, console: Console, stack: contextlib.ExitStack
) -> Worker:
    """Start a server that `stack` will stop. Raises VllmCpuError for a taken port or a core."""
    if spec.core not in os.sched_getaffinity(0):
        raise VllmCpuError(f"worker {spec.name}: core {spec.core} is not among ours")
    # Somebody else's server would answer our /health in the worker's place.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", spec.port))
        except OSError as error:
            raise VllmCpuError(f"worker {spec.name}: port {spec.port}: {error.strerror}") from error
    env = environment(spec, installation)
    if "tcmalloc" not in env["LD_PRELOAD"]:
        say(console, f"worker {spec.name}: no libtcmalloc_minimal here: slower, less even passes")
    log = installation.cache / "logs" / f"worker-{spec.name}.log"
    process = stack.enter_context(spawned(command(spec, installation), log, env))
    return Worker(spec=spec, process=process, log=log)


def _await_healthy(workers: Sequence[Worker], deadline_s: float, console: Console) -> None:
    started_s = time.monotonic()
    waiting = list(workers)
    with progress(console, "vLLM: " + ", ".join(w.spec.name for w in workers)) as beat:
        while waiting := [worker for worker in waiting if not _is_healthy(worker)]:
            for worker in waiting:
                if worker.process.poll() is not None:
                    raise VllmCpuError(f"worker {worker.spec.name} exited{evidence(worker.log)}")
            first = waiting[0]
            if time.monotonic() - started_s > deadline_s:
                problem = f"worker {first.spec.name} is not healthy after {deadline_s:.0f} s"
                raise VllmCpuError(problem + evidence(first.log))
            beat(last_line(first.log))
            time.sleep(0.5)


def _is_healthy(worker: Worker) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", worker.spec.port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
