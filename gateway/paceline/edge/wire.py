"""Our side of HTTP: headers that pass and headers that do not, and request ids."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Mapping

from paceline.errors import MethodNotAllowed, PacelineError

Headers = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")

_HOP_BY_HOP = frozenset(
    [
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te",
        b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection",
    ]
)  # fmt: skip
_OURS = frozenset(
    [
        b"content-length", b"content-encoding", b"date", b"server", b"x-request-id",
        b"server-timing", b"set-cookie", b"vary",
    ]
)  # fmt: skip
"""Set anew by us, or true only between the worker and us."""
_CREDENTIALS = frozenset([b"authorization", b"x-api-key", b"www-authenticate"])
"""What a worker that echoes its request would give away."""
_DROPPED = _HOP_BY_HOP | _OURS | _CREDENTIALS
PASSED_UP = frozenset(
    [
        "traceparent", "tracestate", "x-session-id", "x-data-parallel-rank",
        "anthropic-version", "anthropic-beta",
    ]
)  # fmt: skip
"""The client's headers that a worker may see; credentials are not among them."""

_ids = random.Random(secrets.randbits(256))
"""Ids must differ, also between processes; nobody has to be unable to guess them."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")


def retry_after(error: PacelineError) -> Headers:
    if error.retry_after_s is None:
        return []
    return [(b"retry-after", b"%d" % error.retry_after_s)]


def allow(error: PacelineError) -> Headers:
    """The methods that would have been right, which RFC 9110 §15.5.6 wants said."""
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", ", ".join(error.allowed).encode())]
    return []


def passed_down(headers: Headers, named: Mapping[bytes, bytes]) -> Headers:
    """A worker's response headers without those of its connection to us, and without ours.
    `named` are the same by name."""
    dropped = _DROPPED
    if b"connection" in named:
        said = b",".join([value for name, value in headers if name == b"connection"])
        dropped = dropped | {option.strip().lower() for option in said.split(b",")}
    return [
        (name, value)
        for name, value in headers
        if name not in dropped and not name.startswith((b"x-paceline-", b"access-control-"))
    ]


def request_id(given: str | None) -> str:
    """The client's own id where it is harmless (1-128 of `[A-Za-z0-9._-]`), else a new one."""
    if given is not None and _REQUEST_ID.match(given):
        return given
    return f"{_ids.getrandbits(128):032x}"


def upstream_request_id(own: str) -> bytes:
    """With a suffix, so that two requests under one id never meet in a worker."""
    return f"{own[:100]}-{_ids.getrandbits(32):08x}".encode()
