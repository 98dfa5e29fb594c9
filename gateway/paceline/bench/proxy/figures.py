"""Measurements → ratios and differences, always within one repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from paceline.bench.proxy.cells import (
    DIRECT,
    OURS,
    REQUEST_8,
    REQUEST_64,
    STREAM,
    Cell,
    IdleMemory,
    Measurement,
)
from paceline.bench.proxy.quantiles import Spread

Quantity = Callable[[Measurement], float | None]


class Results:
    """All measurements of a run. What is not valid is kept, and left out of every figure."""

    def __init__(self, measurements: Sequence[Measurement], memory: Sequence[IdleMemory]) -> None:
        self.measurements = tuple(measurements)
        self.memory = {one.target: one for one in memory}
        self._valid = {
            (one.cell.name, one.target, one.repeat): one
            for one in measurements
            if one.invalid is None
        }

    def spread(self, quantity: Quantity, cell: Cell, target: str) -> Spread | None:
        """Of a quantity over the valid repeats."""
        found = (
            quantity(one)
            for (name, of, _), one in self._valid.items()
            if (name, of) == (cell.name, target)
        )
        return Spread.of([value for value in found if value is not None])

    def ratio(self, quantity: Quantity, cell: Cell, above: str, below: str) -> Spread | None:
        """Of two targets' quantities in the same repeat."""
        pairs = self._pairs(quantity, cell, above, below)
        return Spread.of([one / other for one, other in pairs if other > 0])

    def added(self, quantity: Quantity, cell: Cell, target: str) -> Spread | None:
        """What a target's quantity has more than the direct one's in the same repeat."""
        pairs = self._pairs(quantity, cell, target, DIRECT)
        return Spread.of([one - other for one, other in pairs])

    def _pairs(
        self, quantity: Quantity, cell: Cell, one: str, other: str
    ) -> Iterator[tuple[float, float]]:
        for name, target, repeat in self._valid:
            if (name, target) != (cell.name, one):
                continue
            pair = self._valid.get((name, other, repeat))
            if pair is None:
                continue
            values = quantity(self._valid[name, target, repeat]), quantity(pair)
            if values[0] is not None and values[1] is not None:
                yield values[0], values[1]


def cpu_us(measured: Measurement) -> float | None:
    return measured.cpu_us


def milliseconds(name: str) -> Quantity:
    """A time of the sample, in ms."""

    def quantity(measured: Measurement) -> float | None:
        value_s: float | None = getattr(measured.sample, name)
        return None if value_s is None else value_s * 1e3

    return quantity


def headline(results: Results) -> dict[str, float | None]:
    """The figures that are kept from run to run; None where a peer or a valid pair is missing."""
    ttft = milliseconds("ttft_p50_s")
    memory = results.memory.get(OURS)
    return {
        "cpu_request_ratio_8": _median(results.ratio(cpu_us, REQUEST_8, OURS, "vllm-router")),
        "cpu_request_ratio_64": _median(results.ratio(cpu_us, REQUEST_64, OURS, "vllm-router")),
        "cpu_event_ratio": _median(results.ratio(cpu_us, STREAM, OURS, "vllm-router")),
        "litellm_cpu_request_ratio_64": _median(
            results.ratio(cpu_us, REQUEST_64, "litellm", OURS)
        ),
        "added_ttft_p50_ms": _median(results.added(ttft, STREAM, OURS)),
        "kib_per_idle_stream": round(memory.kib_per_stream, 1) if memory else None,
    }  # fmt: skip


def _median(spread: Spread | None) -> float | None:
    return None if spread is None else round(spread.median, 3)
