"""Prometheus text → what we read of a vLLM worker, by one table of metric names.

Lines that cannot be read are skipped and the rest kept; NaN, infinite, negative, absurd and missing
values are unknown, never zero. A data-parallel worker has one series per engine: counts are added
up, ratios averaged, and where one engine is unknown, so is the whole. Names: vLLM
`vllm/v1/metrics/loggers.py`, older names beside the present ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.core.types import WorkerLoad

RUNNING = ("vllm:num_requests_running",)
WAITING = ("vllm:num_requests_waiting",)
KV_CACHE_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
SPECULATION = "vllm:spec_decode_"
ACCEPTED_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"

MAX_VALUE = 1e6
"""No engine has more requests than this; what says so has miscounted."""
MAX_LINE_CHARS = 8192
"""A longer line is none of vLLM's."""

_LABELS = r'(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?'
_SAMPLE = re.compile(rf"([A-Za-z_:][\w:]*){_LABELS}[ \t]+(\S+)")
_LABEL = re.compile(r'(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


def samples(text: str, *, prefix: str = "vllm:") -> Iterator[Sample]:
    """The finite samples whose names begin with `prefix`; other lines are passed over."""
    return (sample for sample in _readable(text, prefix) if math.isfinite(sample.value))


def _readable(text: str, prefix: str) -> Iterator[Sample]:
    for line in text.split("\n"):
        if not line.startswith(prefix) or len(line) > MAX_LINE_CHARS:
            continue
        found = _SAMPLE.match(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        yield Sample(found[1], dict(_LABEL.findall(found[2] or "")), value)


def worker_load(text: str) -> WorkerLoad:
    """A worker's load, engines together.

    Read once a second from every worker, of some hundred lines of which six or so matter, so those
    are searched for.
    """
    return WorkerLoad(
        running=_total(_values(text, RUNNING)),
        waiting=_total(_values(text, WAITING)),
        kv_cache_usage=_mean(_values(text, KV_CACHE_USAGE)),
    )


def num_speculative_tokens(text: str) -> int | None:
    """The k that a worker speculates with: as many as it has draft positions; None if it does not.

    The family exists from start-up on exactly where speculation is configured.
    """
    positions = {
        sample.labels.get("position")
        for sample in samples(text, prefix=SPECULATION)
        if sample.name == ACCEPTED_PER_POSITION
    }
    return len(positions) or None


def relabelled(texts: Iterable[tuple[str, str]], *, label: str, prefix: str) -> str:
    """Samples of several workers as one exposition, each with `label` naming its worker.

    `texts` are (worker, its own exposition). Families come whole, as the format asks, with the type
    that the first worker gave them; lines that cannot be read are left out.
    """
    types: dict[str, str] = {}
    families: dict[str, list[str]] = {}
    for worker, text in texts:
        family = ""
        for line in text.split("\n"):
            if line.startswith(f"# TYPE {prefix}") and len(line) <= MAX_LINE_CHARS:
                family = line.split(" ")[2]
                types.setdefault(family, line)
            found = _SAMPLE.match(line) if line.startswith(prefix) else None
            if found is None or len(line) > MAX_LINE_CHARS:
                continue
            labels = ",".join(part for part in (found[2], f'{label}="{_escaped(worker)}"') if part)
            name = found[1]
            within = family if family and name.startswith(family) else name
            families.setdefault(within, []).append(f"{name}{{{labels}}} {found[3]}")
    lines: list[str] = []
    for name, members in families.items():
        lines += [types[name]] if name in types else []
        lines += members
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _values(text: str, names: Sequence[str]) -> list[float]:
    """The engines' values under the first name by which all that report are known."""
    for name in names:
        values = [sample.value for sample in _named(text, name)]
        if values and all(0.0 <= value <= MAX_VALUE for value in values):
            return values
    return []


def _named(text: str, name: str) -> Iterator[Sample]:
    """The readable samples of one name."""
    position = 0
    while position < len(text):
        if not text.startswith(name, position):
            position = text.find(f"\n{name}", position) + 1
            if position == 0:
                return
        end = text.find("\n", position)
        line = text[position:] if end < 0 else text[position:end]
        yield from (sample for sample in _readable(line, name) if sample.name == name)
        position += len(line) + 1


def _total(values: Sequence[float]) -> float | None:
    return sum(values) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
