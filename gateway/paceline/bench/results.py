"""What a bench leaves behind: `NAME.json` for programs, with a headline, and a page for people."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

RESULTS = Path("bench-results")
WIDTH = 132
"""Columns of a page, on screen and in the file."""


def screen() -> Console:
    return Console(highlight=False, width=WIDTH)


def write_results(
    directory: Path, name: str, report: Mapping[str, Any], page: Callable[[Console], None]
) -> None:
    """The same as `write`, of a page that is drawn on a console."""
    drawn = io.StringIO()
    page(Console(file=drawn, width=WIDTH))
    write(name, report, drawn.getvalue(), folder=directory)


def write(
    name: str, report: Mapping[str, Any], page: str, *, folder: Path = RESULTS, suffix: str = "txt"
) -> None:
    """Write both into `folder`, which is made if need be.

    Raises ValueError if the report has no `headline`, which every bench must have.
    """
    if "headline" not in report:
        raise ValueError(f"{name}: a report needs a headline")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{name}.{suffix}").write_text(page.rstrip("\n") + "\n", encoding="utf-8")
