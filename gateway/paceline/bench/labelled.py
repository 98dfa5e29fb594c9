"""Labelled prompts: reading them, and which of them come from the same base data set."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.core.features import measure
from paceline.core.types import Endpoint, RequestFeatures, Workload
from paceline.core.views import view_of

REPOSITORY = Path(__file__).parents[3]
OWN = REPOSITORY / "tests" / "data" / "prompts.jsonl"
SHARED = Path(os.environ.get("PACELINE_SHARED", REPOSITORY.parent / "shared"))
GATHERED = SHARED / "data" / "prompts-dev.jsonl"
"""Prompts gathered from public data sets; not part of the repository."""

_JOINED = ("CommitPackFT", "CodeInstruct", "self-instruct")
"""Base data sets that several sources were made from: they are left out together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A request, the classes that count as right, and what is known of its copy ratio."""

    features: RequestFeatures
    acceptable: frozenset[Workload]
    source: str
    licence: str = ""
    copy_ratio: float | None = None  # measured on a reference answer, or the middle of a band

    @property
    def label(self) -> Workload | None:
        """The class, or None where more than one is right."""
        return next(iter(self.acceptable)) if len(self.acceptable) == 1 else None


def base_of(source: str) -> str:
    """The base data set of a source: what is left out as one fold."""
    return next((name for name in _JOINED if name in source), source)


def labelled(row: dict[str, Any], source: str | None = None) -> Labelled:
    endpoint = Endpoint(row.get("endpoint", Endpoint.CHAT_COMPLETIONS))
    return Labelled(
        features=measure(view_of(endpoint, row["request"])),
        acceptable=frozenset(map(Workload, row["acceptable"])),
        source=source or row["source"],
        licence=row.get("licence", ""),
        copy_ratio=sum(band) / 2 if (band := row.get("copy_band")) else row.get("copy_ratio"),
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file, gzipped or not."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def gathered(path: Path = GATHERED) -> list[Labelled]:
    """The gathered prompts, or none where they are not at hand."""
    return [labelled(row) for row in read_rows(path)] if path.exists() else []


def own(path: Path = OWN) -> list[Labelled]:
    """The project's own prompts, which nothing is trained on."""
    return [labelled(row, "own prompts") for row in read_rows(path)]


def bases(rows: Iterable[Labelled]) -> list[str]:
    """The base data sets, the largest first."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[base_of(row.source)] = counts.get(base_of(row.source), 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))
