"""Who may ask, what of that goes further, and where requests go: to configured workers alone.

Clients' keys never reach workers, workers' keys never reach clients; addresses in bodies and
headers are plain data, and nothing is fetched or followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from families import CHAT, FAMILIES
from harness import gateway, pool
from paceline.settings import ApiKey, Auth
from paceline.testing.scripted import ScriptedWorker, response, stream

ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'
GOOD = b'{"model":"m","messages":[]}'
KEYS = Auth(
    keys=(
        ApiKey(name="a", sha256=ApiKey.digest("secret-a"), debug=True),
        ApiKey(name="b", sha256=ApiKey.digest("secret-b")),
    )
)
KEY = {"authorization": "Bearer secret-a"}


def worker() -> ScriptedWorker:
    return ScriptedWorker([response(ANSWER)])


# -- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT.path, "/v1/models", "/v1/models/m", "/nowhere", "/metrics"])
async def test_without_a_known_key_nothing_is_served(path: str):
    wrong = ["", "secret-a", "Bearer", "Bearer secret-A", "Basic secret-a", "Bearer é", "Bearer\t"]
    async with worker().running() as w, gateway(pool("p", w.url), auth=KEYS) as g:
        for given in [{}, *({"authorization": value.strip().encode()} for value in wrong)]:
            for more in ({}, {"x-api-key": "secret-A"}):
                method = "POST" if path == CHAT.path else "GET"
                headers = {**given, **more}
                answer = await g.http.request(method, path, headers=headers, content=GOOD)
                error = answer.json()["error"]
                assert (answer.status_code, error["code"]) == (401, "invalid_api_key")
    assert not w.seen


@pytest.mark.parametrize("how", [("authorization", "bearer secret-b"), ("x-api-key", "secret-b")])
async def test_a_key_serves_and_goes_no_further(how: tuple[str, str]):
    more = {"cookie": "a=secret-b", "proxy-authorization": "secret-b", "x-secret": "secret-b"}
    async with ScriptedWorker([]).running() as w:
        async with gateway(pool("p", w.url, key="worker-key"), auth=KEYS) as g:
            for family in FAMILIES:
                w.play(stream(family.whole))
                headers = dict([how], **more)
                answer = await g.http.post(family.path, json=family.body, headers=headers)
                assert answer.status_code == 200
    for seen in w.seen:
        assert seen.header("authorization") == ["Bearer worker-key"]
        assert not any("secret-b" in value for _, value in seen.headers)
        assert b"secret-b" not in seen.body


async def test_a_worker_without_a_key_gets_none():
    async with worker().running() as w, gateway(pool("p", w.url), auth=KEYS) as g:
        assert (await g.chat(headers={**KEY, "x-api-key": "k"})).status_code == 200
    names = {name.lower() for name, _ in w.seen[0].headers}
    assert not {"authorization", "x-api-key", "cookie", "user-agent"} & names


ECHOES = [
    response(ANSWER, extra=["Authorization: Bearer worker-key", "Set-Cookie: key=worker-key"]),
    response(ANSWER, extra=["X-Api-Key: worker-key", "Proxy-Authenticate: worker-key"]),
    response(b'{"error":"bad key worker-key"}', status=401),
    response(b'{"error":"bad key worker-key"}', status=403),
    response(b"", status=302, extra=["Location: http://worker-key@10.0.0.7/"]),
    b"worker-key\r\n\r\n",
]


@pytest.mark.parametrize("echo", ECHOES)
async def test_a_workers_key_reaches_no_client(echo: bytes, caplog):
    async with ScriptedWorker([echo]).running() as w:
        async with gateway(pool("p", w.url, key="worker-key")) as g:
            answer = await g.chat(headers={"x-paceline-explain": "1"})
            state = (await g.http.get(f"{g.admin_url}/admin/state")).text
            metrics = (await g.http.get(f"{g.admin_url}/metrics")).text
    assert w.seen[0].header("authorization") == ["Bearer worker-key"]
    for said in (answer.text, str(answer.headers.raw), state, metrics, caplog.text):
        assert "worker-key" not in said


async def test_explanations_need_a_debug_key():
    async with worker().running() as w, gateway(pool("p", w.url), auth=KEYS) as g:
        ask = {"x-paceline-explain": "1"}
        allowed = await g.chat(headers={**ask, "authorization": "Bearer secret-a"})
        refused = await g.chat(headers={**ask, "authorization": "Bearer secret-b"})
    explained = json.loads(allowed.headers["x-paceline-explain"])
    assert explained["pool"] == "p"
    assert explained["because"] is not None
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


# -- paths -------------------------------------------------------------------------------------

DENIED = [
    "/v1/models?/health",
    "//health",
    "/health/",
    "/health/../v1/models",
    "/health/..%2fv1/models",
    "/health%2f..%2fv1%2fmodels",
    "/health;/v1/models",
    "/version%00",
    "/health%20",
    "/v1%2fmodels",
    "/V1/models",
    "/%2568ealth",
    "/v1/chat/completions/../../../health",
    "http://x/v1/models",
    "http://x/health/../v1/models",
]
"""A path is what it is once decoded: it opens nothing by what stands in front, behind or within."""


async def test_without_a_key_only_the_open_paths_themselves_are_open():
    async with worker().running() as w, gateway(pool("p", w.url), auth=KEYS) as g:
        for target in DENIED:
            for host in ("x", "x/health?", "health"):
                assert await status(g, target, host) == 401, target
        for target in ("/health", "/%68ealth", "http://other.example/health", "/health?x=/v1"):
            assert await status(g, target, "x") == 200, target
    assert not w.seen


async def test_a_worker_is_asked_for_the_endpoints_path_and_no_other():
    targets = {
        "/v1/chat/completions?api=/x&b=%0d%0aX:%201": 200,
        "/v1%2Fchat/completions": 200,  # decoded once, it is the endpoint
        "http://other.example:1/v1/chat/completions": 200,
        "/v1/chat/completions/": 404,
        "/v1/./chat/completions": 404,
        "/x/../v1/chat/completions": 404,
        "/v1/chat%252fcompletions": 404,
        "/v1/chat/completions%0d%0aX:%201": 404,
    }
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        for target, wanted in targets.items():
            assert await status(g, target, "x", b'{"model":"m"}') == wanted, target
    assert {seen.path for seen in w.seen} == {"/v1/chat/completions"}
    assert all(seen.header("host") == [w.url.removeprefix("http://")] for seen in w.seen)
    assert all(not seen.header("x") for seen in w.seen)


async def status(g, target: str, host: str, body: bytes = b"") -> int:
    """Of a request whose target and host are sent as they are."""
    name, port = g.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    lines = [f"{'POST' if body else 'GET'} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    return int(answer.split(b" ")[1])


# -- targets -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def bait() -> AsyncIterator[tuple[str, list[object]]]:
    """An address, and who has called there."""
    callers: list[object] = []
    server = await asyncio.start_server(lambda _, writer: callers.append(writer), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", callers
    finally:
        server.close()


async def test_addresses_in_bodies_and_headers_are_plain_data():
    async with bait() as (url, callers), worker().running() as w, gateway(pool("p", w.url)) as g:
        image = {"type": "image_url", "image_url": {"url": f"{url}/image.png"}}
        body = {
            name: url for name in ("api_base", "base_url", "callback", "user", "proxy", "api_key")
        }
        headers = {
            name: url
            for name in ("x-backend-url", "x-forwarded-host", "forwarded", "x-original-url",
                         "x-rewrite-url", "x-host", "referer", "origin", "x-data-parallel-rank")
        }  # fmt: skip
        answer = await g.chat([image], headers=headers, **body)
        assert answer.status_code == 200
        assert w.seen[0].json == {
            "model": "up",
            "messages": [{"role": "user", "content": [image]}],
            **body,
        }
        await g.http.post(CHAT.path, json={"model": url, "messages": []})
        assert not callers
    assert len(w.seen) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_workers_redirect_is_not_followed_nor_passed_on(code: int):
    async with bait() as (url, callers):
        redirect = response(b"", status=code, extra=[f"Location: {url}/x"])
        async with ScriptedWorker([redirect]).running() as w, gateway(pool("p", w.url)) as g:
            answer = await g.chat()
            assert not callers
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "worker_protocol_error")
    assert "location" not in answer.headers
    assert len(w.seen) == 1
