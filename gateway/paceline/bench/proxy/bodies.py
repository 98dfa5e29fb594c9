"""The requests that are sent: chats about prose and code, of a size to the byte."""

from __future__ import annotations

import json

from paceline.core.types import Workload
from paceline.sim.library import passages

MODEL = "bench"
KEY = "bench-key"
HOLD = "Say one word, then be silent."
"""In a prompt it makes the mock's stream go quiet after its first event."""

ASKS = (
    "Explain to a newcomer how this works, please.",
    "Write a Python function that does the same with a generator, with tests.",
    "Correct the spelling in this text and return it in full:",
    "Summarise this in three sentences.",
    "Refactor this code so that it needs no globals; return the whole file:",
)
MIN_BYTES = 400


def chat_body(num_bytes: int, number: int, *, stream: bool, hold: bool = False) -> bytes:
    """A chat completion's body of exactly `num_bytes`; others for other numbers.

    The last user turn has the question and, in bodies with room for it, pasted text.
    Raises ValueError if it cannot be that small.
    """
    body = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant. Be brief and exact."},
            {"role": "user", "content": ""},
        ],
        "temperature": 0.7,
        "max_tokens": 256,
        "stream": stream,
        "user": f"user-{number:04d}",
    }
    spare = num_bytes - len(json.dumps(body))
    ask = HOLD if hold else f"{ASKS[number % len(ASKS)]}\n\n"
    if spare < len(json.dumps(ask)):
        raise ValueError(f"a body of {num_bytes} bytes is too small; at least {MIN_BYTES}")
    body["messages"][1]["content"] = _fitted(ask + _material(spare, number), spare)  # type: ignore[index]
    return json.dumps(body).encode()


def _material(num_chars: int, number: int) -> str:
    """Passages of the simulator's library, code and prose in turn, until there are enough."""
    shelf = [*passages(Workload.CODE), *passages(Workload.CHAT)]
    parts: list[str] = []
    while sum(map(len, parts)) < num_chars:
        parts.append(shelf[(number * 7 + len(parts)) % len(shelf)].body)
    return "\n\n".join(parts)


def _fitted(text: str, num_bytes: int) -> str:
    """As much of the beginning as takes `num_bytes` in JSON; dots where an escape won't fit."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(json.dumps(text[:middle])) - 2 <= num_bytes:
            low = middle
        else:
            high = middle - 1
    return text[:low] + "." * (num_bytes - len(json.dumps(text[:low])) + 2)


def http_request(body: bytes, port: int) -> bytes:
    """The bytes of a POST with the headers that a client library sends."""
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\n"
        f"host: 127.0.0.1:{port}\r\n"
        "accept: application/json\r\n"
        "accept-encoding: gzip, deflate\r\n"
        "user-agent: OpenAI/Python 3.57.0\r\n"
        "x-stainless-lang: python\r\n"
        "x-stainless-runtime: CPython\r\n"
        f"authorization: Bearer {KEY}\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
