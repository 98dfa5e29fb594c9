"""Compressed bodies, made plain piece by piece and within a bound."""

from __future__ import annotations

import zlib

_WINDOW = {b"gzip": 16 + zlib.MAX_WBITS, b"x-gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
IDENTITY = (None, b"", b"identity")


class TooLong(Exception):
    """The plain text is longer than was allowed."""


class Inflater:
    """Bytes in, plain bytes out. Raises LookupError for an encoding it does not know."""

    def __init__(self, encoding: bytes | None, *, limit_bytes: int | None = None) -> None:
        encoding = encoding.strip().lower() if encoding else encoding
        window = None if encoding in IDENTITY else _WINDOW[encoding or b""]
        self._stream = None if window is None else zlib.decompressobj(window)
        self._left = limit_bytes

    def feed(self, data: bytes) -> bytes:
        """Raises ValueError for what is not so encoded, TooLong past the limit."""
        if self._stream is None:
            plain = data
        else:
            try:
                plain = self._stream.decompress(data, 0 if self._left is None else self._left + 1)
            except zlib.error as error:
                raise ValueError(str(error)) from error
        if self._left is not None:
            self._left -= len(plain)
            if self._left < 0:
                raise TooLong
        return plain

    @property
    def complete(self) -> bool:
        """Whether the encoded stream came to its end, and nothing stood behind it."""
        return self._stream is None or (self._stream.eof and not self._stream.unused_data)
