"""Everything the SDK raises.

PacelineError
├── ApiError                an answer that refuses: `status`, `type`, `code`, `param`, …
│   ├── BadRequestError     400, 413, 415, 422: the request is wrong
│   ├── AuthenticationError 401, 403
│   ├── NotFoundError       404: no such model or address
│   ├── OverloadedError     429, 503: come back later (`retry_after_s`)
│   └── ServerError         every other 5xx
├── ConnectError            no answer at all: unreachable, or too slow
└── StreamError             a stream that began and did not end well; the text came first
    ├── IncompleteStreamError   it ended, but a choice has no finish
    ├── ConnectionCutError      the connection broke
    ├── StreamErrorEvent        the server said what is wrong, within the stream
    └── BadStreamError          an event that cannot be read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PacelineError(Exception):
    """The root. `request_id` names the request in the gateway's records, where there is one."""

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


class ApiError(PacelineError):
    """The server refused, and said why in OpenAI's form."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        type: str | None = None,
        code: str | int | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, request_id=request_id)
        self.status = status
        self.type = type
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s


class BadRequestError(ApiError):
    """The request is wrong."""


class AuthenticationError(ApiError):
    """The key is missing, unknown or not allowed this."""


class NotFoundError(ApiError):
    """No such model or address."""


class OverloadedError(ApiError):
    """Too much at this time."""


class ServerError(ApiError):
    """The server failed."""


class ConnectError(PacelineError):
    """No answer at all."""


class StreamError(PacelineError):
    """A stream that began and did not end well. All text that arrived was given out before."""


class IncompleteStreamError(StreamError):
    """The stream ended, but a choice has no finish: its text is cut short."""


class ConnectionCutError(StreamError):
    """The connection broke within the stream."""


class StreamErrorEvent(StreamError):
    """An error event within the stream. `error` is what it said."""

    def __init__(
        self, message: str, *, error: Mapping[str, Any], request_id: str | None = None
    ) -> None:
        super().__init__(message, request_id=request_id)
        self.error = error
        self.type = _text(error.get("type"))
        self.code = error.get("code")


class BadStreamError(StreamError):
    """An event that is no JSON of the kind we asked for. Never skipped: what it said is lost."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    413: BadRequestError,
    415: BadRequestError,
    422: BadRequestError,
    429: OverloadedError,
    503: OverloadedError,
}


def api_error(
    status: int, body: object, *, request_id: str | None, retry_after_s: float | None
) -> ApiError:
    """The error that an answer with this status and body (parsed, if it was JSON) stands for."""
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else BadRequestError)
    error = body.get("error", body) if isinstance(body, Mapping) else {}
    if not isinstance(error, Mapping):
        error = {"message": error}
    code = error.get("code")
    return kind(
        _text(error.get("message")) or _text(error.get("detail")) or f"the server said {status}",
        status=status,
        type=_text(error.get("type")),
        code=code if isinstance(code, str | int) else None,
        param=_text(error.get("param")),
        request_id=request_id,
        retry_after_s=retry_after_s,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
