"""One request: what it says beside its body, as it becomes known, and our headers on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from paceline.core.caller import flag
from paceline.core.compiled import caller_of
from paceline.core.explain import explain
from paceline.core.types import Caller, Decision, Endpoint, RequestView
from paceline.edge.client import Client
from paceline.edge.telemetry import RequestRecord
from paceline.edge.wire import PASSED_UP, Headers, request_id
from paceline.errors import Forbidden
from paceline.settings import ApiKey

EXPLAIN_BYTES = 2048
"""A longer explanation than this is not put into a header whole."""


class Request(Struct):
    """`headers` are the client's by name; see there."""

    client: Client
    endpoint: Endpoint | None  # of what is asked of workers
    headers: Mapping[str, str]
    cors: Headers
    id: str
    record: RequestRecord
    key: ApiKey | None = None

    @classmethod
    def arrived(
        cls, client: Client, endpoint: Endpoint | None, cors: Headers, now_s: float
    ) -> Request:
        headers = client.named
        id = request_id(headers.get("x-request-id"))
        return cls(
            client=client,
            endpoint=endpoint,
            headers=headers,
            cors=cors,
            id=id,
            record=RequestRecord(now_s, id),
        )

    def caller(
        self, view: RequestView, body: Mapping[str, Any], model: str, *, with_template: bool
    ) -> Caller:
        """What it says beside its body. Raises InvalidRequest, Forbidden."""
        if self.wants_explanation and not (self.key and self.key.debug):
            raise Forbidden("x-paceline-explain needs a key with debug", param="x-paceline-explain")
        key_name = self.key.name if self.key and self.key.name else None
        return caller_of(view, body, self.headers, key_name, model, self.id, with_template)

    @property
    def wants_explanation(self) -> bool:
        """Raises InvalidRequest."""
        return "x-paceline-explain" in self.headers and flag(self.headers, "x-paceline-explain")

    @property
    def wants_hints(self) -> bool:
        """Raises InvalidRequest."""
        return "x-paceline-hints" in self.headers and flag(self.headers, "x-paceline-hints")

    def passed_up(self) -> Headers:
        """Its headers that go to the worker with it: all of a name, if they are short."""
        if PASSED_UP.isdisjoint(self.headers):
            return []
        return [
            (name, value)
            for name, value in self.client.headers
            if name.decode("latin-1") in PASSED_UP and len(value) <= 512
        ]

    def our_headers(self) -> Headers:
        """What every response of ours says, as far as it is known by now."""
        headers: Headers = [(b"x-request-id", self.id.encode()), *self.cors]
        decision = self.record.decision
        if decision is None:
            return headers
        headers += [
            (b"x-paceline-workload", decision.classification.workload.encode()),
            (b"x-paceline-pool", decision.pool.encode()),
            (b"server-timing", _server_timing(self.record)),
        ]
        if self.wants_explanation:
            headers.append((b"x-paceline-explain", _explain_header(decision)))
        return headers


def _server_timing(record: RequestRecord) -> bytes:
    """Milliseconds, as the header's specification asks: waiting here, deciding, the worker."""
    read_s, sent_s, answered_s = record.body_read_s, record.sent_s, record.answered_s
    timing = b"queue;dur=0"
    if read_s is not None and sent_s is not None:
        timing += b", decide;dur=%.3f" % ((sent_s - read_s) * 1e3)
    if sent_s is not None and answered_s is not None:
        timing += b", worker;dur=%.3f" % ((answered_s - sent_s) * 1e3)
    return timing


def _explain_header(decision: Decision) -> bytes:
    """The explanation, without its longest parts where it would be longer than a header should."""
    said = explain(decision)
    for longest in (None, "rules", "pools", "because"):
        if longest is not None:
            said[longest] = "too long to show"
        text = json.dumps(said, separators=(",", ":")).encode()
        if len(text) <= EXPLAIN_BYTES:
            return text
    return b"{}"
