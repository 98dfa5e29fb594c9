"""`paceline check FILE`: what it prints, and its exit status."""

import argparse
from pathlib import Path

import pytest

from paceline.cli import check

GOOD = """
models:
  - name: m
    aliases: [gpt]
    default_pool: plain
    pools:
      - {name: plain, workers: [{url: "http://a:1"}, {url: "http://a:2"}]}
      - name: ngram
        speculation: {method: ngram, num_speculative_tokens: 5}
        workers: [{url: "http://b:1"}]
routing:
  rules: [{when: {header: {x-tier: "[bold]"}}, then: {pool: ngram}}]
  tests:
    - {request: {}, headers: {x-tier: "[bold]"}, expect: {pool: ngram}}
"""


def run(file: Path) -> int:
    parser = argparse.ArgumentParser()
    check.add_parser(parser.add_subparsers())
    args = parser.parse_args(["check", str(file)])
    status: int = args.run(args)
    return status


def test_a_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(GOOD)

    assert run(file) == 0

    printed = capsys.readouterr().out
    assert "model m, gpt" in printed
    assert "plain (default)" in printed
    assert "ngram, k = 5" in printed
    assert "rule rule-1: header x-tier is [bold] → pool ngram\n" in printed
    assert printed.endswith(
        f"{file}: ok: 1 model, 2 pools, 3 workers, 1 rule; 1 routing test passed\n"
    )


def test_an_ipv6_worker_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(GOOD.replace("http://b:1", "http://[fd00::1]:8000"))

    assert run(file) == 0

    assert "http://[fd00::1]:8000" in capsys.readouterr().out


def test_every_problem_stands_on_a_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("models:\n  - nam: m\n    pools: 5\nlimits: {rpm: 5}\n")

    assert run(file) == 1

    assert capsys.readouterr().out.splitlines() == [
        f'{file}:2: models[0].nam: unknown key; did you mean "name"?',
        f"{file}:3: models[0].pools: must be a list such as "
        '[{name: plain, workers: [{url: "http://…"}]}], not 5',
        f"{file}:4: limits.rpm: not in this version; it can only be null",
        f"{file}: 3 problems",
    ]


def test_a_failing_routing_test_fails_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(GOOD + "    - {request: {}, expect: {pool: ngram}}\n")

    assert run(file) == 1

    *_, failure, summary = capsys.readouterr().out.splitlines()
    assert failure.startswith(f"{file}:15: expected pool ngram, got workload")
    assert summary.endswith("1 rule; 1 of 2 routing tests failed")


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none.yaml") == 2
    assert run(tmp_path) == 2

    none, folder = capsys.readouterr().out.splitlines()
    assert none == f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory"
    assert folder == f"{tmp_path}: cannot be read: Is a directory"


def test_variables_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text('auth: {keys: [{name: a, key: "${PACELINE_TEST_KEY}"}]}' + GOOD)

    assert run(file) == 1
    assert "the environment variable PACELINE_TEST_KEY is not set" in capsys.readouterr().out

    monkeypatch.setenv("PACELINE_TEST_KEY", "hush")
    assert run(file) == 0
    assert "hush" not in capsys.readouterr().out
