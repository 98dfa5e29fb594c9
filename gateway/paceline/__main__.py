"""The `paceline` command: one module of `paceline.cli` a subcommand."""

from __future__ import annotations

import argparse
import sys

from paceline import __version__

_HINT = "this command needs the gateway's dependencies: pip install 'paceline[server]'"


def main(argv: list[str] | None = None) -> int:
    """Runs one command; the process's exit status comes back: 0, 1 for a failure, 2 for misuse."""
    argv = sys.argv[1:] if argv is None else argv
    if argv == ["--version"]:
        print(f"paceline {__version__}")  # noqa: T201
        return 0
    try:
        from paceline.cli import chat, check, demo, explain, serve, sim, sim_worker
        from paceline.errors import ConfigurationError
    except ModuleNotFoundError as error:
        print(f"paceline: {error.name} is not installed; {_HINT}", file=sys.stderr)  # noqa: T201
        return 2
    parser = argparse.ArgumentParser(prog="paceline", description="A gateway for vLLM workers.")
    parser.add_argument("--version", action="version", version=f"paceline {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (serve, check, explain, demo, chat, sim, sim_worker):
        command.add_parser(subparsers)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"paceline: {problem}", file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
