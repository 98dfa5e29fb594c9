"""Compressed bodies, made plain piece by piece and within a bound."""

from __future__ import annotations

import zlib

_WINDOW = {b"gzip": 16 + zlib.MAX_WBITS, b"x-gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
MAX_RATIO = 100
"""Chats compress 4 to 10 times, one repeated line about 100 times; what inflates more is a bomb."""
FREE_BYTES = 2**20
IDENTITY = (None, b"", b"identity")


class TooLong(Exception):
    """The plain text is longer than was allowed."""


class Inflater:
    """Bytes in, plain bytes out. Raises LookupError for an encoding it does not know."""

    def __init__(self, encoding: bytes | None, *, limit_bytes: int | None = None) -> None:
        encoding = encoding.strip().lower() if encoding else encoding
        self._window = None if encoding in IDENTITY else _WINDOW[encoding or b""]
        self._stream = None if self._window is None else zlib.decompressobj(self._window)
        self._limit = limit_bytes
        self._num_in = self._num_out = 0

    def feed(self, data: bytes) -> bytes:
        """Raises ValueError for what is not so encoded, TooLong past the limit or the ratio."""
        self._num_in += len(data)
        plain = data if self._stream is None else self._inflated(data)
        self._num_out += len(plain)
        if self._limit is not None and self._num_out > self._limit:
            raise TooLong
        return plain

    @property
    def complete(self) -> bool:
        """Whether the encoded stream came to its end."""
        return self._stream is None or self._stream.eof

    def _inflated(self, data: bytes) -> bytes:
        """A gzip body may be several members, one behind the other (RFC 1952 §2.2)."""
        allowed = FREE_BYTES + MAX_RATIO * self._num_in - self._num_out
        if self._limit is not None:
            allowed = min(allowed, self._limit - self._num_out)
        plain = b""
        while data:
            if self._stream is None or self._stream.eof:
                self._stream = self._next_member()
            try:
                plain += self._stream.decompress(data, allowed - len(plain) + 1)
            except zlib.error as error:
                raise ValueError(str(error)) from error
            if len(plain) > allowed:
                raise TooLong
            data = self._stream.unused_data
        return plain

    def _next_member(self) -> zlib._Decompress:
        if self._window is None or self._window < zlib.MAX_WBITS + 1:
            raise ValueError("bytes behind its end")
        return zlib.decompressobj(self._window)
