"""What a bench leaves behind: `NAME.json` for programs, `NAME.txt` for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

WIDTH = 132
"""Columns of a page, on screen and in the file."""


def screen() -> Console:
    return Console(highlight=False, width=WIDTH)


def write_results(
    directory: Path, name: str, report: dict[str, Any], page: Callable[[Console], None]
) -> None:
    """Writes the report, whose `headline` maps figure names to numbers, and the page beside it."""
    directory.mkdir(exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    with (directory / f"{name}.txt").open("w") as file:
        page(Console(file=file, width=WIDTH))
