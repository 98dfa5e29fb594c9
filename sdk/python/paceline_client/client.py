"""Clients of an OpenAI-compatible server, with hints from a Paceline gateway where it gives them.

    async with AsyncClient("http://127.0.0.1:8080/v1") as client:
        async with client.stream(model="m", messages=[…]) as chunks:
            async for chunk in chunks:
                print(chunk_text(chunk), end="")

Bodies are sent as they are given and chunks come as they were sent, as plain dictionaries. The one
place in the SDK that knows the HTTP library: its errors become ours here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from random import Random
from types import TracebackType
from typing import Any, Self

import httpx

from paceline_client.answers import Chunk, ChunkReader, Route, refusal, route_of
from paceline_client.errors import (
    BadStreamError,
    ConnectError,
    ConnectionCutError,
    PacelineError,
)
from paceline_client.hints import HEADER
from paceline_client.options import PacerOptions, options_for
from paceline_client.retries import Retries
from paceline_client.stream import GRACE_S, Arrived, SmoothStream

TIMEOUT = httpx.Timeout(600.0, connect=5.0)
_CHAT = "/chat/completions"
_MODELS = "/models"


class ChatStream(SmoothStream[Chunk]):
    """A paced stream of chunks that knows where its request went."""

    def __init__(
        self,
        source: AsyncIterator[Any],
        options: PacerOptions,
        route: Route,
        on_arrival: Callable[[Chunk], object] | None,
        num_choices: int = 1,
    ) -> None:
        super().__init__(source, options, on_arrival=on_arrival, num_choices=num_choices)
        self.route = route


class AsyncClient:
    """For asyncio. `http` brings a client of one's own: its proxies, certificates, timeouts."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        retries: Retries | None = None,
        http: httpx.AsyncClient | None = None,
        random: Random | None = None,
    ) -> None:
        self._url = base_url.rstrip("/")
        self._headers = _headers(api_key, headers)
        self._retries = retries or Retries()
        self._http = http or httpx.AsyncClient(timeout=TIMEOUT)
        self._random = random or Random()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def models(self) -> list[str]:
        """The names of the models that are served. Raises ApiError or ConnectError."""
        async with self._opened(None, _MODELS) as response:
            with _reading():
                listed = _object(await response.aread(), response).get("data")
        models = listed if isinstance(listed, list) else []
        return [str(model["id"]) for model in models if isinstance(model, dict) and "id" in model]

    async def chat(self, **body: Any) -> dict[str, Any]:
        """One whole answer. Raises ApiError or ConnectError."""
        async with self._opened({**body, "stream": False}) as response:
            with _reading():
                return _object(await response.aread(), response)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        *,
        pacing: PacerOptions | str | None = None,
        on_arrival: Callable[[Chunk], object] | None = None,
        **body: Any,
    ) -> AsyncIterator[ChatStream]:
        """A streamed answer, paced; leaving the block closes the request.

        `pacing` and `on_arrival` are those of `smooth`, all else goes into the body.
        Raises ApiError or ConnectError before the first chunk, and while iterating a StreamError,
        after the text that arrived.
        """
        options = options_for(pacing)
        async with self._opened({**body, "stream": True}) as response:
            num_choices = body.get("n") or 1
            chunks = _chunks(response, num_choices=num_choices)
            route = route_of(response.headers)
            async with ChatStream(chunks, options, route, on_arrival, num_choices) as paced:
                yield paced

    @contextlib.asynccontextmanager
    async def _opened(
        self, body: Mapping[str, Any] | None, path: str = _CHAT
    ) -> AsyncIterator[httpx.Response]:
        """A good answer's head, after the tries it takes."""
        number = 0
        while True:
            try:
                response = await self._sent(body, path)
                break
            except PacelineError as error:
                wait_s = self._retries.wait_s(number, error, self._random)
                if wait_s is None:
                    raise
            await asyncio.sleep(wait_s)
            number += 1
        try:
            yield response
        finally:
            await response.aclose()

    async def _sent(self, body: Mapping[str, Any] | None, path: str) -> httpx.Response:
        request = _request(self._http, self._url + path, self._headers, body)
        with _connecting():
            response = await self._http.send(request, stream=True)
        if response.is_success:
            return response
        try:
            with _connecting():
                content = await response.aread()
        finally:
            await response.aclose()
        raise refusal(response.status_code, response.headers, content, now_s=time.time())


class Client:
    """The same without asyncio. Its streams are not paced: a loop that blocks cannot be."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        retries: Retries | None = None,
        http: httpx.Client | None = None,
        random: Random | None = None,
    ) -> None:
        self._url = base_url.rstrip("/")
        self._headers = _headers(api_key, headers)
        self._retries = retries or Retries()
        self._http = http or httpx.Client(timeout=TIMEOUT)
        self._random = random or Random()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def chat(self, **body: Any) -> dict[str, Any]:
        """One whole answer. Raises ApiError or ConnectError."""
        with self._opened({**body, "stream": False}) as response, _reading():
            return _object(response.read(), response)

    @contextlib.contextmanager
    def stream(self, **body: Any) -> Iterator[Iterator[Chunk]]:
        """A streamed answer's chunks as they come; leaving the block closes the request."""
        with self._opened({**body, "stream": True}) as response:
            reader = _reader(response, num_choices=body.get("n") or 1)
            yield _blocking_chunks(response, reader)

    @contextlib.contextmanager
    def _opened(self, body: Mapping[str, Any]) -> Iterator[httpx.Response]:
        number = 0
        while True:
            try:
                response = self._sent(body)
                break
            except PacelineError as error:
                wait_s = self._retries.wait_s(number, error, self._random)
                if wait_s is None:
                    raise
            time.sleep(wait_s)
            number += 1
        try:
            yield response
        finally:
            response.close()

    def _sent(self, body: Mapping[str, Any]) -> httpx.Response:
        request = _request(self._http, self._url + _CHAT, self._headers, body)
        with _connecting():
            response = self._http.send(request, stream=True)
        if response.is_success:
            return response
        try:
            with _connecting():
                content = response.read()
        finally:
            response.close()
        raise refusal(response.status_code, response.headers, content, now_s=time.time())


def chunk_text(chunk: Mapping[str, Any]) -> str:
    """The answer's text in a chunk, of its first choice; "" where it has none."""
    for choice in chunk.get("choices") or ():
        delta = choice.get("delta") or {}
        return delta.get("content") or choice.get("text") or ""
    return ""


async def _chunks(response: httpx.Response, *, num_choices: int) -> AsyncIterator[Arrived[Chunk]]:
    """Chunks to the end of the stream; raises StreamError where it is not a good one."""
    reader = _reader(response, num_choices=num_choices)
    reads = response.aiter_bytes()
    until_s: float | None = None
    try:
        while not reader.done:
            if until_s is None and reader.all_finished:
                until_s = asyncio.get_running_loop().time() + GRACE_S
            with _reading(request_id=response.headers.get("x-request-id")):
                read = await _next_read(reads, until_s)
            if read is None:
                break
            for arrived in reader.feed(read):
                yield arrived
        reader.end()
    finally:
        await response.aclose()


async def _next_read(reads: AsyncIterator[bytes], until_s: float | None) -> bytes | None:
    """None at the end, or at `until_s` of the loop's clock."""
    try:
        async with asyncio.timeout_at(until_s) as grace:
            return await anext(reads, None)
    except TimeoutError:
        if grace.expired():
            return None
        raise


def _blocking_chunks(response: httpx.Response, reader: ChunkReader) -> Iterator[Chunk]:
    reads = response.iter_bytes()
    while not reader.done:
        with _reading(request_id=response.headers.get("x-request-id")):
            read = next(reads, None)
        if read is None:
            break
        for arrived in reader.feed(read):
            yield arrived.chunk
    reader.end()


def _reader(response: httpx.Response, *, num_choices: int) -> ChunkReader:
    request_id = response.headers.get("x-request-id")
    kind = response.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        raise BadStreamError(f"asked for a stream, got {kind or 'no type'}", request_id=request_id)
    return ChunkReader(num_choices=num_choices, request_id=request_id)


def _headers(api_key: str | None, more: Mapping[str, str] | None) -> dict[str, str]:
    headers = {"content-type": "application/json", HEADER: "1"}
    if api_key is not None:
        headers["authorization"] = f"Bearer {api_key}"
    return {**headers, **(more or {})}


def _request(
    http: httpx.Client | httpx.AsyncClient,
    url: str,
    headers: Mapping[str, str],
    body: Mapping[str, Any] | None,
) -> httpx.Request:
    """A POST of `body`, or a GET without one."""
    if body is None:
        return http.build_request("GET", url, headers=headers)
    content = json.dumps(body, ensure_ascii=False).encode()
    return http.build_request("POST", url, content=content, headers=headers)


def _object(content: bytes, response: httpx.Response) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    raise BadStreamError(
        "the answer is no JSON object", request_id=response.headers.get("x-request-id")
    )


@contextlib.contextmanager
def _connecting() -> Iterator[None]:
    """Before the first byte: an error means that there is no answer."""
    try:
        yield
    except httpx.HTTPError as error:
        url = error.request.url
        where = url.netloc.decode() or str(url).lstrip("/")  # no host where http:// was forgotten
        why = str(error) or type(error).__name__
        raise ConnectError(f"no answer from {where}: {why}") from error


@contextlib.contextmanager
def _reading(request_id: str | None = None) -> Iterator[None]:
    """Within the answer: an error means that it was cut."""
    try:
        yield
    except httpx.HTTPError as error:
        message = f"the answer was cut: {error or type(error).__name__}"
        raise ConnectionCutError(message, request_id=request_id) from error
