"""Heads of the usual, plain form, read at once; all others are httptools' to read.

httptools calls back for every header, which costs several times as much as reading it. The compiled
twin, `native/heads.c`, reads a strict part of HTTP/1.1 in one call, in the same way, and says None
to all else, be it wrong or merely unusual: what is refused is decided by the parser alone. Where it
is not built, all heads are the parser's.
"""

from __future__ import annotations

from itertools import chain

from paceline.edge.wire import Headers

try:
    from paceline.native.heads import read_request as read_request
    from paceline.native.heads import read_response as read_response
except ImportError:

    def read_request(data: bytes) -> tuple[str, bytes, dict[str, str], int, int] | None:
        """Of a request whose head is all here, of HTTP/1.1, to be kept alive, with one Host and no
        name twice: its method, its target, its headers, where its head ends, and how many bytes its
        body has."""
        return None

    def read_response(data: bytes) -> tuple[int, Headers, bytes] | None:
        """Of a response that is all here, with nothing behind it, and to be kept alive: its status,
        its headers, names in lower case, and its body."""
        return None


def by_name(headers: Headers) -> dict[str, str]:
    """Decoded as latin-1, which loses nothing; of duplicates the last counts."""
    # All at once: no name and no value has a line break in it.
    flat = b"\n".join(chain.from_iterable(headers)).decode("latin-1").split("\n")
    return dict(zip(flat[::2], flat[1::2], strict=True)) if headers else {}
