"""One request: what it says, gathered as it becomes known, and what our headers say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from paceline.core.caller import caller_of, flag
from paceline.core.explain import explain
from paceline.core.types import Caller, Decision, RequestView
from paceline.edge.client import Client
from paceline.edge.telemetry import RequestRecord
from paceline.edge.wire import Headers, header, request_id
from paceline.errors import Forbidden, InvalidRequest, UnsupportedMediaType
from paceline.settings import ApiKey

EXPLAIN_BYTES = 2048
"""A longer explanation than this is not put into a header whole."""


@dataclass(slots=True)
class Request:
    """`headers` are decoded as latin-1, which loses nothing; of duplicates the last counts."""

    client: Client
    headers: Mapping[str, str]
    id: str
    record: RequestRecord
    key: ApiKey | None = None
    num_choices: int = 1

    @classmethod
    def arrived(cls, client: Client, now_s: float) -> Request:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in client.headers
        }
        return cls(
            client=client,
            headers=headers,
            id=request_id(headers.get("x-request-id")),
            record=RequestRecord(arrived_s=now_s),
        )

    async def body(self, *, limit_bytes: int, timeout_s: float) -> tuple[bytes, dict[str, Any]]:
        """The body as it came (inflated), and as it reads.

        Only what the gateway itself needs is checked: an object, `model`, `stream`. The rest is the
        worker's to judge. Raises RequestError, ClientGone.
        """
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise UnsupportedMediaType("send the body as Content-Type: application/json")
        raw = await self.client.body(
            limit_bytes=limit_bytes,
            encoding=header(self.client.headers, b"content-encoding"),
            declared=header(self.client.headers, b"content-length"),
            timeout_s=timeout_s,
        )
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise InvalidRequest(f"the body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise InvalidRequest("the body must be a JSON object")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise InvalidRequest("model must be the name of a model", param="model")
        if not isinstance(body.get("stream"), bool | None):
            raise InvalidRequest("stream must be true or false", param="stream")
        return raw, body

    def caller(self, view: RequestView, body: Mapping[str, Any], model: str) -> Caller:
        """What it says beside its body. Raises InvalidRequest, Forbidden."""
        if self.wants_explanation and not (self.key and self.key.debug):
            raise Forbidden("x-paceline-explain needs a key with debug", param="x-paceline-explain")
        key_name = self.key.name if self.key and self.key.name else None
        return caller_of(view, body, self.headers, key_name=key_name, model=model)

    @property
    def wants_explanation(self) -> bool:
        """Raises InvalidRequest."""
        return flag(self.headers, "x-paceline-explain")

    def our_headers(self) -> Headers:
        """What every response of ours says, as far as it is known by now."""
        headers: Headers = [(b"x-request-id", self.id.encode())]
        decision = self.record.decision
        if decision is None:
            return headers
        headers += [
            (b"x-paceline-workload", decision.classification.workload.value.encode()),
            (b"x-paceline-pool", decision.pool.encode()),
            (b"server-timing", _server_timing(self.record)),
        ]
        if self.wants_explanation:
            headers.append((b"x-paceline-explain", _explain_header(decision)))
        return headers


def _server_timing(record: RequestRecord) -> bytes:
    """Milliseconds, as the header's specification asks: waiting here, deciding, the worker."""
    parts = ["queue;dur=0"]
    if record.body_read_s is not None and record.sent_s is not None:
        parts.append(f"decide;dur={(record.sent_s - record.body_read_s) * 1000:.3f}")
    if record.sent_s is not None and record.answered_s is not None:
        parts.append(f"worker;dur={(record.answered_s - record.sent_s) * 1000:.3f}")
    return ", ".join(parts).encode()


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
