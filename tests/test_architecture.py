"""ARCHITECTURE.md is true: its code map names every module, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def modules() -> Iterator[str]:
    for source_root in ("gateway", "sdk/python"):
        for file in (ROOT / source_root).rglob("*.py"):
            parts = file.relative_to(ROOT / source_root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_code_map_names_every_module_once():
    mapped = re.findall(r"^\| `(paceline[\w.]*)` \|", TEXT, re.MULTILINE)
    assert sorted(mapped) == sorted(modules())


def test_it_names_every_file_of_the_typescript_sdk_once():
    mapped = re.findall(r"^\| `(sdk/js/[\w./-]*)` \|", TEXT, re.MULTILINE)
    files = (str(file.relative_to(ROOT)) for file in (ROOT / "sdk/js/src").rglob("*.ts*"))
    assert sorted(mapped) == sorted(files)


def test_it_says_where_a_request_is_decided():
    assert "Where a request is decided: `core/decide.py`" in TEXT
    assert (ROOT / "gateway/paceline/core/decide.py").exists()
