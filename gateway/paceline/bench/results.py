"""Where benches write: `NAME.json` for machines, with its headline, and a page for readers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path("bench-results")


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
