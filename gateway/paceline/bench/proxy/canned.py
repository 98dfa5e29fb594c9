"""What the mock worker says, as vLLM 0.32 would write it, and when it said it.

Every event carries the time at which it was sent, as its text. Linux's monotonic clock is one for
all processes, so whoever receives the event can tell how long it was on its way.
"""

from __future__ import annotations

import json
import re
from email.utils import formatdate
from typing import Any

from paceline.bench.proxy.bodies import MODEL
from paceline.core.types import Speculation
from paceline.testing.sim_worker.engines import Engines
from paceline.testing.sim_worker.info import model_list
from paceline.testing.sim_worker.options import SimWorkerOptions

UPSTREAM_MODEL = "bench-model"
NUM_EVENTS = 65
STAMP = re.compile(rb"@(\d{19})@")
"""A time of `time.monotonic_ns` in an event's text: always as wide, so that chunks are too."""
DONE = b"data: [DONE]\n\n"

_CREATED = 1764400000
_SPECULATION = {
    "mean_acceptance_length": 2.5,
    "draft_acceptance_rate": 0.3,
    "acceptance_histogram": [7, 6, 5, 4, 2, 2],
    "num_spec_steps": 26,
    "num_accepted_draft_tokens": 39,
    "num_draft_tokens": 130,
    "num_spec_tokens": 5,
}
_USAGE = {"prompt_tokens": 120, "total_tokens": 185, "completion_tokens": 65}


def response(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> bytes:
    """A whole answer with uvicorn's headers."""
    head = (
        f"HTTP/1.1 {status}\r\ndate: {formatdate(usegmt=True)}\r\nserver: uvicorn\r\n"
        f"content-length: {len(body)}\r\ncontent-type: {content_type}\r\n\r\n"
    )
    return head.encode() + body


def stream_head() -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\ndate: {formatdate(usegmt=True)}\r\nserver: uvicorn\r\n"
        "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
    ).encode()


def completion() -> bytes:
    """A chat completion that was not streamed."""
    return _json(
        {
            "id": "chatcmpl-95305b9488ff408e",
            "object": "chat.completion",
            "created": _CREATED,
            "model": UPSTREAM_MODEL,
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "Cyclists ride close behind one another to save effort.",
                        "reasoning": None,
                    },
                    "logprobs": None,
                    "finish_reason": "stop",
                    "stop_reason": None,
                }
            ],
            "usage": _USAGE,
            "metrics": {"speculative_decoding": _SPECULATION},
        }
    )


class StreamEvents:
    """The chunks of one stream. Built once a stream: an event is then three pieces joined."""

    def __init__(self, number: int) -> None:
        self._open = (
            b'data: {"id":"chatcmpl-%016x","object":"chat.completion.chunk","created":%d,'
            b'"model":"%b","choices":['
        ) % (number, _CREATED, UPSTREAM_MODEL.encode())
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
        metrics = _json({"speculative_decoding": _SPECULATION})
        event = b'%b],"usage":%b,"system_fingerprint":"vllm-0.32.0-mock","metrics":%b}\n\n'
        return chunked(event % (self._open, _json(_USAGE), metrics))


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def models() -> bytes:
    """`/v1/models`: the name that clients use comes first, since smg sees that one alone."""
    names = (MODEL, UPSTREAM_MODEL)
    cards = [model_list(SimWorkerOptions(model=name))["data"][0] for name in names]
    return _json({"object": "list", "data": cards})


def metrics() -> bytes:
    """`/metrics` of a speculating worker at rest: about as long as a real one's."""
    speculation = Speculation(method="ngram", num_speculative_tokens=5)
    options = SimWorkerOptions(model=UPSTREAM_MODEL, speculation=speculation)
    return Engines(options).metrics.exposition()


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
