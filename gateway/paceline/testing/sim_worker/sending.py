"""ASGI messages for answers that are sent in one piece, and for event streams."""

from __future__ import annotations

import gzip
import json
import zlib

from starlette.types import Message, Send

from paceline.testing.sim_worker.refusals import Refusal

EVENT_STREAM = "text/event-stream; charset=utf-8"


async def send_json(
    send: Send,
    status: int,
    body: object,
    headers: dict[str, str] | None = None,
    *,
    zipped: bool = False,
) -> None:
    """One JSON answer, spaced as starlette spaces it."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if zipped:
        text = gzip.compress(text, mtime=0)
        headers = {**(headers or {}), "content-encoding": "gzip"}
    await send_bytes(send, status, text, "application/json", headers)


async def send_bytes(
    send: Send, status: int, body: bytes, kind: str = "", headers: dict[str, str] | None = None
) -> None:
    lines = {"content-length": str(len(body)), **({"content-type": kind} if kind else {})}
    await send(_start(status, lines | (headers or {})))
    await send({"type": "http.response.body", "body": body})


async def send_refusal(send: Send, refusal: Refusal) -> None:
    await send_json(send, refusal.status, refusal.body, refusal.headers)


class EventStream:
    """A response body of events, each sent at once; zipped, if asked for, event by event."""

    def __init__(self, send: Send, *, zipped: bool) -> None:
        self._send = send
        self._zip = zlib.compressobj(wbits=31) if zipped else None

    async def begin(self) -> None:
        encoding = {"content-encoding": "gzip"} if self._zip else {}
        await self._send(_start(200, {"content-type": EVENT_STREAM, **encoding}))

    async def write(self, data: bytes) -> None:
        if self._zip is not None:
            data = self._zip.compress(data) + self._zip.flush(zlib.Z_SYNC_FLUSH)
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        rest = self._zip.flush() if self._zip else b""
        await self._send({"type": "http.response.body", "body": rest})


def _start(status: int, headers: dict[str, str]) -> Message:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": pairs}
