"""Bodies of `multipart/form-data`, parsed by starlette and python-multipart as in vLLM itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from paceline.testing.sim_worker.fields import Body
from paceline.testing.sim_worker.refusals import bad_shape, error

_FLAGS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False, "": False}


async def read_form(headers: Headers, body: bytes) -> Body:
    """The form's fields: texts as they are, files as bytes. Raises Refusal.

    A body of any other type has no fields, as FastAPI reads it.
    """
    if not headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return {}

    async def stream() -> AsyncIterator[bytes]:
        yield body
        yield b""

    try:
        form = await MultiPartParser(headers, stream()).parse()  # type: ignore[arg-type]
    except (MultiPartException, KeyError):
        raise error(400, "Bad Request", "There was an error parsing the body") from None
    fields: dict[str, Any] = {}
    for name, value in form.multi_items():
        fields[name] = await value.read() if isinstance(value, UploadFile) else value
    await form.close()
    return fields


def form_flag(body: Body, field: str) -> bool:
    """A boolean as forms spell it. Raises Refusal."""
    value = _FLAGS.get(str(body.get(field, "")).lower())
    if value is None:
        text = "Input should be a valid boolean, unable to interpret input"
        raise bad_shape("bool_parsing", f"body.{field}", text, body[field])
    return value


def form_integer(body: Body, field: str) -> int | None:
    """A whole number as forms spell it. Raises Refusal."""
    value = body.get(field)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        text = "Input should be a valid integer, unable to parse string as an integer"
        raise bad_shape("int_parsing", f"body.{field}", text, value) from None
