"""The body of a request: its bytes, its JSON, and typed looks at fields with the schema's refusals.

Unlike vLLM's schema this one does not convert: `"1"` is no number here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive

from paceline.testing.sim_worker.refusals import (
    Refusal,
    bad_shape,
    bad_value,
    unsupported_media_type,
)

MAX_BODY_BYTES = 64 * 1024 * 1024

Body = Mapping[str, Any]


async def read_bytes(receive: Receive) -> bytes:
    """The whole body. Raises Refusal for one that is too large."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, {"detail": "the client left before its body was whole"})
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise Refusal(413, {"detail": "Request Entity Too Large"})
        if not message.get("more_body", False):
            return b"".join(parts)


def read_body(content_type: str, body: bytes) -> Body:
    """The JSON object of a request. Raises Refusal."""
    if content_type.lower().split(";")[0].strip() != "application/json":
        raise unsupported_media_type()
    if not body:
        raise bad_shape("missing", "body", "Field required", None)
    try:
        value = json.loads(body)
    except json.JSONDecodeError as problem:
        context = {"ctx": {"error": problem.msg}}
        where = f"body.{problem.pos}"
        raise bad_shape("json_invalid", where, "JSON decode error", {}, **context) from None
    except (UnicodeDecodeError, RecursionError, ValueError) as problem:
        context = {"ctx": {"error": type(problem).__name__}}
        raise bad_shape("json_invalid", "body.0", "JSON decode error", {}, **context) from None
    if not isinstance(value, dict):
        text = "Input should be a valid dictionary or object to extract fields from"
        raise bad_shape("model_attributes_type", "body", text, value)
    return value


def require(body: Body, field: str) -> None:
    if field not in body:
        raise bad_shape("missing", f"body.{field}", "Field required", body)


def flag(body: Body, field: str) -> bool:
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        text = "Input should be a valid boolean"
        raise bad_shape("bool_type", f"body.{field}", text, value)
    return bool(value)


def number(body: Body, field: str, default: float) -> float:
    value = body.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = "Input should be a valid number"
        raise bad_shape("float_type", f"body.{field}", text, value)
    if not -sys.float_info.max <= value <= sys.float_info.max:  # NaN, infinity, a giant integer
        raise bad_value(f"{field} must be a finite number, got {value}.", field, value)
    return float(value)


def integer(body: Body, field: str) -> int | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        text = "Input should be a valid integer"
        raise bad_shape("int_type", f"body.{field}", text, value)
    return value
