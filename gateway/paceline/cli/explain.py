"""`paceline explain BODY.json`: where a request would go, every term of its cost, and why.

Asks a running gateway, which knows its load and what it has learned; or, with `--config`, reckons
for an idle fleet that has learned nothing yet. Nothing is sent to a worker.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table
from rich.text import Text

from paceline.core.explain import explain_whole, how_sure
from paceline.core.types import Endpoint
from paceline.errors import ConfigurationError, NotFound, PacelineError
from paceline.settings import decision_when_idle, load

ADMIN = "http://127.0.0.1:8081"
_ROWS = (
    ("k, draft tokens a pass", "k", "{:d}", 1),
    ("tokens a pass", "tokens_per_pass", "{:.2f}", 1),
    ("running beside it", "running", "{:.0f}", 1),
    ("a pass, ms", "pass_s", "{:.2f}", 1000),
    ("  without it, ms", "pass_before_s", "{:.2f}", 1000),
    ("output expected, tokens", "output_tokens", "{:d}", 1),
    ("wait, s", "wait_s", "{:.3f}", 1),
    ("prefill, s", "prefill_s", "{:.3f}", 1),
    ("decode, s", "decode_s", "{:.3f}", 1),
    ("lost by others, s", "others_s", "{:.3f}", 1),
    ("preference", "preference", "x {:.1f}", 1),
    ("cost, s", "cost_s", "{:.3f}", 1),
    ("tokens/s expected", "expected_tokens_per_s", "{:.0f}", 1),
)
"""What is shown of each pool: its name for people, its key, its form, its unit in the key's."""


_NOT_THE_ADMIN_PLANE = f"; is it the data plane? The admin plane is at {ADMIN} by default"
_NO_KEY = "; say it with --admin-key, or in $PACELINE_ADMIN_KEY"
_OTHERS = ", ".join(endpoint for endpoint in Endpoint if endpoint is not Endpoint.CHAT_COMPLETIONS)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "explain", help="say where a request would go, and why", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("body", metavar="BODY.json", help="a request's body; - is standard input")
    parser.add_argument(
        "--endpoint", choices=[*map(str, Endpoint)], default=str(Endpoint.CHAT_COMPLETIONS),
        metavar="NAME", help=f"whose body it is, if not chat_completions: {_OTHERS}",
    )  # fmt: skip
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME: VALUE",
        help="a header of the request, such as 'x-paceline-workload: edit'",
    )  # fmt: skip
    parser.add_argument(
        "--key",
        metavar="NAME",
        help="the name of the API key that it comes with, for rules on keys",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--admin", default=ADMIN, metavar="URL", help=f"the gateway; {ADMIN}")
    source.add_argument("--config", type=Path, metavar="FILE", help="a configuration instead")
    parser.add_argument(
        "--admin-key", default=os.environ.get("PACELINE_ADMIN_KEY"), metavar="KEY",
        help="where the admin plane has one; $PACELINE_ADMIN_KEY",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the explanation; 1 if there is none, with the reason. Raises ConfigurationError."""
    body, headers = _read(args.body), dict(map(_header, args.header))
    endpoint = Endpoint(args.endpoint)
    try:
        if args.config is not None:
            settings = load(args.config, os.environ)
            decision = decision_when_idle(settings, endpoint, body, headers, key_name=args.key)
            said = explain_whole(decision)
        else:
            query = {"endpoint": endpoint.value, **({"key": args.key} if args.key else {})}
            said = _asked(args.admin, query, body, headers, args.admin_key)
    except (PacelineError, httpx.HTTPError) as error:
        if isinstance(error, ConfigurationError):
            raise
        print(f"paceline: {error}", file=sys.stderr)  # noqa: T201
        return 1
    if args.json:
        print(json.dumps(said, indent=2))  # noqa: T201
    else:
        show(said, Console(highlight=False))
    return 0


def show(said: Mapping[str, Any], console: Console) -> None:
    """An explanation, as `explain_whole` gives it, for people."""
    because = ", ".join(said["because"]) or "no evidence"
    console.print(
        Text(
            f"{said['workload']}, {how_sure(said['label_confidence'])} sure because of {because}; "
            f"copy ratio {said['copy_ratio']:.2f}"
        )
    )
    console.print(Text(said["why"], style="bold"))
    for pool, verdict in said["pools"].items():
        if verdict != "allowed":
            console.print(Text(f"not {pool}: {verdict}"))
    for rule, verdict in said["rules"].items():
        console.print(Text(f"rule {rule}: {verdict}"))
    if "terms" in said:
        console.print(_table(said))
        confidence = said.get("choice_confidence")
        if confidence is not None:
            console.print(Text(f"cheaper than the default pool in {confidence:.0%} of the cases"))
    if "if_adaptive" in said:
        console.print(Text("\nBy cost, which this mode does not ask:"))
        show(said["if_adaptive"], console)


def _table(said: Mapping[str, Any]) -> Table:
    """A column a pool, the chosen one marked."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for pool in said["terms"]:
        table.add_column(Text(f"→ {pool}" if pool == said["pool"] else pool), justify="right")
    for name, key, form, unit in _ROWS:
        cells = [form.format(terms[key] * unit) for terms in said["terms"].values()]
        table.add_row(name, *cells, style="bold" if key == "cost_s" else None)
    return table


def _read(path: str) -> dict[str, Any]:
    """Raises ConfigurationError."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        body = json.loads(text)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ConfigurationError(f"{path}: must be a JSON object, as the endpoint takes it")
    return body


def _header(written: str) -> tuple[str, str]:
    """Raises ConfigurationError."""
    name, colon, value = written.partition(":")
    if not colon or not name.strip():
        raise ConfigurationError(f"--header {written!r}: write it as 'name: value'")
    return name.strip().lower(), value.strip()


def _asked(
    admin: str,
    query: dict[str, str],
    body: dict[str, Any],
    headers: dict[str, str],
    admin_key: str | None,
) -> dict[str, Any]:
    """What a running gateway says. Raises PacelineError with its refusal, httpx.HTTPError."""
    if admin_key:
        headers = {**headers, "authorization": f"Bearer {admin_key}"}
    try:
        answer = httpx.post(
            f"{admin.rstrip('/')}/admin/explain",
            params=query, json=body, headers=headers, timeout=10.0,
        )  # fmt: skip
    except httpx.UnsupportedProtocol:
        raise PacelineError(f"--admin {admin}: must begin with http:// or https://") from None
    except httpx.ConnectError:
        raise PacelineError(
            f"no gateway answers at {admin}; start one, name its admin plane with --admin, or give "
            "its --config"
        ) from None
    if answer.status_code != 200:
        raise PacelineError(f"{admin} refused with {answer.status_code}: {_refusal(answer)}")
    said: dict[str, Any] = answer.json()
    return said


def _refusal(answer: httpx.Response) -> str:
    try:
        error = answer.json()["error"]
        elsewhere = answer.status_code == 404 and error["code"] == NotFound.code
        return f"{error['message']}{_NOT_THE_ADMIN_PLANE if elsewhere else ''}"
    except (ValueError, KeyError, TypeError):
        return f"{answer.text[:500]}{_NO_KEY if answer.status_code == 401 else ''}"
