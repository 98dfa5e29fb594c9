"""What the mock worker says but for its events, as vLLM 0.32 would write it."""

from __future__ import annotations

from email.utils import formatdate

from paceline.bench.proxy.bodies import MODEL
from paceline.bench.proxy.events import CREATED, SPECULATION, UPSTREAM_MODEL, USAGE, as_json
from paceline.core.types import Speculation
from paceline.testing.sim_worker.engines import Engines
from paceline.testing.sim_worker.info import model_list
from paceline.testing.sim_worker.options import SimWorkerOptions


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
    return as_json(
        {
            "id": "chatcmpl-95305b9488ff408e",
            "object": "chat.completion",
            "created": CREATED,
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
            "usage": USAGE,
            "metrics": {"speculative_decoding": SPECULATION},
        }
    )


def models() -> bytes:
    """`/v1/models`: the name that clients use comes first, since smg sees that one alone."""
    names = (MODEL, UPSTREAM_MODEL)
    cards = [model_list(SimWorkerOptions(model=name))["data"][0] for name in names]
    return as_json({"object": "list", "data": cards})


def metrics() -> bytes:
    """`/metrics` of a speculating worker at rest: about as long as a real one's."""
    speculation = Speculation(method="ngram", num_speculative_tokens=5)
    options = SimWorkerOptions(model=UPSTREAM_MODEL, speculation=speculation)
    return Engines(options).metrics.exposition()
