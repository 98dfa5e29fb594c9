"""What a worker refuses, in vLLM's own words and shapes.

Recorded from vLLM 0.32 (see `tests/e2e/test_sim_worker.py`); texts that no recording holds follow
its source: `vllm/exceptions.py`, `vllm/sampling_params.py`, `vllm/renderers/params.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    """An answer that is an error: its status, its JSON and further headers."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body
        self.headers = dict(headers or {})

    def as_event(self) -> bytes:
        """The error within a stream that has begun; vLLM writes it with json.dumps' spaces."""
        return f"data: {json.dumps(self.body)}\n\n".encode()


def error(
    status: int,
    kind: str,
    message: str,
    *,
    param: str | None = None,
    retry_after_s: int | None = None,
) -> Refusal:
    """vLLM's error body; `code` is the status."""
    body = {"error": {"message": message, "type": kind, "param": param, "code": status}}
    return Refusal(status, body, _retry_after(retry_after_s))


def _retry_after(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"retry-after": str(seconds)}


def bad_value(message: str, param: str | None = None, value: object = None) -> Refusal:
    """A value that the engine does not take; parameter and value are repeated in the text."""
    extras = [f"parameter={param}"] if param else []
    extras += [f"value={value}"] if value is not None else []
    text = f"{message} ({', '.join(extras)})" if extras else message
    return error(400, "BadRequestError", text, param=param)


def bad_shape(kind: str, where: str, message: str, given: object, **context: Any) -> Refusal:
    """A body that does not fit the schema; `where` is the path, such as `body.messages`."""
    problem = {"type": kind, "loc": where, "msg": message, "input": _summary(given), **context}
    return error(400, "Bad Request", f"1 validation error:\n  {problem}", param=where)


def _summary(value: object) -> object:
    if isinstance(value, (list, dict)):
        return f"<{type(value).__name__} of {len(value)} items>"
    text = str(value)
    if len(text) > 200:
        return f"{text[:200]}...[truncated]"
    return value if value is None or isinstance(value, str) else text


def unsupported_media_type() -> Refusal:
    text = "Unsupported Media Type: Only 'application/json' is allowed"
    return error(400, "Bad Request", f"1 validation error:\n  {text}")


def unknown_model(asked: str, served: str) -> Refusal:
    text = f"The model `{asked}` does not exist. Valid aliases: {served}."
    return error(404, "NotFoundError", text, param="model")


def too_many_output_tokens(param: str, asked: int, max_model_len: int) -> Refusal:
    text = (
        f"{param}={asked} cannot be greater than max_model_len={max_model_len}. "
        "Please request fewer output tokens."
    )
    return bad_value(text, param, asked)


def prompt_too_long(num_tokens: int, max_model_len: int, *, counted_whole: bool) -> Refusal:
    """A text is tokenized only until it is too long, so its length is given as "at least"."""
    given = num_tokens if counted_whole else max_model_len + 1
    least = "at least " if given == max_model_len + 1 else ""
    text = (
        f"This model's maximum context length is {max_model_len} tokens. However, your prompt "
        f"contains {least}{given} input tokens, which exceeds this limit even without any output "
        "tokens. Please reduce the length of the input prompt."
    )
    return bad_value(text, "input_tokens", given)


def not_with_speculation() -> Refusal:
    return bad_value(
        "The min_p and logit_bias sampling parameters are not yet supported with speculative "
        "decoding."
    )


def too_busy(retry_after_s: int | None = None) -> Refusal:
    """The queue limit. vLLM itself sends no Retry-After."""
    text = (
        "The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance."
    )
    return error(503, "Service Unavailable", text, retry_after_s=retry_after_s)


def engine_failed() -> Refusal:
    text = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    return error(500, "InternalServerError", text)
