"""Server-sent events, from bytes: bounded, linear, and the same at any split of the stream.

Two layers. `SseSplitter` cuts a stream into *blocks*, each a whole event with its blank line, whose
concatenation is the stream, byte for byte: what a relay needs. `SseParser` reads the blocks into
events: what a client needs. Lines end at CR, LF or CRLF and nowhere else: splitting decoded text by
`str.splitlines` would also cut at U+2028 and break valid JSON.

Source: WHATWG HTML, "Server-sent events", parsing and interpreting an event stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_EVENT_BYTES = 16 * 2**20
"""An event that grows past this is refused: memory per stream stays bounded."""

# Atomic groups: a CRLF must never be read as two line ends.
_BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_RETRY = re.compile(r"[0-9]{1,15}")  # more digits are no wait, nor a number in every language


class SseError(ValueError):
    """The stream cannot be read as server-sent events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One dispatched event. `event` is "message" where the stream names none."""

    data: str
    event: str = "message"
    id: str | None = None
    retry_ms: int | None = None


class SseSplitter:
    """Cuts a stream of bytes into whole events. `b"".join(blocks) + rest` is what was fed."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._max_event_bytes = max_event_bytes

    @property
    def rest(self) -> bytes:
        """The bytes of an event that has not ended yet."""
        return bytes(self._buffer)

    @property
    def is_empty(self) -> bool:
        """Whether the stream stands between two events."""
        return not self._buffer

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` completes, each with the blank line that ends it.

        An event is handed over at the first byte that can end it: after `LF CR`, an LF still to
        come belongs to the same line end, and then stands at the head of the next block, where it
        means nothing. Raises SseError if one event passes the bound.
        """
        buffer = self._buffer
        buffer += data
        blocks: list[bytes] = []
        start = 0
        search_from = self._searched
        while found := _BLANK_LINE.search(buffer, search_from):
            self._refuse_longer(found.end() - start)
            blocks.append(bytes(buffer[start : found.end()]))
            start = search_from = found.end()
        if start:
            del buffer[:start]
        self._refuse_longer(len(buffer))
        # A blank line is at most four bytes, three of which may be here already.
        self._searched = max(0, len(buffer) - 3)
        return blocks

    def _refuse_longer(self, num_bytes: int) -> None:
        if num_bytes > self._max_event_bytes:
            raise SseError(f"an event is longer than {self._max_event_bytes} bytes")


def event_data(block: bytes, *, first: bool = False) -> bytes | None:
    """The `data` of a block, its lines joined by LF; None for comments and events without data.

    `first` strips the byte-order mark that may open a stream.
    """
    if first:
        block = block.removeprefix(_BOM)
    lines = [value for name, value in _fields(block) if name == b"data"]
    return b"\n".join(lines) if lines else None


class SseParser:
    """Bytes in any pieces to events; the pieces do not matter.

    `on_comment` is told every comment, without its colon and one space, before the event in whose
    block it stands.
    """

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
        on_comment: Callable[[str], object] | None = None,
    ) -> None:
        self._splitter = SseSplitter(max_event_bytes=max_event_bytes)
        self._on_comment = on_comment
        self._first = True
        self._last_id: str | None = None

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Raises SseError if one passes the bound."""
        return list(self.events(data))

    def events(self, data: bytes) -> Iterator[SseEvent]:
        """The same one by one, so that comments are told between events; to be taken to its end."""
        for block in self._splitter.feed(data):
            if event := self._event(block):
                yield event

    @property
    def incomplete(self) -> bool:
        """Whether the stream, if it ended here, would end within an event."""
        rest = self._splitter.rest
        return bool((rest.removeprefix(_BOM) if self._first else rest).strip(b"\r\n"))

    def _event(self, block: bytes) -> SseEvent | None:
        if self._first:
            self._first = False
            block = block.removeprefix(_BOM)
        if self._on_comment is not None and b":" in block:
            for comment in _comments(block):
                self._on_comment(comment)
        data: list[str] = []
        kind = ""
        retry_ms: int | None = None
        for name, raw in _fields(block):
            value = raw.decode("utf-8", "replace")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value
            elif name == b"id" and "\0" not in value:
                self._last_id = value
            elif name == b"retry" and _RETRY.fullmatch(value):
                retry_ms = int(value)
        if not data:
            return None
        return SseEvent(
            data="\n".join(data), event=kind or "message", id=self._last_id, retry_ms=retry_ms
        )


def _fields(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Field names and values; comments (lines that begin with a colon) are left out."""
    for line in _LINE_END.split(block):
        if not line or line.startswith(b":"):
            continue
        name, _, value = line.partition(b":")
        yield name, value.removeprefix(b" ")


def _comments(block: bytes) -> Iterator[str]:
    for line in _LINE_END.split(block):
        if line.startswith(b":"):
            yield line[1:].removeprefix(b" ").decode("utf-8", "replace")
