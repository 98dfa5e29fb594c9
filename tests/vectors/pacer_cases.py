"""Runs `pacer.json`, and writes its expectations anew: `python tests/vectors/pacer_cases.py`.

Writing anew is for a change of the rule, in which every difference is then reviewed.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

from paceline_client import Hint, Pacer, PacerOptions, Piece

FILE = Path(__file__).with_name("pacer.json")
VECTORS: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
CASES: dict[str, Any] = {case["name"]: case for case in VECTORS["cases"]}


def play(case: dict[str, Any]) -> list[list[Any]]:
    """[time, lane, text] of every text shown, [time, part] of every part."""
    pacer = Pacer(PacerOptions(**case["options"]))
    shown: list[tuple[float, Piece]] = []
    for step in case["steps"]:
        at_ms = step["at"]
        shown += pacer.take_timed(at_ms)
        if "push" in step:
            pacer.push(
                step["push"], at_ms,
                lane=step.get("lane", "text"),
                num_tokens=step.get("tokens"),
                token_texts=step.get("token_texts"),
                final=step.get("final", False),
            )  # fmt: skip
        elif "part" in step:
            pacer.part(step["part"], at_ms, closes=step.get("closes", ""))
        elif "hint" in step:
            hint = step["hint"]
            pacer.hint(Hint(num_tokens=hint.get("n"), next_ms=hint.get("next")))
        elif "flush" in step:
            shown += [(at_ms, piece) for piece in pacer.flush(at_ms)]
        elif "abort" in step:
            pacer.abort(at_ms)
        else:
            pacer.finish(at_ms)
    shown += pacer.take_timed(inf)
    return [_entry(at_ms, piece) for at_ms, piece in shown]


def _entry(at_ms: float, piece: Piece) -> list[Any]:
    if piece.lane:
        return [round(at_ms, 3), piece.lane, piece.text]
    return [round(at_ms, 3), piece.cargo]


def _written() -> str:
    """One step and one piece a line."""
    about = ",\n    ".join(json.dumps(line, ensure_ascii=False) for line in VECTORS["about"])
    cases = []
    for case in VECTORS["cases"]:
        parts = [f'"name": {json.dumps(case["name"], ensure_ascii=False)}']
        parts.append(f'"options": {json.dumps(case["options"])}')
        for key, entries in (("steps", case["steps"]), ("shown", play(case))):
            lines = ",\n        ".join(json.dumps(one, ensure_ascii=True) for one in entries)
            parts.append(f'"{key}": [\n        {lines}\n      ]' if lines else f'"{key}": []')
        cases.append("{\n      " + ",\n      ".join(parts) + "\n    }")
    body = ",\n    ".join(cases)
    return f'{{\n  "about": [\n    {about}\n  ],\n  "cases": [\n    {body}\n  ]\n}}\n'


if __name__ == "__main__":
    FILE.write_text(_written(), "utf-8")
