"""A request's body: read within bounds, as far as the gateway must understand it.

Only what the gateway itself needs is checked: an object or a form, `model`, `stream`. The rest is
the worker's to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from msgspec import Struct

from paceline.core.multipart import read_form, rewrite_form
from paceline.core.rewrite import UsageAdded, rewrite, usage_to_add, wants_k
from paceline.core.types import Endpoint, RequestView
from paceline.core.views import view_of
from paceline.edge.client import Client
from paceline.edge.wire import JSON
from paceline.errors import InvalidRequest, UnsupportedMediaType

LARGE_BYTES = 2**20
"""A body up to this size is parsed without a look at what is in it: at worst 40 ms."""
MAX_CONTAINERS = 2**20
"""Of objects and arrays in one body, by their opening signs, those within strings included."""
MAX_VALUES = 2**22
"""The same of values, by their commas: four million token ids, or as much text as 30 MiB holds."""

_BOOL_OR_NULL = (bool, type(None))


class Body(Struct):
    """`rewritten` gives the bytes for a worker that calls the model by the name that it is told and
    is to draft k tokens; None leaves that to it."""

    raw: bytes
    view: RequestView
    said: Mapping[str, Any]  # of a form, what we read of it
    content_type: bytes
    usage_added: UsageAdded
    takes_k: bool  # it may be told how many tokens to draft
    rewritten: Callable[[str, int | None], bytes]


async def read_body(
    client: Client, endpoint: Endpoint, *, limit_bytes: int, timeout_s: float, hints: bool
) -> Body:
    """Raises RequestError, ClientGone."""
    named = client.named
    given = named.get("content-type", "")
    is_form = endpoint is Endpoint.TRANSCRIPTIONS
    wanted = "multipart/form-data" if is_form else "application/json"
    if given != wanted and given.partition(";")[0].strip(" \t").lower() != wanted:
        raise UnsupportedMediaType(f"send the body as Content-Type: {wanted}")
    encoding = named.get("content-encoding")
    raw = await client.body(
        limit_bytes=limit_bytes,
        encoding=None if encoding is None else encoding.encode("latin-1"),
        declared=named.get("content-length"),
        timeout_s=timeout_s,
    )
    if is_form:
        return _form(raw, given)
    return _json(raw, endpoint, hints)


def _json(raw: bytes, endpoint: Endpoint, hints: bool) -> Body:
    if len(raw) > LARGE_BYTES:
        _check_extent(raw)
    try:
        said = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from None
    if not isinstance(said, dict):
        raise InvalidRequest("the body must be a JSON object")
    if not isinstance(said.get("model"), str) or not said["model"]:
        raise InvalidRequest("model must be the name of a model", param="model")
    if not isinstance(said.get("stream", False), _BOOL_OR_NULL):
        raise InvalidRequest("stream must be true or false", param="stream")
    added = usage_to_add(endpoint, said, hints=hints)

    def rewritten(model: str, k: int | None) -> bytes:
        return rewrite(
            raw, said,
            model=model, add_usage=added.chunk, add_continuous_usage=added.members, k=k,
        )  # fmt: skip

    takes_k = wants_k(endpoint, said)
    return Body(raw, view_of(endpoint, said), said, JSON[1], added, takes_k, rewritten)


def _form(raw: bytes, content_type: str) -> Body:
    form = read_form(raw, content_type)
    said = {"model": form.model, "stream": form.stream}

    def rewritten(model: str, k: int | None) -> bytes:
        return rewrite_form(raw, form, model=model)

    view = view_of(Endpoint.TRANSCRIPTIONS, said)
    return Body(raw, view, said, content_type.encode("latin-1"), UsageAdded(), False, rewritten)


def _check_extent(raw: bytes) -> None:
    """Refuses what would take seconds and gigabytes to parse, and no worker could read as text."""
    if raw.count(b"[") + raw.count(b"{") > MAX_CONTAINERS:
        raise InvalidRequest(f"the body has more than {MAX_CONTAINERS} objects and arrays")
    if raw.count(b",") > MAX_VALUES:
        raise InvalidRequest(f"the body has more than {MAX_VALUES} values")
