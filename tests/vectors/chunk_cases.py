"""Runs `chunks.json`, and writes its expectations anew: `python tests/vectors/chunk_cases.py`.

Writing anew is for a change of the rule, in which every difference is then reviewed.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

from paceline_client import PacerOptions
from paceline_client.chunks import ChunkPacer

FILE = Path(__file__).with_name("chunks.json")
VECTORS: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
CASES: dict[str, Any] = {case["name"]: case for case in VECTORS["cases"]}


def play(case: dict[str, Any]) -> list[list[Any]]:
    """[time, chunk] of everything shown."""
    pacer = ChunkPacer(PacerOptions(**case["options"]))
    at_ms = 0.0
    for step in case["steps"]:
        at_ms = step["at"]
        pacer.push(step["chunk"], at_ms)
    pacer.finish(at_ms)
    return [[round(due_ms, 3), chunk] for due_ms, chunk in pacer.take_timed(inf)]


def _written() -> str:
    """One chunk a line."""
    about = ",\n    ".join(json.dumps(line, ensure_ascii=False) for line in VECTORS["about"])
    cases = []
    for case in VECTORS["cases"]:
        parts = [f'"name": {json.dumps(case["name"])}', f'"options": {json.dumps(case["options"])}']
        for key, entries in (("steps", case["steps"]), ("shown", play(case))):
            lines = ",\n        ".join(json.dumps(one) for one in entries)
            parts.append(f'"{key}": [\n        {lines}\n      ]')
        cases.append("{\n      " + ",\n      ".join(parts) + "\n    }")
    body = ",\n    ".join(cases)
    return f'{{\n  "about": [\n    {about}\n  ],\n  "cases": [\n    {body}\n  ]\n}}\n'


if __name__ == "__main__":
    FILE.write_text(_written(), "utf-8")
