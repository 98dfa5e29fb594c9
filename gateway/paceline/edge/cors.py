"""Cross-origin requests: pages of the origins that the configuration names may call the gateway.

Origins are compared whole, as the Fetch standard writes them (scheme://host[:port]); there is no
wildcard, and no credentials mode, since keys come in a header that the page sets itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.edge.wire import Headers, header

MAX_AGE_S = 600
"""How long a browser may remember a preflight's answer."""
EXPOSED = (
    b"x-request-id, x-paceline-workload, x-paceline-pool, x-paceline-explain, server-timing, "
    b"retry-after"
)
_VARY: Headers = [(b"vary", b"origin")]


class Cors:
    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, request: Headers) -> Headers:
        """What a response to `request` says; nothing where no origin may."""
        if not self._origins:
            return []
        origin = header(request, b"origin")
        if origin not in self._origins:
            return _VARY
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED),
            *_VARY,
        ]

    def preflight(self, request: Headers, methods: bytes) -> Headers:
        """The same for OPTIONS: which methods and headers a request that follows may have."""
        allowed = self.headers(request)
        if len(allowed) <= 1 or header(request, b"access-control-request-method") is None:
            return allowed
        wanted = header(request, b"access-control-request-headers")
        headers = [] if wanted is None else [(b"access-control-allow-headers", wanted)]
        return [
            *allowed,
            (b"access-control-allow-methods", methods),
            (b"access-control-max-age", b"%d" % MAX_AGE_S),
            *headers,
        ]
