"""What is asked and answered, at every endpoint: the client's own JSON up, the worker's bytes down.

The gateway reads what it needs (an object or a form, `model`, `stream`) and judges nothing else.
Its own errors have the shape that the endpoint's clients expect.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest

from families import CHAT, FAMILIES
from harness import Served, gateway, pool
from paceline.settings import ApiKey, Auth, Limits, Timeouts
from paceline.testing.scripted import End, ScriptedWorker, response

JSON = {"content-type": "application/json"}
HI = [{"role": "user", "content": "hi"}]
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/completions": {"prompt": [1, 2, 3], "suffix": "x"},
    "/v1/responses": {"input": [{"type": "message", "role": "user", "content": "hi"}]},
    "/v1/messages": {"messages": HI, "max_tokens": 9, "system": [{"type": "text", "text": "s"}]},
    "/v1/messages/count_tokens": {"messages": HI},
    "/v1/embeddings": {"input": ["a", "b"], "encoding_format": "base64"},
    "/v1/rerank": {"query": "q", "documents": ["a", {"text": "b"}]},
    "/v1/score": {"text_1": "a", "text_2": ["b"]},
    "/tokenize": {"prompt": "hi"},
    "/detokenize": {"tokens": [1, 2]},
}
ANSWERS = [
    response(b'{"x": 1.0E+2, "y": "\\u00e9 \xe5\x8c\x97", "usage": null}'),
    response(b"[1,2]"),
    response(b"", status=204),
    response(b"{half"),
    response("plain text, 北".encode(), kind="text/plain; charset=utf-8"),
    response(bytes(range(256)), kind="application/octet-stream"),
    response(b'{"error":{"message":"too long","code":400}}', status=400),
    response(b'{"error":{"message":"boom","code":500}}', status=500),
]


async def test_every_endpoint_passes_both_ways_byte_for_byte():
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for path, asked in ASKED.items():
            for answer in ANSWERS:
                worker.play([answer])
                body = json.dumps({"model": "alias", **asked, "x": [1e5, None]}, indent=1).encode()
                got = await g.http.post(path, content=body, headers=JSON)
                head, _, sent = answer.partition(b"\r\n\r\n")
                assert (got.status_code, got.content) == (int(head.split(b" ")[1]), sent)
                assert f"content-type: {got.headers['content-type']}\r".encode() in head
                assert worker.seen[-1].path == path
                assert worker.seen[-1].body == body.replace(b'"alias"', b'"up"')


FORM = {
    "language": (None, "en"),
    "file": ("a.wav", bytes(range(256)) * 50, "audio/wav"),
    "response_format": (None, "text"),
    "model": (None, "alias"),
    "timestamp_granularities[]": (None, "word"),
}


@pytest.mark.parametrize("kind", ["application/json", "text/plain; charset=utf-8", "text/vtt"])
async def test_a_transcription_passes_its_form_and_text_answers_byte_for_byte(kind: str):
    said = "WEBVTT\n\n北 said\n".encode()
    async with ScriptedWorker([response(said, kind=kind)]).running() as worker:
        async with gateway(pool("p", worker.url)) as g:
            got = await g.http.post("/v1/audio/transcriptions", files=FORM)
    request = httpx.Request("POST", g.url, files=FORM, headers=got.request.headers)
    [seen] = worker.seen
    assert (got.status_code, got.content, got.headers["content-type"]) == (200, said, kind)
    assert seen.header("content-type") == [got.request.headers["content-type"]]
    assert seen.body == request.read().replace(b"alias", b"up")
    assert seen.header("content-length") == [str(len(seen.body))]


@pytest.mark.parametrize(
    "body", [b"", b"--x", b"--x--", b'{"model":"m"}', b"--x\r\n\r\nm\r\n--x--"]
)
async def test_what_is_no_form_is_told_so_and_no_worker_asked(body: bytes):
    form = {"content-type": "multipart/form-data; boundary=x"}
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for headers, status in ((form, 400), (JSON, 415), ({}, 415)):
            got = await g.http.post("/v1/audio/transcriptions", content=body, headers=headers)
            assert got.status_code == status
        no_boundary = {"content-type": "multipart/form-data"}
        got = await g.http.post("/v1/audio/transcriptions", content=body, headers=no_boundary)
        assert got.status_code == 400
    assert not worker.seen


# -- what the gateway does not judge -----------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": "f"}}]  # without parameters
LOOSE = {
    "messages": [
        {"role": "developer", "content": "be brief", "unknown": {"deep": [1, {"a": None}]}},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {}}]},
        {"role": "assistant", "content": None, "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "out"}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "odd"}, "b", 7, None]},
    ],
    "tools": TOOLS,
    "tool_choice": {"type": "odd"},
    "chat_template_kwargs": {"enable_thinking": False, "model": "m", "stream": True},
    "temperature": 1e-05,
    "seed": 12345678901234567890,
    "vllm_xargs": {"x": 1},
}


@pytest.mark.parametrize("stream", [None, False, True])
async def test_a_worker_gets_the_same_json_but_for_named_rewrites(stream: bool | None):
    body = {"model": "m", **LOOSE, **({} if stream is None else {"stream": stream})}
    async with ScriptedWorker([response(b"{}")]).running() as worker:
        async with gateway(pool("p", worker.url)) as g:
            assert (await g.http.post(CHAT.path, json=body)).status_code == 200
    wanted = {**body, "model": "up"}
    if stream:
        wanted["stream_options"] = {"include_usage": True}
    assert worker.seen[0].json == wanted


CODE = "Fix this loop:\n```python\nfor i in range(10):\n    print(i\n```"
PARTS: list[tuple[Any, str]] = [
    ([{"type": "text", "text": CODE}], CODE),
    ([{"type": "text", "text": CODE}, {"type": "image_url", "image_url": {"url": "x"}}], CODE),
    ([{"type": "input_text", "text": CODE}], CODE),
    ([{"type": "image_url", "image_url": "x"}], ""),
    ([{"type": "odd"}, 7, None, {"text": 3}, {}], ""),
    ([], ""),
    (None, ""),
    ({"text": "x"}, ""),
]


async def test_text_in_parts_is_routed_as_text_and_no_text_is_no_fault():
    async with ScriptedWorker([response(b"{}")]).running() as worker:
        async with gateway(pool("p", worker.url)) as g:
            for parts, same_as in PARTS:
                answers = [await g.chat(content) for content in (parts, same_as)]
                assert [answer.status_code for answer in answers] == [200, 200]
                labels = [answer.headers["x-paceline-workload"] for answer in answers]
                assert labels[0] == labels[1], parts


# -- errors of ours, in the shape of who asks --------------------------------------------------

OURS: dict[str, tuple[dict[str, Any], int]] = {
    "no JSON": ({"content": b"{half", "headers": JSON}, 400),
    "no object": ({"content": b"[]", "headers": JSON}, 400),
    "nothing": ({"content": b"", "headers": JSON}, 400),
    "no model": ({"json": {"messages": []}}, 400),
    "no such model": ({"json": {"model": "nope"}}, 404),
    "no type": ({"content": b"{}"}, 415),
    "another type": ({"content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
    "another encoding": ({"content": b"{}", "headers": {**JSON, "content-encoding": "br"}}, 415),
    "too long": ({"content": b"x" * 3000, "headers": JSON}, 413),
    "a bomb": (
        {"content": gzip.compress(b" " * 900_000), "headers": {**JSON, "content-encoding": "gzip"}},
        413,
    ),
    "a bad label": ({"json": {"model": "m"}, "headers": {"x-paceline-workload": "odd"}}, 400),
    "a bad flag": ({"json": {"model": "m"}, "headers": {"x-paceline-hints": "odd"}}, 400),
}
TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
         405: "invalid_request_error", 413: "request_too_large", 415: "invalid_request_error",
         502: "api_error", 503: "overloaded_error", 504: "timeout_error"}  # fmt: skip


def check_error(path: str, got: httpx.Response, status: int) -> None:
    said = got.json()
    assert got.status_code == status, path
    assert got.headers["content-type"] == "application/json"
    assert got.headers["x-request-id"]
    assert set(said["error"]) >= {"message", "type", "param", "code"}
    if path.startswith("/v1/messages"):
        assert (said["type"], said["error"]["type"]) == ("error", TYPES[status])
    else:
        assert set(said) == {"error"}


@pytest.mark.parametrize("what", OURS)
async def test_a_request_at_fault_is_told_so_at_every_endpoint_and_no_worker_asked(what: str):
    sending, status = OURS[what]
    limits = Limits(body_bytes=2000)
    async with ScriptedWorker([]).running() as worker:
        async with gateway(pool("p", worker.url), limits=limits) as g:
            for path in ASKED:
                check_error(path, await g.http.post(path, **sending), status)
    assert not worker.seen


async def test_keys_and_methods_are_asked_for_in_the_shape_of_the_endpoint_too():
    auth = Auth(keys=(ApiKey(name="a", sha256=ApiKey.digest("a")),))
    async with ScriptedWorker([]).running() as worker:
        async with gateway(pool("p", worker.url), auth=auth) as g:
            for path in [*ASKED, "/v1/audio/transcriptions"]:
                check_error(path, await g.http.post(path, json={"model": "m"}), 401)
                for method in ("GET", "PUT", "DELETE", "PATCH"):
                    key = {"x-api-key": "a"}
                    got = await g.http.request(method, path, headers=key)
                    check_error(path, got, 405)
                    assert got.headers["allow"] == "POST"
            got = await g.http.post("/v1/models", headers={"x-api-key": "a"}, json={})
            assert (got.status_code, got.headers["allow"]) == (405, "GET, HEAD")
    assert not worker.seen


@pytest.mark.parametrize(
    ("script", "status"), [([End.CLOSE], 502), ([b"zz\r\n\r\n"], 502), ([End.HANG], 504)]
)
async def test_a_workers_failure_is_told_in_the_shape_of_the_endpoint(script, status: int):
    timeouts = Timeouts(first_byte_s=0.1 if status == 504 else 9, shutdown_s=1)
    async with ScriptedWorker(script).running() as worker:
        async with gateway(pool("p", worker.url), timeouts=timeouts) as g:
            for path, asked in ASKED.items():
                for stream in {False, path in STREAMS}:
                    body = {"model": "m", **asked, "stream": stream}
                    check_error(path, await g.http.post(path, json=body), status)


STREAMS = {family.path for family in FAMILIES}


async def test_an_image_of_any_size_up_to_the_limit_passes_and_no_further():
    """The default limit is 32 MiB; a declared length is refused before the body is read."""
    async with ScriptedWorker([response(b"{}")]).running() as worker:
        async with gateway(pool("p", worker.url)) as g:
            for size in (1_200_000, 12_000_000):
                assert (await chat_with_image(g, size)).status_code == 200
                assert len(worker.seen[-1].body) > size
            assert (await chat_with_image(g, 2**25)).status_code == 413
    assert len(worker.seen) == 2


async def chat_with_image(g: Served, size: int) -> httpx.Response:
    url = "data:image/png;base64," + "A" * size
    return await g.chat([{"type": "image_url", "image_url": {"url": url}}])


@pytest.mark.parametrize(
    ("filler", "words"),
    [(b"[]," * 2**20 + b"{}", "objects and arrays"), (b"1," * 2**22 + b"1", "values")],
)
async def test_a_body_that_would_take_gigabytes_to_parse_is_refused(filler: bytes, words: str):
    body = b'{"model":"m","messages":[],"x":[%b]}' % filler
    async with gateway(pool("p", "http://127.0.0.1:9")) as g:
        answer = await g.http.post("/v1/chat/completions", content=body, headers=JSON)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
