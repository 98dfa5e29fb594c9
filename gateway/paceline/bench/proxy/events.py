"""The events of the mock's streams, as vLLM 0.32 would write them.

Every event carries the time at which it was sent, as its text. Linux's monotonic clock is one for
all processes, so whoever receives the event can tell how long it was on its way. This is apart from
the rest of what the mock says because the client, which starts anew for every cell, needs no more.
"""

from __future__ import annotations

import json
import re
from typing import Any

UPSTREAM_MODEL = "bench-model"
NUM_EVENTS = 65
STAMP = re.compile(rb"@(\d{19})@")
"""A time of `time.monotonic_ns` in an event's text: always as wide, so that chunks are too."""
DONE = b"data: [DONE]\n\n"

CREATED = 1764400000
SPECULATION = {
    "mean_acceptance_length": 2.5,
    "draft_acceptance_rate": 0.3,
    "acceptance_histogram": [7, 6, 5, 4, 2, 2],
    "num_spec_steps": 26,
    "num_accepted_draft_tokens": 39,
    "num_draft_tokens": 130,
    "num_spec_tokens": 5,
}
USAGE = {"prompt_tokens": 120, "total_tokens": 185, "completion_tokens": 65}


class StreamEvents:
    """The chunks of one stream. Built once a stream: an event is then three pieces joined."""

    def __init__(self, number: int) -> None:
        self._open = (
            b'data: {"id":"chatcmpl-%016x","object":"chat.completion.chunk","created":%d,'
            b'"model":"%b","choices":['
        ) % (number, CREATED, UPSTREAM_MODEL.encode())
        role = b'{"index":0,"delta":{"role":"assistant","content":"@'
        text = b'{"index":0,"delta":{"content":"@'
        close = b'@"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
        stop = (
            b'@"},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]}\n\n'
        )
        self._first = self._around(role, close)
        self._middle = self._around(text, close)
        self._last = self._around(text, stop)

    def _around(self, before: bytes, after: bytes) -> tuple[bytes, bytes]:
        """What comes before and after the time in a chunk of chunked transfer encoding."""
        size = len(self._open) + len(before) + 19 + len(after)
        return b"%x\r\n" % size + self._open + before, after + b"\r\n"

    def chunk(self, index: int, now_ns: int) -> bytes:
        """Event `index` of `NUM_EVENTS`: the role, texts, the finish."""
        if index == 0:
            before, after = self._first
        elif index < NUM_EVENTS - 1:
            before, after = self._middle
        else:
            before, after = self._last
        return b"%b%019d%b" % (before, now_ns, after)

    def usage(self) -> bytes:
        metrics = as_json({"speculative_decoding": SPECULATION})
        event = b'%b],"usage":%b,"system_fingerprint":"vllm-0.32.0-mock","metrics":%b}\n\n'
        return chunked(event % (self._open, as_json(USAGE), metrics))


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def as_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
