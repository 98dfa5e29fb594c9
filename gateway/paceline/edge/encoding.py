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
        window = None if encoding in IDENTITY else _WINDOW[encoding or b""]
        self._stream = None if window is None else zlib.decompressobj(window)
        self._left = limit_bytes
        self._num_in = self._num_out = 0

    def feed(self, data: bytes) -> bytes:
        """Raises ValueError for what is not so encoded, TooLong past the limit."""
        if self._stream is None:
            plain = data
        elif self._stream.eof:
            raise ValueError("bytes behind its end")
        else:
            try:
                plain = self._stream.decompress(data, 0 if self._left is None else self._left + 1)
            except zlib.error as error:
                raise ValueError(str(error)) from error
            if self._stream.unused_data:
                raise ValueError("bytes behind its end")
            self._num_in += len(data)
            self._num_out += len(plain)
            if self._left is not None and self._num_out > FREE_BYTES + MAX_RATIO * self._num_in:
                raise TooLong
        if self._left is not None:
            self._left -= len(plain)
            if self._left < 0:
                raise TooLong
        return plain

    @property
    def complete(self) -> bool:
        """Whether the encoded stream came to its end."""
        return self._stream is None or self._stream.eof
