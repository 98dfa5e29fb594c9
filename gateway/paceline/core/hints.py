"""What the gateway tells of a stream's pace, in comments that other clients skip.

    : pace n=3 t=18233 next=44

stands before an event, in its block: `n` tokens in it, as the difference of continuous usage; `t`
milliseconds from the stream's first event to the reading of this one; `next` milliseconds to the
next, as a moving average of the gaps so far. What is not known is left out. `paceline_client.hints`
is the reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paceline.core.chunks import json_or_none
from paceline.core.fields import integer, mapping, sequence
from paceline.core.splices import value_end, without_member
from paceline.errors import InvalidRequest
from paceline_client.sse import event_data

GAP_WEIGHT = 1 / 4
"""Of the newest gap between two events, in the moving average of them."""

_BOM = b"\xef\xbb\xbf"
_DATA_LINE = re.compile(rb"(?:^|[\r\n])data: ?")
_USAGE = re.compile(rb',[ \t]*"usage"[ \t]*:[ \t]*')


class Hints:
    """One stream's hints. `hinted` is told every block of it, in order, and given the time."""

    def __init__(self, *, cut_usage: bool) -> None:
        """`cut_usage`: continuous usage was asked for by us and not by the client."""
        self._cut_usage = cut_usage
        self._first_s: float | None = None
        self._last_s = 0.0
        self._gap_s: float | None = None
        self._num_tokens: dict[int, int] = {}  # by choice, so far

    def hinted(self, block: bytes, now_s: float) -> bytes:
        """The block with its hint, and without the usage that the client did not ask for.

        Comments, and whatever else has no data, pass as they are. The chunk with usage and no
        choices keeps it: it goes as a whole, or stays.
        """
        data = event_data(block, first=self._first_s is None)
        if data is None:
            return block
        num_tokens = None
        if b'"usage"' in block:
            chunk = mapping(json_or_none(data))
            num_tokens = self._tokens_in(chunk)
            if self._cut_usage and "usage" in chunk and chunk.get("choices"):
                block = _without_usage(block)
        return _before(block, self._comment(num_tokens, now_s))

    def _comment(self, num_tokens: int | None, now_s: float) -> bytes:
        if self._first_s is None:
            self._first_s = now_s
        else:
            gap_s = now_s - self._last_s
            before_s = gap_s if self._gap_s is None else self._gap_s
            self._gap_s = before_s + (gap_s - before_s) * GAP_WEIGHT
        self._last_s = now_s
        words = [b": pace"]
        if num_tokens is not None:
            words.append(b"n=%d" % num_tokens)
        words.append(b"t=%d" % _ms(now_s - self._first_s))
        if self._gap_s is not None:
            words.append(b"next=%d" % _ms(self._gap_s))
        return b" ".join(words) + b"\n"

    def _tokens_in(self, chunk: Mapping[str, Any]) -> int | None:
        """Tokens since the last chunk of the same choice; vLLM counts each choice for itself."""
        choices = sequence(chunk.get("choices"))
        so_far = integer(mapping(chunk.get("usage")).get("completion_tokens"))
        if len(choices) != 1 or so_far is None:
            return None
        index = integer(mapping(choices[0]).get("index")) or 0
        num_tokens = so_far - self._num_tokens.get(index, 0)
        self._num_tokens[index] = so_far
        return num_tokens if num_tokens >= 0 else None


def _without_usage(block: bytes) -> bytes:
    """A chunk's block with its top-level `usage` cut out, and the comma that went with it.

    Where the name occurs once and no escape can spell it, that occurrence is the top level's, and
    no walk through the chunk is needed. A value over several lines, which no worker writes, stays.
    """
    if len(_DATA_LINE.findall(block)) != 1:
        return block
    try:
        if block.count(b'"usage"') == 1 and b"\\u00" not in block:
            found = _USAGE.search(block)
            if found:
                return block[: found.start()] + block[value_end(block, found.end()) :]
        return without_member(block, block.index(b"{"), "usage")
    except InvalidRequest:  # beyond the bounds of what is walked through
        return block


def _before(block: bytes, comment: bytes) -> bytes:
    if block.startswith(_BOM):
        return _BOM + comment + block.removeprefix(_BOM)
    return comment + block


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
