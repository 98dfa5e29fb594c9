"""`paceline sim`: a table of policies, or what is wrong with what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.__main__ import main
from paceline.bench.scenarios import FOLDER

SHORT = (FOLDER / "mixed.yaml").read_text().replace("duration_s: 300", "duration_s: 10")


def test_each_policy_gets_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(SHORT)
    asked = ["--policy", "paceline", "--policy", "plain x8", "--rate", "8", "--seed", "1"]
    assert main(["sim", str(file), *asked]) == 0
    said = capsys.readouterr().out
    assert "mixed, 1 seed" in said
    rows = [line for line in said.splitlines() if "paceline" in line or "plain x8" in line]
    assert len(rows) == 2
    assert all(row.split()[0] == "8" and "100.0 %" in row for row in rows)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["mixed", "--policy", "pacelin"], 'did you mean "paceline"?'),
        (["mixed", "--rate", "-1"], "must be positive"),
        (["no-such-file"], "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *asked]) == 2
    assert said in capsys.readouterr().out
