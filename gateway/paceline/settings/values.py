"""The configuration as frozen values, after everything about it was found right.

Times are seconds, sizes bytes. Names were checked against one another when these were built: every
pool that a rule or a default names exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from paceline.core.rules import Rule
from paceline.core.types import Endpoint, Speculation, Workload
from paceline.errors import InvalidRequest
from paceline.settings.problems import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """`metrics` on the data plane as well; `cors_origins` are the pages that may call it."""

    host: str = "127.0.0.1"
    port: int = 8080
    metrics: bool = False
    cors_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    host: str = "127.0.0.1"
    port: int = 8081
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A caller's key, kept as its SHA-256 alone. `debug` allows `x-paceline-explain`."""

    name: str
    sha256: bytes = field(repr=False)
    debug: bool = False

    @staticmethod
    def digest(key: str | bytes) -> bytes:
        return hashlib.sha256(key.encode() if isinstance(key, str) else key).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """With no keys the gateway is open, which off loopback must be asked for (`open: true`)."""

    keys: tuple[ApiKey, ...] = ()
    open: bool = False

    def check_name(self, name: str | None) -> None:
        """Raises InvalidRequest for a name that no key has; None is a request without a key."""
        known = [key.name for key in self.keys]
        if name is not None and name not in known:
            hint = did_you_mean(name, known)
            raise InvalidRequest(f"there is no key named {name[:64]!r}{hint}", param="key")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    url: str  # scheme://host[:port], no path, no trailing slash
    key: str | None = field(default=None, repr=False)
    per_request_k: bool = False  # it drafts as many tokens as a request's `paceline_k` says


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    name: str
    speculation: Speculation | None
    workers: tuple[WorkerSettings, ...]
    max_num_seqs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    name: str
    aliases: tuple[str, ...]
    upstream_name: str
    default_pool: str
    pools: tuple[PoolSettings, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTest:
    """A request and where it must go; `paceline check` runs them through `core.decide`."""

    request: Mapping[str, Any]
    endpoint: Endpoint = Endpoint.CHAT_COMPLETIONS
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None  # an auth key's name
    expect_workload: Workload | None = None
    expect_pool: str | None = None
    line: int = 0  # in the file, for messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    body_bytes: int = 32 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """All in seconds.

    `connect_s` to a worker; `hold_status_s` at most before 200 is committed; `first_byte_s` to a
    worker's first byte of answer; `between_bytes_s` from one read to the next, of a worker's answer
    or a client's body, and for a client that reads nothing; `shutdown_s` for running streams to end
    after SIGTERM.
    """

    connect_s: float = 5.0
    hold_status_s: float = 10.0
    first_byte_s: float = 600.0
    between_bytes_s: float = 120.0
    shutdown_s: float = 30.0


class Mode(StrEnum):
    """Who decides where a request goes: the operator's rules alone, or expected cost after them."""

    STATIC = "static"
    ADAPTIVE = "adaptive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """`state` is the file that keeps what was learned; None forgets it at the end. With `replay` a
    process of its own looks at what some answers copied."""

    state: Path | None = None
    half_life_s: float = 1800.0
    exploration: float = 0.02
    replay: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """`decisions` is the file that gets a line for each decision; None writes none."""

    decisions: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`learning` is None where nothing is learned: in static mode, unless the file asks for it."""

    models: tuple[ModelSettings, ...]
    listen: Listen = Listen()
    admin: Admin = Admin()
    auth: Auth = Auth()
    mode: Mode = Mode.STATIC
    learning: Learning | None = None
    log: Log = Log()
    rules: tuple[Rule, ...] = ()
    tests: tuple[RoutingTest, ...] = ()
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
