"""Errors as each family of endpoints writes them, and the statuses that their names stand for.

OpenAI's shape is `{"error": {message, type, param, code}}`. Anthropic's is the same object with its
own names for the types, and `"type": "error"` beside it; that the object says more than Anthropic's
would is no harm to its clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from paceline.core.chunks import BAD_GATEWAY
from paceline.core.types import Endpoint
from paceline.errors import PacelineError

ANTHROPIC = frozenset({Endpoint.MESSAGES, Endpoint.COUNT_TOKENS})
"""The endpoints whose clients expect Anthropic's errors."""

_ANTHROPIC_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",  # 529 there: a status that HTTP does not define
    504: "timeout_error",
}
"""Source: Anthropic's API reference, "Errors"."""

_NAMED: Mapping[str, int] = {
    **{name: status for status, name in _ANTHROPIC_TYPES.items()},
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "internal_error": 500,
    "BadRequestError": 400,
    "NotFoundError": 404,
    "UnprocessableEntityError": 422,
    "InternalServerError": 500,
    "NotImplementedError": 501,
    "ServiceUnavailableError": 503,
}
"""Besides Anthropic's: OpenAI's codes, the one name that vLLM gives every error in a stream of
messages, and vLLM's own types (0.32, `exception_handling/error_response.py`)."""


def error_body(error: PacelineError, endpoint: Endpoint | None = None) -> bytes:
    """The body of an error response, as the clients of `endpoint` expect it; OpenAI's for None."""
    if endpoint in ANTHROPIC:
        named = openai_error(error) | {"type": anthropic_type(error.status)}
        return orjson.dumps({"type": "error", "error": named})
    return orjson.dumps({"error": openai_error(error)})


def openai_error(error: PacelineError) -> dict[str, Any]:
    return {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
    }


def anthropic_type(status: int) -> str:
    """The name nearest to a status: what it says of whose fault it is holds for the others too."""
    return _ANTHROPIC_TYPES.get(status) or (
        "invalid_request_error" if status < 500 else "api_error"
    )


def status_of(error: Mapping[str, Any]) -> int:
    """The HTTP status of an error that a worker wrote into a stream, by its code or its type.

    One that gives no status that we know is a bad gateway's.
    """
    code = error.get("code")
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    names = (name for name in (code, error.get("type")) if isinstance(name, str))
    return next((_NAMED[name] for name in names if name in _NAMED), BAD_GATEWAY)
