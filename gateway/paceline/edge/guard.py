"""Who may use the admin plane: looked at before anything else, on every path.

A page that rebinds a name of its own to this address still sends that name, so hosts are allowed by
address, as localhost, or as the name that the configuration gives. An address in `Host` cannot have
come about that way. What is posted must be JSON and come from no other origin: forms, which any
page may send anywhere, cannot be that.
"""

from __future__ import annotations

import hmac
import ipaddress
import re

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from paceline.settings import Admin

READING = frozenset(["GET", "HEAD", "OPTIONS"])


class Guard:
    """Refuses requests for a host that is not ours, those without the key, and writes from pages of
    other origins."""

    def __init__(self, app: ASGIApp, settings: Admin) -> None:
        self._app = app
        self._names = {"localhost", settings.host.lower()}
        self._key = None if settings.key is None else settings.key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope.get("method", "GET"), dict(scope.get("headers", ())))
        if scope["type"] == "http" and refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, method: str, headers: dict[bytes, bytes]) -> Response | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = re.sub(r":\d+\Z", "", host).strip("[]")
        if name not in self._names and not _is_address(name):
            return PlainTextResponse("this Host is not served here", 400)
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        is_known = scheme.lower() == b"bearer" and hmac.compare_digest(given, self._key or b"")
        if self._key is not None and not is_known:
            how = "send the admin key as `Authorization: Bearer KEY`"
            return PlainTextResponse(f"this is not the admin key; {how}" if given else how, 401)
        if method in READING:
            return None
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host:
            return PlainTextResponse("pages of other origins may not write here", 403)
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            return PlainTextResponse("send `Content-Type: application/json`", 415)
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
