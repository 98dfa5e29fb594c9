"""Every error Paceline raises, each with the HTTP status and OpenAI error type it means.

    PacelineError
    ├── RequestError             the caller's to mend                        4xx
    │   ├── InvalidRequest           body, header or parameter               400
    │   ├── NoCompatiblePool         no pool may take this request           400
    │   ├── Unauthorized             no key, or one we do not know           401
    │   ├── Forbidden                the key is known, the wish is not its   403
    │   ├── NotFound                 no such path                            404
    │   ├── ModelNotFound            no such model                           404
    │   ├── MethodNotAllowed         the path exists, the method does not    405
    │   ├── RequestTimeout           the body did not arrive in time         408
    │   ├── PayloadTooLarge          more than limits.body_bytes             413
    │   ├── HeadTooLarge             request line and headers                431
    │   └── UnsupportedMediaType     content type or encoding                415
    ├── WorkerError              a worker's failure, told to the caller      5xx
    │   ├── WorkerUnavailable        it cannot be reached                    503
    │   ├── WorkerProtocolError      what it sent cannot be understood       502
    │   ├── WorkerBusy               it has too much to do; ask another          503
    │   ├── WorkerDied               its connection ended within an answer   502
    │   └── WorkerTimeout            it was silent for too long              504
    ├── ShuttingDown             we are going away                           503
    └── ConfigurationError       the operator's to mend; never sent to a caller

The core may raise these without knowing HTTP: the numbers are hints for the edge, which renders all
of them with one function (`core.error_shapes.error_body`).
"""

from __future__ import annotations

from typing import ClassVar


class PacelineError(Exception):
    """`param` names the field at fault, if any; `retry_after_s` is seconds, if waiting helps."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str] = "internal_error"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s


class RequestError(PacelineError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_request"


class InvalidRequest(RequestError):
    pass


class NoCompatiblePool(RequestError):
    code = "no_compatible_pool"


class Unauthorized(RequestError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(RequestError):
    status = 403
    type = "permission_error"
    code = "forbidden"


class NotFound(RequestError):
    status = 404
    code = "not_found"


class ModelNotFound(RequestError):
    status = 404
    code = "model_not_found"


class MethodNotAllowed(RequestError):
    """`allowed` names the methods that the path takes."""

    status = 405
    code = "method_not_allowed"

    def __init__(
        self, message: str, *, param: str | None = None, allowed: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, param=param)
        self.allowed = allowed


class RequestTimeout(RequestError):
    status = 408
    code = "request_timeout"


class PayloadTooLarge(RequestError):
    status = 413
    code = "payload_too_large"


class HeadTooLarge(RequestError):
    status = 431
    code = "head_too_large"


class UnsupportedMediaType(RequestError):
    status = 415
    code = "unsupported_media_type"


class WorkerError(PacelineError):
    status = 502
    code = "worker_error"


class WorkerUnavailable(WorkerError):
    status = 503
    code = "worker_unavailable"


class WorkerProtocolError(WorkerError):
    code = "worker_protocol_error"


class WorkerBusy(WorkerError):
    status = 503
    code = "worker_busy"


class WorkerDied(WorkerError):
    code = "worker_died"


class WorkerTimeout(WorkerError):
    status = 504
    code = "worker_timeout"


class ShuttingDown(PacelineError):
    status = 503
    code = "shutting_down"


class ConfigurationError(PacelineError):
    """What is wrong with the configuration; `problems` holds every one found, in file order."""

    code = "configuration_error"

    def __init__(self, message: str, *, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems or (message,)
