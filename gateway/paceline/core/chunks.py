"""What the events of a worker's stream say, as far as a relay must know: pure, bytes in, bytes out.

Most events are text on its way and are told by a look at their bytes; the few that end something
are read as JSON: the chunk in which a choice says why it ended, the chunk with usage, the end mark,
and an error in place of the first event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any

import orjson

from paceline_client.sse import event_data

DONE = b"[DONE]"
BAD_GATEWAY = 502

SHORT_BYTES = 4096
"""An event beyond this is read in full: the pattern below goes over it more than once."""
_GOES_ON = re.compile(rb'data: \{[^\n]*"choices":\[\{[^\n]*"finish_reason":null[^\n]*\n\n')
_NO_CHOICES = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"[^"]')


def error_status(data: bytes | None) -> int | None:
    """The HTTP status that an event stands for which is an error and nothing else; else None.

    vLLM puts it into `error.code`; its older versions and some others write `object: error` with
    the code beside it. An error without a status of its own is a bad gateway's.
    """
    if data is None or b'"error"' not in data:
        return None
    event = json_or_none(data)
    if not isinstance(event, dict) or "choices" in event:
        return None
    error = event if event.get("object") == "error" else event.get("error")
    if not isinstance(error, dict | str):
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code <= 599 else BAD_GATEWAY


class Kind(Enum):
    """What a block of a stream is to us."""

    OTHER = "other"
    FINISH = "finish"  # a chunk with a finish reason
    USAGE = "usage"  # the chunk without choices that carries usage
    DONE = "done"  # the stream's end mark


def read_block(block: bytes) -> tuple[Kind, dict[str, Any]]:
    """A block's kind, and the chunk where it was read. Cheap for the many that are of no other.

    The patterns look for unescaped quotes, so text that looks like one of these is not.
    """
    several = block.count(b"data:") > 1  # a value over several lines is looked at joined
    looked_at = (event_data(block) or b"") if several else block
    if not (_NO_CHOICES.search(looked_at) or _FINISH.search(looked_at) or DONE in looked_at):
        return Kind.OTHER, {}
    data = event_data(block) or b""
    if data.strip() == DONE:
        return Kind.DONE, {}
    chunk = json_or_none(data)
    if isinstance(chunk, dict) and chunk.get("choices") == [] and chunk.get("usage"):
        return Kind.USAGE, chunk
    if isinstance(chunk, dict) and finished_choices(chunk):
        return Kind.FINISH, chunk
    return Kind.OTHER, {}


def ends_nothing(data: bytes) -> bool:
    """Whether `data` is one whole event of kind OTHER.

    The look that nearly every read gets, so it is careful rather than exact: yes is for an event of
    one line, as vLLM writes it, with one choice that goes on; for anything else it says no, though
    it might be yes.
    """
    return (
        len(data) <= SHORT_BYTES
        and _GOES_ON.fullmatch(data) is not None
        and data.count(b'"finish_reason"') == 1
        and b"\r" not in data
    )


def finished_choices(chunk: dict[str, Any]) -> list[int]:
    """The indices of a chunk's choices that say why they ended; "" is some servers' not yet."""
    choices = chunk.get("choices")
    return [
        choice["index"] if isinstance(choice.get("index"), int) else 0
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and choice.get("finish_reason")
    ]


class UsageRemover:
    """Takes out the usage chunk that a client did not ask for, and what comes with it.

    With usage in a stream, vLLM writes `system_fingerprint` into the usage chunk instead of the
    last chunk with a choice. So that chunk waits for what follows it (vLLM sends both at once), and
    gets the fingerprint back at the place where vLLM would have written it.
    """

    def __init__(self) -> None:
        self._held = b""

    @property
    def holding(self) -> bool:
        return bool(self._held)

    def finishing(self, block: bytes) -> bytes:
        released, self._held = self._held, block
        return released

    def release(self) -> bytes:
        released, self._held = self._held, b""
        return released

    def usage(self, chunk: dict[str, Any]) -> bytes:
        block = self.release()
        fingerprint = chunk.get("system_fingerprint")
        end = block.rfind(b"}", 0, len(block.rstrip()))
        if fingerprint is None or end < 0 or b'"system_fingerprint"' in block:
            return block
        member = b',"system_fingerprint":' + orjson.dumps(fingerprint)
        return block[:end] + member + block[end:]


def first_data(blocks: Iterable[bytes]) -> bytes | None:
    """The data of the first event; comments are not events."""
    found = (event_data(block, first=True) for block in blocks)
    return next((data for data in found if data is not None), None)


def json_or_none(data: bytes | None) -> Any:
    """The value, or None for what is not JSON."""
    try:
        return orjson.loads(data or b"")
    except orjson.JSONDecodeError:
        return None
