"""Who is calling: API keys, with default deny."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from paceline.errors import Unauthorized
from paceline.settings import ApiKey, Auth

ANONYMOUS = ApiKey(name="", sha256=b"", debug=True)
"""The caller of an open gateway, which has no keys; it may ask for explanations."""


class Authenticator:
    """Keys are found by their SHA-256, so nothing is compared that a caller could time. Those that
    were found are kept by a hash of the token that is seeded anew in every process (SipHash)."""

    def __init__(self, auth: Auth) -> None:
        self._by_digest = {key.sha256: key for key in auth.keys}
        self._key = lru_cache(maxsize=1024)(self._found)

    def caller(self, headers: Mapping[str, str]) -> ApiKey:
        """The key that a request carries. Raises Unauthorized."""
        if not self._by_digest:
            return ANONYMOUS
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            token = headers.get("x-api-key", "")  # how Anthropic's API has it
        token = token.strip()
        if not token:
            raise Unauthorized("no API key: send it as `Authorization: Bearer KEY`")
        return self._key(token)

    def _found(self, token: str) -> ApiKey:
        key = self._by_digest.get(ApiKey.digest(token.encode("latin-1")))
        if key is None:
            raise Unauthorized("this API key is not known here")
        return key
