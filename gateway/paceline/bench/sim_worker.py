"""`make bench-sim-worker`: how punctual one simulated worker is with hundreds of streams.

A worker process at H100 pace, and as many streams at once from this process, which reads and counts
but does not parse. Lateness is the worker's own record: how long after a pass was due its tokens
were handed out. The two processes share the machine's cores with whatever else runs; the load
average says how much that was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop

from paceline.bench import process_tree, results

START_S = 30.0
STREAM_S = 120.0  # by then every stream must have ended
AIM_S = 0.020
SPECULATION = {
    "plain": None,
    "eagle3": {"method": "eagle3", "num_speculative_tokens": 3},
    "ngram": {
        "method": "ngram",
        "num_speculative_tokens": 5,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 4,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One method: seconds of lateness, and what was going on."""

    method: str
    streams: int
    passes: int
    p50_s: float
    p99_s: float
    max_s: float
    events_per_s: float
    worker_cores: float
    load_average: float


async def measure(method: str, streams: int, max_tokens: int) -> Result:
    """Run one worker and its streams to their end. Raises RuntimeError if a stream breaks off."""
    speculation = SPECULATION[method]
    arguments = ["--port", "0", "--hardware", "h100", "--max-num-seqs", "512", "--speculation"]
    arguments.append(json.dumps(speculation) if speculation else "none")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "paceline", "sim-worker", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        address = await _address(process)
        began_s, cpu_s = time.monotonic(), _cpu_s(process.pid)
        async with asyncio.timeout(STREAM_S):
            tasks = (_stream(address, i, max_tokens) for i in range(streams))
            events = sum(await asyncio.gather(*tasks))
        took_s, cpu_s = time.monotonic() - began_s, _cpu_s(process.pid) - cpu_s
        stats = await _stats(address)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    late = stats["lateness_s"]
    return Result(
        method=method,
        streams=streams,
        passes=stats["passes"],
        p50_s=late["p50"],
        p99_s=late["p99"],
        max_s=late["max"],
        events_per_s=events / took_s,
        worker_cores=cpu_s / took_s,
        load_average=os.getloadavg()[0],
    )


async def _address(process: asyncio.subprocess.Process) -> tuple[str, int]:
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        line = (await process.stdout.readline()).decode()
    if not line.startswith("listening on "):
        raise RuntimeError("the simulated worker did not start")
    url = urlsplit(line.split()[-1])
    return url.hostname or "127.0.0.1", url.port or 0


def _cpu_s(pid: int) -> float:
    return process_tree.cpu_s(process_tree.tree(pid))


async def _stream(address: tuple[str, int], number: int, max_tokens: int) -> int:
    """One streamed chat; how many events came."""
    body = {
        "messages": [{"role": "user", "content": f"Tell me about rivers, please. {number}"}],
        "max_tokens": max_tokens,
        "ignore_eos": True,
        "stream": True,
    }
    answer = await _exchange(address, "POST /v1/chat/completions", json.dumps(body).encode())
    if b"data: [DONE]" not in answer[-64:]:
        raise RuntimeError(f"stream {number} broke off: {answer[-200:]!r}")
    return answer.count(b"data: ")


async def _stats(address: tuple[str, int]) -> dict[str, Any]:
    answer = await _exchange(address, "GET /sim/stats", b"")
    stats = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert isinstance(stats, dict)
    return stats


async def _exchange(address: tuple[str, int], request: str, body: bytes) -> bytes:
    """The whole answer, headers and chunk sizes included: what is measured is the other side."""
    reader, writer = await asyncio.open_connection(*address)
    head = (
        f"{request} HTTP/1.1\r\nhost: {address[0]}\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    parts = []
    while data := await reader.read(65536):
        parts.append(data)
    writer.close()
    return b"".join(parts)


def table(results: list[Result]) -> str:
    lines = ["method   streams  passes  late p50   p99     max  events/s  worker cores  load"]
    lines += [
        f"{r.method:8} {r.streams:7} {r.passes:7} {r.p50_s * 1e3:6.1f} ms {r.p99_s * 1e3:4.1f} ms "
        f"{r.max_s * 1e3:4.0f} ms {r.events_per_s:8.0f} {r.worker_cores:12.2f} "
        f"{r.load_average:6.1f}"
        for r in results
    ]
    return "\n".join(lines)


def main() -> int:
    """Print the table and write bench-results/sim-worker.json; 0 whatever it says: the aim is
    reported, since the machine may be busy."""
    parser = argparse.ArgumentParser(description="lateness of passes of one simulated worker")
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--max-tokens", type=int, default=200)
    args = parser.parse_args()
    found = [uvloop.run(measure(method, args.streams, args.max_tokens)) for method in SPECULATION]
    headline = {f"lateness_p99_s_{result.method}": result.p99_s for result in found}
    rows = [asdict(result) for result in found]
    report = {"headline": headline, "aim_s": AIM_S, "rows": rows}
    results.write("sim-worker", report, table(found))
    met = all(result.p99_s < AIM_S for result in found)
    verdict = "met" if met else "missed"
    sys.stdout.write(f"{table(found)}\naim: p99 under {AIM_S * 1e3:.0f} ms: {verdict}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
