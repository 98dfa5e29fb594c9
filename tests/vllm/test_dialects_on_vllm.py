"""What the dialects and hints take for granted of a real engine's streams, seen on one."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import httpx
import pytest

from paceline.core.chunks import Kind, UsageRemover
from paceline.core.dialects import Dialect, dialect_of, said_by
from paceline.core.hints import Hints
from paceline.core.rewrite import rewrite, usage_to_add
from paceline.core.types import Endpoint
from paceline_client.hints import parse_hint
from paceline_client.sse import SseParser, SseSplitter

pytestmark = pytest.mark.vllm

ASK = "Write five words about the sea."
GREEDY = {"temperature": 0, "seed": 7}
TURN = {"role": "user", "content": ASK}
REQUESTS: dict[Endpoint, tuple[str, dict[str, Any]]] = {
    Endpoint.CHAT_COMPLETIONS: (
        "/v1/chat/completions",
        {"messages": [TURN], "max_tokens": 12, "ignore_eos": True},
    ),
    Endpoint.COMPLETIONS: (
        "/v1/completions",
        {"prompt": [ASK, "The sea is"], "max_tokens": 12, "ignore_eos": True},
    ),
    Endpoint.RESPONSES: ("/v1/responses", {"input": ASK, "max_output_tokens": 12}),
    Endpoint.MESSAGES: ("/v1/messages", {"messages": [TURN], "max_tokens": 12}),
}


async def stream_of(url: str, path: str, raw: bytes) -> tuple[int, bytes]:
    headers = {"content-type": "application/json"}
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        answer = await http.post(path, content=raw, headers=headers)
    return answer.status_code, answer.content


def body_of(endpoint: Endpoint, **more: Any) -> tuple[str, dict[str, Any]]:
    path, body = REQUESTS[endpoint]
    seeded = GREEDY if endpoint is not Endpoint.MESSAGES else {"temperature": 0}
    return path, {"model": "smollm2", "stream": True, **body, **seeded, **more}


def kinds_of(dialect: Dialect, stream: bytes) -> tuple[list[Kind], list[dict[str, Any]]]:
    read = [dialect.read(block) for block in SseSplitter().feed(stream)]
    return [kind for kind, _ in read], [event for _, event in read if event]


@pytest.mark.parametrize("endpoint", REQUESTS)
@pytest.mark.parametrize("name", ["ngram", "plain"])
async def test_every_family_ends_as_its_dialect_knows(workers, endpoint, name) -> None:
    path, body = body_of(endpoint)
    if endpoint in (Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS):
        body["stream_options"] = {"include_usage": True}
    status, stream = await stream_of(getattr(workers, name).url, path, json.dumps(body).encode())
    assert status == 200, stream
    dialect = dialect_of(endpoint, num_choices=2 if endpoint is Endpoint.COMPLETIONS else 1)
    kinds, events = kinds_of(dialect, stream)
    assert kinds[-1] is Kind.DONE
    assert kinds.count(Kind.DONE) == 1
    assert kinds[0] is Kind.OTHER
    assert dialect.complete
    assert (b"[DONE]" in stream) == (endpoint in (Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS))
    told = [said.num_output_tokens for event in events if (said := said_by(event)) is not None]
    assert max(count for count in told if count is not None) == (
        24 if endpoint is Endpoint.COMPLETIONS else 12
    )


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS])
@pytest.mark.parametrize("asked", [{}, {"include_usage": True}, {"continuous_usage_stats": True}])
async def test_with_hints_the_client_gets_what_it_would_have_got(workers, endpoint, asked) -> None:
    path, body = body_of(endpoint, stream_options=asked)
    if endpoint is Endpoint.COMPLETIONS:
        body["prompt"] = ASK  # of several choices only the last gets its fingerprint back
    raw = json.dumps(body).encode()
    added = usage_to_add(endpoint, body, hints=True)
    sent = rewrite(
        raw, body, model="smollm2", add_usage=added.chunk, add_continuous_usage=added.members
    )
    for _ in range(5):  # a busy front end merges passes into one chunk: until it did so alike
        _, direct = await stream_of(workers.plain.url, path, raw)
        _, stream = await stream_of(workers.plain.url, path, sent)
        if stream.count(b"\n\n") == direct.count(b"\n\n") + added.chunk:
            break
    hints, dialect, remover = Hints(cut_usage=added.members), dialect_of(endpoint), UsageRemover()
    passed: list[bytes] = []
    for block in SseSplitter().feed(stream):
        kind, chunk = dialect.read(block)
        hinted = hints.hinted(block, 0.0)
        if not added.chunk:
            passed.append(hinted)
        elif kind is Kind.USAGE:
            passed.append(remover.usage(chunk))
        elif kind is Kind.FINISH:
            passed.append(remover.finishing(hinted))
        else:
            passed.append(remover.release() + hinted)

    told: list[int] = []
    parser = SseParser(on_comment=lambda text: told.append(parse_hint(text).num_tokens or 0))
    parser.feed(b"".join(passed))
    assert sum(told) == 12
    assert blocks_of(b"".join(passed)) == blocks_of(direct)


def blocks_of(stream: bytes) -> list[bytes]:
    """Without hints, and without what differs between any two answers."""
    stream = re.sub(rb"(?m)^: pace [^\n]*\n", b"", stream)
    return re.sub(rb'"(id|created)":(?:"[^"]*"|\d+)', rb'"\1":"-"', stream).split(b"\n\n")


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS])
async def test_what_is_refused_after_a_200_has_its_own_status(workers, endpoint) -> None:
    path, body = body_of(endpoint, min_p=0.1, temperature=1.0)
    status, stream = await stream_of(workers.ngram.url, path, json.dumps(body).encode())
    dialect = dialect_of(endpoint)
    rejection = dialect.rejection(dialect.first_event(SseSplitter().feed(stream)))
    assert status == 200
    assert rejection is not None
    assert rejection[0] == 400


async def test_messages_know_neither_min_p_nor_logit_bias(workers) -> None:
    path, body = body_of(Endpoint.MESSAGES, min_p=0.1, logit_bias={"5": 1}, temperature=1.0)
    status, stream = await stream_of(workers.ngram.url, path, json.dumps(body).encode())
    assert status == 200
    assert kinds_of(dialect_of(Endpoint.MESSAGES), stream)[0][-1] is Kind.DONE
    assert b"event: error" not in stream


async def test_a_response_that_is_refused_late_is_cut_off(workers) -> None:
    """No error event: the stream breaks off, behind openings alone."""
    path, body = body_of(Endpoint.RESPONSES, min_p=0.1, temperature=1.0)
    received = b""
    async with httpx.AsyncClient(base_url=workers.ngram.url, timeout=120) as http:
        async with http.stream("POST", path, json=body) as answer:
            with contextlib.suppress(httpx.RemoteProtocolError):
                async for data in answer.aiter_bytes():
                    received += data
    dialect, blocks = dialect_of(Endpoint.RESPONSES), SseSplitter().feed(received)
    assert answer.status_code == 200
    assert len(blocks) == 2
    assert dialect.first_event(blocks) is None
    assert [dialect.read(block)[0] for block in blocks] == [Kind.OTHER, Kind.OTHER]
    assert not dialect.complete
