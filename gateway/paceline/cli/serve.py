"""`paceline serve`: the gateway, from a file or from its workers' addresses alone."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path

import uvloop
from rich.console import Console

from paceline.cli.overview import show_settings
from paceline.core.compiled import IS_COMPILED
from paceline.edge.scrape import discover
from paceline.edge.server import Addresses, serve
from paceline.errors import ConfigurationError
from paceline.settings import (
    Settings,
    discovered_settings,
    failed_tests,
    load,
    worker_address,
)

log = logging.getLogger(__name__)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "serve", help="run the gateway", description=__doc__,
    )  # fmt: skip
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", type=Path, metavar="FILE", help="the configuration (YAML)")
    source.add_argument(
        "--worker", action="append", metavar="URL",
        help="a worker's address; may be given more than once, in place of a configuration",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=port_number, help="the data plane's port, instead of listen.port"
    )
    parser.add_argument("--admin-port", type=port_number, help="instead of admin.port")
    parser.set_defaults(run=run)


def port_number(text: str) -> int:
    """Raises ArgumentTypeError; 0 is any free port."""
    if not (text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """0 after a graceful end; raises ConfigurationError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it would say all twice, for two planes
    if not IS_COMPILED:
        log.warning(
            "the compiled parts were not built (is there a C compiler?): requests cost more"
        )
    uvloop.run(_serve(args))
    return 0


async def _serve(args: argparse.Namespace) -> None:
    if args.config is not None:
        settings = load(args.config, os.environ)
        for failure in failed_tests(settings, file=str(args.config)):
            log.warning("a routing test fails: %s", failure)
    else:
        settings = await settings_from_workers(args.worker)
    settings = with_ports(settings, args.port, args.admin_port)
    await serve(settings, lambda addresses: announce(settings, addresses))


def with_ports(settings: Settings, port: int | None, admin_port: int | None) -> Settings:
    """The settings with the ports given, where they are given; 0 lets the system choose.

    Raises ConfigurationError if both planes then have one port.
    """
    if port is not None:
        settings = replace(settings, listen=replace(settings.listen, port=port))
    if admin_port is not None:
        settings = replace(settings, admin=replace(settings.admin, port=admin_port))
    if settings.listen.port == settings.admin.port != 0:
        taken = settings.listen.port
        raise ConfigurationError(f"{taken} is the port of both planes; see --port and --admin-port")
    return settings


async def settings_from_workers(urls: list[str]) -> Settings:
    """Asks every worker what it serves. Raises ConfigurationError naming all that would not say."""
    addresses = [worker_address(url) for url in urls]
    found = await asyncio.gather(*map(discover, addresses), return_exceptions=True)
    problems = [error.message for error in found if isinstance(error, ConfigurationError)]
    if problems:
        raise ConfigurationError("some workers did not answer", problems=tuple(problems))
    return discovered_settings(
        [worker for worker in found if not isinstance(worker, BaseException)]
    )


def announce(settings: Settings, addresses: Addresses) -> None:
    """Prints what is served, and where."""
    console = Console(highlight=False)
    show_settings(settings, console)
    for line in (
        f"\nOpenAI API   {addresses.data_plane}/v1",
        f"admin plane  {addresses.admin}/metrics",
    ):
        console.print(line, soft_wrap=True, markup=False)
