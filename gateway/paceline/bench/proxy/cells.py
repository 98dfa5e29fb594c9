"""What is measured, and when a measurement counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from paceline.bench.proxy.events import NUM_EVENTS
from paceline.bench.proxy.load import Sample
from paceline.bench.proxy.mock import INTERVAL_S

MAX_HARNESS_SHARE = 0.70
"""Of a core, for mock and client each: above it they are what is measured."""
MAX_PROXY_SHARE = 0.50
"""Of a core: above it queueing is measured, and CPU gets cheaper by batching."""
MAX_WAITING_SHARE = 0.05
"""Of the requests of a window, that may wait for a connection at its end."""
USUAL_RATE = 250.0
"""Requests/s: about what a dozen GPUs answer, and more than most gateways ever see. At higher rates
a proxy's caches stay warm and everybody gets cheaper, compiled code more so than Python: that is
what the cells named busy show."""
STREAM_S = NUM_EVENTS * INTERVAL_S
DIRECT = "direct"
OURS = "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One kind of load. `--quick` measures the `main` ones; of `cpu_only` no latency is shown."""

    name: str
    connections: int  # of streams: as many as the rate needs, at least these
    body_bytes: int = 512
    stream: bool = False
    main: bool = False
    cpu_only: bool = False
    fixed_rate: float | None = None  # per second; else as much as the dearest proxy can bear

    @property
    def unit(self) -> str:
        return "event" if self.stream else "request"

    @property
    def kind(self) -> str:
        """Cells of a kind are offered at the same rate."""
        if self.stream:
            return "stream"
        usual = "" if self.fixed_rate is None else "-usual"
        return f"{self.body_bytes}{usual}"

    def connections_at(self, rate: float) -> int:
        """Streams overlap: twice as many as are expected to run at a time."""
        return max(self.connections, round(2 * rate * STREAM_S) + 4) if self.stream else (
            self.connections
        )  # fmt: skip


def _requests(
    connections: int,
    body_bytes: int,
    label: str,
    *,
    main: bool = False,
    fixed_rate: float | None = None,
) -> Cell:
    return Cell(
        name=f"request-{connections}-{label}",
        connections=connections,
        body_bytes=body_bytes,
        main=main,
        cpu_only=connections > 64,
        fixed_rate=fixed_rate,
    )


REQUEST_8 = _requests(8, 512, "0.5K", main=True, fixed_rate=USUAL_RATE)
REQUEST_64 = _requests(64, 512, "0.5K", main=True, fixed_rate=USUAL_RATE)
STREAM = Cell(name="stream", connections=8, stream=True, main=True)
CELLS = (
    REQUEST_8,
    REQUEST_64,
    STREAM,
    _requests(8, 512, "0.5K-busy", main=True),
    _requests(64, 512, "0.5K-busy"),
    _requests(8, 32 * 1024, "32K"),
    _requests(64, 32 * 1024, "32K"),
    _requests(8, 256 * 1024, "256K"),
    _requests(64, 256 * 1024, "256K"),
    _requests(512, 512, "0.5K-busy"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One cell of one target in one repeat."""

    cell: Cell
    target: str
    repeat: int
    rate: float
    sample: Sample

    @property
    def num_units(self) -> int:
        return self.sample.events if self.cell.stream else self.sample.completed

    @property
    def cpu_us(self) -> float | None:
        """The proxy's CPU time per request or event, in µs; None without a proxy or a unit."""
        if self.target == DIRECT or not self.num_units:
            return None
        return self.sample.proxy_cpu_s / self.num_units * 1e6

    @property
    def proxy_share(self) -> float:
        return self.sample.proxy_cpu_s / self.sample.window_s

    @property
    def mock_share(self) -> float:
        return self.sample.mock_cpu_s / self.sample.window_s

    @property
    def client_share(self) -> float:
        return self.sample.client_cpu_s / self.sample.window_s

    @property
    def other_cores(self) -> float:
        """Cores that the rest of the machine used meanwhile: other targets, other people's work."""
        seen = self.sample
        ours_s = seen.proxy_cpu_s + seen.mock_cpu_s + seen.client_cpu_s
        return max(0.0, seen.machine_cpu_s - ours_s) / seen.window_s

    @property
    def invalid(self) -> str | None:
        """Why this does not count, or None."""
        seen = self.sample
        if seen.failed:
            return f"{seen.failed} answers failed"
        if not self.num_units:
            return "nothing was answered"
        if self.mock_share > MAX_HARNESS_SHARE:
            return f"the mock used {self.mock_share:.0%} of a core"
        if self.client_share > MAX_HARNESS_SHARE:
            return f"the client used {self.client_share:.0%} of a core"
        if self.proxy_share > MAX_PROXY_SHARE:
            return f"the proxy used {self.proxy_share:.0%} of a core"
        if seen.waiting > max(self.cell.connections, MAX_WAITING_SHARE * seen.offered):
            return f"{seen.waiting} requests waited for a connection"
        return None

    def as_json(self) -> dict[str, Any]:
        derived = ("cpu_us", "proxy_share", "mock_share", "client_share", "other_cores", "invalid")
        return {
            "cell": self.cell.name,
            "target": self.target,
            "repeat": self.repeat,
            "rate": self.rate,
            **{name: getattr(self, name) for name in derived},
            **asdict(self.sample),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleMemory:
    """A target's resident memory with idle streams open: (streams, bytes), ascending."""

    target: str
    readings: tuple[tuple[int, int], ...]

    @property
    def kib_per_stream(self) -> float:
        """The slope between the first and the last count."""
        (fewest, before), *_, (most, after) = self.readings
        return (after - before) / (most - fewest) / 1024
