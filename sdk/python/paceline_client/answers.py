"""What comes back from a server, read without any I/O: statuses, headers, events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from paceline_client.errors import (
    ApiError,
    BadStreamError,
    IncompleteStreamError,
    StreamErrorEvent,
    api_error,
)
from paceline_client.hints import parse_hint
from paceline_client.pacer import Hint
from paceline_client.sse import SseError, SseParser
from paceline_client.stream import Arrived

Chunk = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a request went, as a Paceline gateway's headers say; None where they do not."""

    request_id: str | None = None
    pool: str | None = None
    workload: str | None = None
    server_timing: str | None = None
    explain: Mapping[str, Any] | None = None


def route_of(headers: Mapping[str, str]) -> Route:
    """From a response's headers, whose names are in lower case or compare so."""
    explain = headers.get("x-paceline-explain")
    return Route(
        request_id=headers.get("x-request-id"),
        pool=headers.get("x-paceline-pool"),
        workload=headers.get("x-paceline-workload"),
        server_timing=headers.get("server-timing"),
        explain=_json_object(explain) if explain else None,
    )


def refusal(status: int, headers: Mapping[str, str], body: bytes, *, now_s: float) -> ApiError:
    """The error that an answer other than 2xx stands for. `now_s` is the time since the epoch."""
    return api_error(
        status,
        _json_object(body.decode("utf-8", "replace")) or {},
        request_id=headers.get("x-request-id"),
        retry_after_s=retry_after_s(headers.get("retry-after"), now_s=now_s),
    )


def retry_after_s(value: str | None, *, now_s: float) -> float | None:
    """Seconds to wait, from delta-seconds or an HTTP date (RFC 9110, 10.2.3); None if neither."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now_s)
    except (ValueError, TypeError, OverflowError):
        return None


class ChunkReader:
    """The bytes of an event stream → chunks with hints, to `[DONE]` or the end.

    Raises StreamErrorEvent for an error event and BadStreamError for one that cannot be read: to
    skip it would lose what it said, and the rest would look whole.
    """

    def __init__(self, *, num_choices: int = 1, request_id: str | None = None) -> None:
        self._parser = SseParser(on_comment=self._commented)
        self._hint: Hint | None = None
        self._num_choices = num_choices
        self._request_id = request_id
        self._finished: set[object] = set()
        self.done = False

    def feed(self, data: bytes) -> Iterator[Arrived[Chunk]]:
        """The chunks that `data` completes, one by one, so that an error comes after what stands
        before it. What follows `[DONE]` is dropped."""
        try:
            for event in self._parser.events(data):
                text = event.data.strip()
                if self.done or not text or text.startswith(":"):
                    continue
                if text == "[DONE]":
                    self.done = True
                    continue
                hint, self._hint = self._hint, None
                yield Arrived(self._chunk(event.event, text), hint)
        except SseError as error:
            raise BadStreamError(str(error), request_id=self._request_id) from error

    @property
    def all_finished(self) -> bool:
        """Whether every choice that was asked for has its finish; usage may still come."""
        return len(self._finished) >= self._num_choices

    def end(self) -> None:
        """The stream ended. Raises IncompleteStreamError if it should not have: `[DONE]` is the
        server's word that it is whole, the finishes of all choices are the answer's own."""
        if not self.all_finished:
            raise IncompleteStreamError(
                "the stream ended before its finish", request_id=self._request_id
            )

    def _commented(self, comment: str) -> None:
        self._hint = parse_hint(comment) or self._hint

    def _chunk(self, event: str, text: str) -> Chunk:
        chunk = _json_object(text)
        if chunk is None:
            raise BadStreamError(f"not a JSON object: {text[:100]}", request_id=self._request_id)
        error = chunk.get("error")
        is_bare = "choices" not in chunk and ("error" in chunk or chunk.get("object") == "error")
        if error or is_bare or event == "error":
            fields = error if isinstance(error, dict) else chunk if not error else {}
            message = fields.get("message") or error or "the server reported an error"
            raise StreamErrorEvent(str(message), error=fields, request_id=self._request_id)
        choices = chunk.get("choices")
        if not isinstance(choices, list | None) or not all(
            isinstance(choice, dict) for choice in choices or ()
        ):
            raise BadStreamError(f"odd choices: {text[:100]}", request_id=self._request_id)
        for choice in choices or ():
            if choice.get("finish_reason"):
                index = choice.get("index")
                self._finished.add(index if isinstance(index, int) else 0)
        return chunk


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
