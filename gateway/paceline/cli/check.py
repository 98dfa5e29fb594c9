"""`paceline check FILE`: everything wrong with a configuration, or what it says and does.

Exits with 0 when all is well, 1 when the file has problems or a routing test fails, and 2 when the
file cannot be read.
"""

from __future__ import annotations

import argparse
import os

from rich.console import Console
from rich.text import Text

from paceline.cli.overview import show_settings
from paceline.errors import ConfigurationError
from paceline.settings import Settings, failed_tests, load


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "check",
        help="say everything that is wrong with a configuration file",
        description="Checks a configuration file and runs its routing tests.",
        epilog="Exit status: 0 all is well, 1 something is wrong, 2 the file cannot be read.",
    )
    parser.add_argument("file", metavar="FILE", help="the configuration, such as gateway.yaml")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the report; returns the exit status."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        settings = load(args.file, os.environ)
    except ConfigurationError as error:
        return _report_problems(error, args.file, console)
    show_settings(settings, console)
    return _report_tests(settings, args.file, console)


def _report_problems(error: ConfigurationError, file: str, console: Console) -> int:
    for problem in error.problems:
        console.print(Text(problem))
    if isinstance(error.__cause__, OSError):
        return 2
    console.print(Text(f"{file}: {_count(len(error.problems), 'problem')}", style="bold red"))
    return 1


def _report_tests(settings: Settings, file: str, console: Console) -> int:
    failures = failed_tests(settings, file=file)
    for failure in failures:
        console.print(Text(failure))
    counted = _summary(settings)
    if failures:
        verdict = f"{len(failures)} of {_count(len(settings.tests), 'routing test')} failed"
        console.print(Text(f"{file}: {counted}; {verdict}", style="bold red"))
        return 1
    verdict = _count(len(settings.tests), "routing test")
    console.print(Text(f"{file}: ok: {counted}; {verdict} passed", style="bold green"))
    return 0


def _summary(settings: Settings) -> str:
    pools = [pool for model in settings.models for pool in model.pools]
    counts = (
        _count(len(settings.models), "model"),
        _count(len(pools), "pool"),
        _count(sum(len(pool.workers) for pool in pools), "worker"),
        _count(len(settings.rules), "rule"),
    )
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
