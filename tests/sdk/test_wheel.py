"""The wheel, as users get it: built, installed into an empty environment, and put to use."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, importlib.util, json, pathlib, sys
import paceline_client
from paceline_client import smooth

async def stream():
    for text in ("Smooth ", "as the ", "wheel ", "turns."):
        yield text

async def main():
    async with smooth(stream()) as pieces:
        return "".join([piece async for piece in pieces])

print(json.dumps({
    "text": asyncio.run(main()),
    "from": str(pathlib.Path(paceline_client.__file__).is_relative_to(sys.prefix)),
    "typed": (pathlib.Path(paceline_client.__file__).parent / "py.typed").exists(),
    "server": importlib.util.find_spec("uvicorn") is not None,
}))
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_installs_and_works_in_an_empty_project(tmp_path: Path) -> None:
    wheels, empty = tmp_path / "wheels", tmp_path / "project"
    empty.mkdir()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, ROOT, cwd=tmp_path)
    (wheel,) = wheels.glob("paceline-*.whl")
    assert "paceline/bench/workloads/mixed.yaml" in zipfile.ZipFile(wheel).namelist()
    venv.create(empty / "env", with_pip=True)
    python = empty / "env" / "bin" / "python"
    run(python, *pip[1:], "install", wheel, cwd=empty)

    said = run(python, "-I", "-c", PROGRAM, cwd=empty)

    assert said.strip() == (
        '{"text": "Smooth as the wheel turns.", "from": "True", "typed": true, "server": false}'
    )
    refused = subprocess.run(
        [python, "-I", "-m", "paceline", "serve", "--worker", "http://127.0.0.1:1"],
        cwd=empty, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "pip install 'paceline[server]'" in refused.stderr
