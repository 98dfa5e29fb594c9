"""Cross-origin requests: pages of the origins that the configuration names may call the gateway.

Origins are compared whole, as the Fetch standard writes them (scheme://host[:port]); there is no
wildcard, and no credentials mode, since keys come in a header that the page sets itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.edge.wire import Headers

MAX_AGE_S = 600
"""How long a browser may remember a preflight's answer."""
EXPOSED = (
    b"x-request-id, x-paceline-workload, x-paceline-pool, x-paceline-explain, server-timing, "
    b"retry-after"
)
_VARY: Headers = [(b"vary", b"origin")]


class Cors:
    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    def headers(self, request: Mapping[str, str]) -> Headers:
        """What a response says to a request with these headers; nothing where no origin may."""
        if not self._origins:
            return []
        origin = request.get("origin", "")
        if origin not in self._origins:
            return _VARY
        return [
            (b"access-control-allow-origin", origin.encode()),
            (b"access-control-expose-headers", EXPOSED),
            *_VARY,
        ]

    def preflight(self, request: Mapping[str, str], methods: bytes) -> Headers:
        """The same for OPTIONS: which methods and headers a request that follows may have."""
        allowed = self.headers(request)
        if len(allowed) <= 1 or "access-control-request-method" not in request:
            return allowed
        wanted = request.get("access-control-request-headers")
        headers: Headers = []
        if wanted is not None:
            headers.append((b"access-control-allow-headers", wanted.encode("latin-1")))
        return [
            *allowed,
            (b"access-control-allow-methods", methods),
            (b"access-control-max-age", b"%d" % MAX_AGE_S),
            *headers,
        ]
