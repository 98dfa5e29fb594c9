"""`paceline sim`: mistakes name what there is."""

from __future__ import annotations

import pytest

from paceline.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "nope: there is no such scenario; known: "),
        (["mixd"], 'there is no such scenario; did you mean "mixed"?'),
        (["mixed", "--policy", "foo"], 'unknown policy "foo"; known: '),
        (["mixed", "--rate", "-1"], "--rate: must be more than 0, not -1"),
        (["mixed", "--policy", "round-robbin"], 'did you mean "round robin"?'),
    ],
)
def test_an_unknown_name_names_the_right_ones(arguments: list[str], says: str, capsys) -> None:
    assert main(["sim", *arguments]) == 2

    assert says in " ".join(capsys.readouterr().out.split())
