"""README.md is true: the tests that it names exist, and no claim is without one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
REFERENCE = re.compile(r"(tests/[\w./-]+)::(\w+)")
REFERENCES = sorted(set(REFERENCE.findall(TEXT)))


def rows(section: str) -> Iterator[str]:
    """The rows of a section's table, without its head."""
    _, _, text = TEXT.partition(f"\n## {section}\n")
    assert text, section
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    yield from lines[2:]


def names_in(file: Path) -> set[str]:
    """Names of functions at the top of a module, as pytest would collect them."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, kinds)}


@pytest.mark.parametrize(("file", "name"), REFERENCES, ids=[name for _, name in REFERENCES])
def test_every_test_it_names_exists(file: str, name: str):
    assert name.startswith("test_")
    assert name in names_in(ROOT / file)


@pytest.mark.parametrize("section", ["Clients", "Fidelity"])
def test_every_claim_names_its_test(section: str):
    claims = list(rows(section))
    assert claims
    assert [claim for claim in claims if not REFERENCE.search(claim)] == []


def test_the_versions_are_those_that_are_installed():
    pins = dict(re.findall(r"^(\w+)==(\d+\.\d+)", (ROOT / "constraints.txt").read_text(), re.M))
    for name in ("openai", "anthropic"):
        assert f"| `{name}` {pins[name]}, Python |" in TEXT
    package = (ROOT / "tests/node/package.json").read_text()
    openai, anthropic = (
        re.findall(rf'"{name}": "(?:npm:openai@)?(\d+\.\d+)', package)
        for name in ("openai(?:-7)?", "@anthropic-ai/sdk")
    )
    assert f"| `openai` {' and '.join(openai)}, Node |" in TEXT
    assert f"| `@anthropic-ai/sdk` {anthropic[0]}, Node |" in TEXT
