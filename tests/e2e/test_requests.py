"""What the gateway takes in: bodies, headers, keys, paths; and what a worker then gets."""

from __future__ import annotations

import gzip

import pytest

from harness import NGRAM, gateway, pool
from paceline.settings import ApiKey, Auth, Limits
from paceline.testing.scripted import ScriptedWorker, response

ANSWER = b'{"choices": [{"index": 0, "message": {"content": "hello"}}]}'
CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}
KEYS = Auth(
    keys=(
        ApiKey(name="a", sha256=ApiKey.digest("secret-a"), debug=True),
        ApiKey(name="b", sha256=ApiKey.digest("secret-b")),
    )
)


def worker() -> ScriptedWorker:
    return ScriptedWorker([response(ANSWER)])


async def post(g, content: bytes, headers: dict[str, str] | None = None, path: str = CHAT):
    return await g.http.post(path, content=content, headers=JSON if headers is None else headers)


GOOD = b'{"model":"m","messages":[]}'
BAD_BODIES = [
    (b"", JSON, 400, "valid JSON"),
    (b'{"model":', JSON, 400, "valid JSON"),
    (b"[]", JSON, 400, "object"),
    (b"null", JSON, 400, "object"),
    (b'{"model":"m","x":NaN}', JSON, 400, "valid JSON"),
    (b'{"model":"m"} {}', JSON, 400, "valid JSON"),
    (b'{"model":"m","x":"\xff"}', JSON, 400, "valid JSON"),
    (b'{"model":"m","x":"\\ud800"}', JSON, 400, "valid JSON"),
    (b"[" * 100_000, JSON, 400, "valid JSON"),
    (b'{"messages":[]}', JSON, 400, "model"),
    (b'{"model":7}', JSON, 400, "model"),
    (b'{"model":""}', JSON, 400, "model"),
    (b'{"model":null}', JSON, 400, "model"),
    (b'{"model":"m","stream":"yes"}', JSON, 400, "stream"),
    (b'{"model":"m","stream":1}', JSON, 400, "stream"),
    (b'{"model":"M"}', JSON, 404, "no model 'M'"),
    (b'{"model":"up"}', JSON, 404, "no model 'up'"),
    (GOOD, {}, 415, "application/json"),
    (GOOD, {"content-type": "text/plain"}, 415, "application/json"),
    (GOOD, {**JSON, "content-encoding": "br"}, 415, "gzip"),
    (GOOD, {**JSON, "content-encoding": "gzip"}, 400, "Content-Encoding"),
    (gzip.compress(GOOD)[:-3], {**JSON, "content-encoding": "gzip"}, 400, "cut short"),
    (gzip.compress(GOOD) + b"more", {**JSON, "content-encoding": "gzip"}, 400, "Content-Encoding"),
    (GOOD, {**JSON, "x-paceline-workload": "poetry"}, 400, "code, chat, edit"),
    (GOOD, {**JSON, "x-paceline-priority": "high"}, 400, "interactive, batch"),
]


@pytest.mark.parametrize(("content", "headers", "status", "says"), BAD_BODIES)
async def test_bad_input_is_refused_with_its_reason_and_no_worker_called(
    content: bytes, headers: dict[str, str], status: int, says: str
):
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        answer = await post(g, content, headers)
    error = answer.json()["error"]
    assert answer.status_code == status
    assert says in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]
    assert not w.seen


ODD_BODIES = [
    b'{"model":"m","messages":5}',
    b'{"model":"m","messages":[5,null,{"role":7,"content":{"text":1}}]}',
    b'{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"},7,{"text":3}]}]}',
    b'{"model":"m","prompt":[1,2,3],"suffix":4,"n":"many","tools":{},"response_format":[]}',
    b'{"model":"m","temperature":"hot","max_tokens":true,"logit_bias":7,"prediction":1}',
    b'{"model":"m","stream_options":7,"stream":true}',
]


@pytest.mark.parametrize("content", ODD_BODIES)
@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
async def test_what_only_the_worker_can_judge_is_left_to_it(content: bytes, path: str):
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        answer = await post(g, content, path=path)
    assert answer.status_code == 200
    assert w.seen[0].body == content.replace(b'"model":"m"', b'"model":"up"')
    assert w.seen[0].path == path


async def test_a_worker_gets_the_clients_own_bytes_under_its_own_name():
    odd = (
        '{ "chat_template_kwargs": {"thinking": false, "model": "m"},\t"temperature": 1.0E+0,'
        '"messages":[{"role":"assistant","tool_calls":[]},{"role":"tool","content":["x"]},'
        '{"role":"user","content":"caf\\u00e9 北 \\"model\\": \\"m\\""}],'
        '"tools":[{"type":"function","function":{"name":"f"}}],'
        ' "mod\\u0065l" : "alias" ,"seed":1e3}'
    ).encode()
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        assert (await post(g, odd)).status_code == 200
    assert w.seen[0].body == odd.replace(b'"alias"', b'"up"')
    assert w.seen[0].header("content-type") == ["application/json"]
    assert w.seen[0].header("content-length") == [str(len(odd) - 3)]


async def test_a_gzip_body_is_sent_on_plain():
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        answer = await post(g, gzip.compress(GOOD), {**JSON, "content-encoding": "gzip"})
    assert answer.status_code == 200
    assert w.seen[0].json == {"model": "up", "messages": []}
    assert w.seen[0].header("content-encoding") == []


async def test_bodies_over_the_limit_are_refused_however_they_come():
    async def pieces():
        for _ in range(20):
            yield b"x" * 100

    bomb = gzip.compress(b" " * 10_000_000)
    limits = Limits(body_bytes=1000)
    async with worker().running() as w, gateway(pool("p", w.url), limits=limits) as g:
        declared = await post(g, b"x" * 1001)
        chunked = await g.http.post(CHAT, content=pieces(), headers=JSON)
        inflated = await post(g, bomb[:900], {**JSON, "content-encoding": "gzip"})
        fits = await post(g, GOOD + b" " * (1000 - len(GOOD)))
    assert [a.status_code for a in (declared, chunked, inflated)] == [413, 413, 413]
    assert fits.status_code == 200
    assert len(w.seen) == 1


# -- paths, ids, routing -----------------------------------------------------------------------


async def test_open_paths_and_lists():
    async with worker().running() as w, gateway(pool("p", w.url), auth=KEYS) as g:
        for path in ("/health", "/ready", "/version"):
            assert (await g.http.get(path)).status_code == 200
        options = await g.http.options(CHAT)
        key = {"authorization": "Bearer secret-a"}
        models = (await g.http.get("/v1/models", headers=key)).json()
        one = (await g.http.get("/v1/models/alias", headers=key)).json()
        none = await g.http.get("/v1/models/nope", headers=key)
        wrong = await g.http.get(CHAT, headers=key)
        nowhere = await g.http.get("/v1/nowhere", headers=key)
    assert (options.status_code, options.headers["allow"]) == (204, "POST, OPTIONS")
    assert [card["id"] for card in models["data"]] == ["m", "alias"]
    assert one["id"] == "alias"
    assert [a.status_code for a in (none, wrong, nowhere)] == [404, 405, 404]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2_3", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)],
)
async def test_a_request_id_is_kept_where_it_is_harmless(given: str, kept: bool):
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        answers = [await g.chat(headers={"x-request-id": given}) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    upstream = [seen.header("x-request-id")[0] for seen in w.seen]
    assert (ids == [given, given]) == kept
    assert len(set(upstream)) == 2, "two live requests never share one id in a worker"
    assert all(len(value) <= 128 for value in upstream)


async def test_a_clients_label_replaces_the_class():
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        answer = await g.chat("Why is the sky blue?", headers={"x-paceline-workload": "edit"})
    assert answer.headers["x-paceline-workload"] == "edit"


async def test_server_timing_is_in_milliseconds():
    async with worker().running() as w, gateway(pool("p", w.url)) as g:
        answer = await g.chat()
    names = [part.strip().split(";")[0] for part in answer.headers["server-timing"].split(",")]
    assert names == ["queue", "decide", "worker"]


async def test_idle_workers_share_the_traffic_and_a_busy_one_is_spared():
    first, second = worker(), worker()
    async with first.running(), second.running():
        async with gateway(pool("p", first.url, second.url)) as g:
            for _ in range(10):
                await g.chat()
            assert (len(first.seen), len(second.seen)) == (5, 5)
            with g.fleet.workers[first.url].request():
                for _ in range(4):
                    await g.chat()
    assert (len(first.seen), len(second.seen)) == (5, 9)


# -- the admin plane ---------------------------------------------------------------------------


async def test_the_admin_plane_wants_its_key_and_a_host_that_cannot_be_rebound():
    async with worker().running() as w, gateway(pool("p", w.url), admin_key="admin") as g:
        metrics = f"{g.admin_url}/metrics"
        key = {"authorization": "Bearer admin"}
        without = await g.http.get(metrics)
        wrong = await g.http.get(metrics, headers={"authorization": "Bearer x"})
        assert (without.status_code, wrong.status_code) == (401, 401)
        assert without.text == "send the admin key as `Authorization: Bearer KEY`"
        assert wrong.text == f"this is not the admin key; {without.text}"
        assert (await g.http.get(metrics, headers=key)).status_code == 200
        for host, status in [("evil.example", 400), ("localhost:1", 200), ("[::1]:8081", 200)]:
            answer = await g.http.get(metrics, headers={**key, "host": host})
            assert answer.status_code == status, host


async def test_state_shows_pools_and_workers():
    async with worker().running() as w:
        async with gateway(pool("n", w.url, speculation=NGRAM), pool("p", w.url)) as g:
            state = (await g.http.get(f"{g.admin_url}/admin/state")).json()
    [model] = state["models"]
    assert model["default_pool"] == "p"
    assert [p["speculation"] and p["speculation"]["method"] for p in model["pools"]] == [
        "ngram",
        None,
    ]
