"""`make bench-leaks`: what a gateway keeps of 10,000 aborted and 10,000 whole streams: nothing.

A gateway process before a worker in this process. Clients leave before the headers, before the
first event and mid stream, in turn, while whole streams go on beside them. The first tenth is not
counted: by then allocators and caches have what they need. Fails if the process has grown by more
than a tenth of its resident memory since, or if a counter of requests in flight is not zero.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import uvloop

from paceline.bench import results
from paceline.bench.process_tree import ProcessStat
from paceline.testing.aborted_streams import AbortedStreams

MAX_GROWTH = 0.10
START_S = 30.0
SETTLE_S = 5.0  # longer than idle connections to workers are kept
_IN_FLIGHT = re.compile(r"^paceline_in_flight\{[^}]*\} (\S+)$", re.MULTILINE)
_REQUESTS = re.compile(r'^paceline_requests_total\{code="(\d+)"[^}]*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What a gateway process holds."""

    rss_bytes: int
    num_descriptors: int
    in_flight: float
    requests_by_code: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    pid: int
    url: str
    admin_url: str


async def measure(num_aborted: int, num_whole: int, at_once: int) -> tuple[Footprint, Footprint]:
    """Before and after. Raises RuntimeError, TimeoutError if a stream does not do as it should."""
    streams = AbortedStreams()

    async def run(share: float) -> Footprint:
        await streams.many(
            gateway.url,
            num_aborted=round(num_aborted * share),
            num_whole=round(num_whole * share),
            at_once=at_once,
            model="up",
        )
        await asyncio.sleep(SETTLE_S)
        return await footprint(gateway)

    async with streams.worker.running() as worker, _gateway_process(worker.url) as gateway:
        return await run(0.1), await run(1.0)


@contextlib.asynccontextmanager
async def _gateway_process(worker: str) -> AsyncIterator[Gateway]:
    """`paceline serve` before one worker, on free ports. Raises RuntimeError if it won't start."""
    arguments = ["serve", "--worker", worker, "--port", "0", "--admin-port", "0"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "paceline", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield await _started(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def _started(process: asyncio.subprocess.Process) -> Gateway:
    assert process.stdout is not None
    said = ""
    async with asyncio.timeout(START_S):
        while "admin plane" not in said:
            line = await process.stdout.readline()
            if not line:
                raise RuntimeError("the gateway did not start")
            said += line.decode()
    data_plane, admin = re.findall(r"http://\S+?:\d+(?=/v1|/metrics)", said)[-2:]
    return Gateway(pid=process.pid, url=data_plane, admin_url=admin)


async def footprint(gateway: Gateway) -> Footprint:
    """Raises RuntimeError if the gateway has ended."""
    metrics = await _get(gateway.admin_url, "/metrics")
    stat = ProcessStat.read(gateway.pid)
    if stat is None:
        raise RuntimeError("the gateway has ended")
    by_code: dict[str, float] = {}
    for code, count in _REQUESTS.findall(metrics):
        by_code[code] = by_code.get(code, 0.0) + float(count)
    return Footprint(
        rss_bytes=stat.rss_bytes,
        num_descriptors=len(os.listdir(f"/proc/{gateway.pid}/fd")),
        in_flight=sum(map(float, _IN_FLIGHT.findall(metrics))),
        requests_by_code=by_code,
    )


async def _get(url: str, path: str) -> str:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


def page(before: Footprint, after: Footprint, took_s: float) -> str:
    lines = ["          RSS  descriptors  in flight  requests by code"]
    for name, seen in (("before", before), ("after", after)):
        codes = ", ".join(f"{code}: {n:.0f}" for code, n in sorted(seen.requests_by_code.items()))
        lines.append(
            f"{name:6} {seen.rss_bytes / 2**20:6.1f} MiB {seen.num_descriptors:8}"
            f" {seen.in_flight:10.0f}  {codes}"
        )
    growth = after.rss_bytes / before.rss_bytes - 1
    return "\n".join([*lines, f"grew by {growth:.1%} in {took_s:.0f} s; may: {MAX_GROWTH:.0%}"])


def main() -> int:
    """Print the table and write bench-results/leaks.json; 1 if the gateway kept something."""
    parser = argparse.ArgumentParser(description="what a gateway keeps of streams that are over")
    parser.add_argument("--aborted", type=int, default=10_000)
    parser.add_argument("--whole", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=50)
    args = parser.parse_args()
    began_s = time.monotonic()
    before, after = uvloop.run(measure(args.aborted, args.whole, args.at_once))
    growth = after.rss_bytes / before.rss_bytes - 1
    table = page(before, after, time.monotonic() - began_s)
    headline = {"rss_growth": growth, "in_flight_after": after.in_flight}
    report = {"headline": headline, "before": asdict(before), "after": asdict(after)}
    results.write("leaks", report, table)
    sys.stdout.write(f"{table}\n")
    return 0 if growth <= MAX_GROWTH and after.in_flight == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
