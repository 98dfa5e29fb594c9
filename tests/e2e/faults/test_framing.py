"""What a stream's bytes say does not depend on how they are cut, nor on who wrote them how.

The client gets the worker's bytes: characters, comments, ids, byte-order marks and line ends as
they came, whatever a delta holds, and exactly one end mark.
"""

from __future__ import annotations

import json

import pytest

from families import CHAT, FAMILIES, Family
from harness import gateway, pool
from paceline.testing.scripted import (
    DONE,
    END,
    ScriptedWorker,
    Step,
    chunk,
    delta,
    event,
    stream,
    stream_head,
)

BOM = b"\xef\xbb\xbf"


async def asked(worker: ScriptedWorker, g, family: Family, *script: Step) -> bytes:
    worker.play(script)
    answer = await g.http.post(family.path, json=family.body)
    assert answer.status_code == 200
    return answer.content


async def test_every_split_gives_the_client_the_same_bytes():
    """Cut in two at every byte: of a character, a line end, a name, a comment, an end mark."""
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            whole = b": wait\n\n" + family.whole
            for at in range(1, len(whole)):
                halves = [chunk(whole[:at]), chunk(whole[at:])]
                got = await asked(worker, g, family, stream_head(), *halves, END)
                assert got == family.seen_of(whole), whole[:at]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
async def test_many_splits_give_the_same_bytes(size: int):
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            whole = BOM + b": wait\r\r" + family.whole
            pieces = [chunk(whole[at : at + size]) for at in range(0, len(whole), size)]
            assert await asked(worker, g, family, stream_head(), *pieces, END) == family.seen_of(
                whole
            )


@pytest.mark.parametrize("size", [1, 5, 11])
async def test_the_cuts_of_writes_fall_within_chunk_sizes_and_heads_too(size: int):
    script = b"".join(step for step in stream(CHAT.whole) if isinstance(step, bytes))
    steps = [script[at : at + size] for at in range(0, len(script), size)]
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        assert await asked(worker, g, CHAT, *steps) == CHAT.whole


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
async def test_all_line_ends_pass_as_they_came(line_end: bytes):
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            usage = family.usage.replace(b"\n", line_end)
            whole = family.whole.replace(b"\n", line_end)
            wanted = whole if family.keeps_usage else whole.replace(usage, b"")
            halves = [chunk(whole[:70]), chunk(whole[70:])]
            got = await asked(worker, g, family, stream_head(), *halves, END)
            # After the last CR an LF could still belong to it, so what ends there is a matter of
            # the end of the body.
            assert got.rstrip(b"\r\n") == wanted.rstrip(b"\r\n")


ODD_EVENTS = {
    "a comment": b": ping\n\n",
    "a comment in an event": b": ping\n" + delta("x"),
    "an empty comment": b":\n\n",
    "a keep-alive as data": b"data: : keepalive\n\n",
    "empty data": b"data:\n\n",
    "an event without data": b"event: ping\n\n",
    "retry": b"retry: 3000\n\n",
    "an id": b"id: 1\n" + delta("x"),
    "a byte-order mark within": BOM + delta("x"),
    "a field nobody knows": b"foo: bar\n\n",
    "no space": b'data:{"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n',
    "several lines": b'data: {"choices":\ndata: [{"index": 0,\ndata: "delta": {}}]}\n\n',
    "no JSON": b"data: {half\n\n",
    "unicode line ends": delta("\u2028\u2029\u0085"),
    "escapes": b'data: {"choices":[{"delta":{"content":"\\u5317\\ud83c\\udf0d"}}]}\n\n',
    "bytes that are no UTF-8": b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n',
    "a long event": delta("x" * 300_000),
    "blank lines": b"\n\n\n",
}


@pytest.mark.parametrize("place", ["first", "later"])
async def test_odd_events_pass_byte_for_byte(place: str):
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            for name, odd in ODD_EVENTS.items():
                before, behind = (b"", family.whole) if place == "first" else parted(family)
                script = stream(before, odd, behind) if before else stream(odd, behind)
                got = await asked(worker, g, family, *script)
                assert got == family.seen_of(before + odd + behind), name


def parted(family: Family) -> tuple[bytes, bytes]:
    first = family.opening + family.text[0]
    return first, family.whole.removeprefix(first)


def choice(delta: dict, index: int = 0, **more: object) -> bytes:
    return event({"id": "c", "choices": [{"index": index, "delta": delta, **more}]})


TOOL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
PAYLOADS = {
    "tools": [
        choice({"tool_calls": [TOOL]}),
        choice({"tool_calls": [{"index": 0, "id": None, "function": {"arguments": '{"a'}}]}),
        choice({"tool_calls": [{"function": {"name": None, "arguments": '": 1}'}}]}),
        choice({}, finish_reason="tool_calls"),
    ],
    "logprobs": [
        choice({"content": "a"}, 0, logprobs={"content": [{"token": "a", "logprob": -0.1}]}),
        choice({"content": "b"}, 1, logprobs={"content": [{"token": "b", "logprob": -1e-05}]}),
        choice({"content": "c"}, 0, logprobs=None, token_ids=[1, 2]),
    ],
    "both choices in one": [
        event({"choices": [{"index": 1, "delta": {"content": "x"}}, {"index": 0, "delta": {}}]})
    ],
    "reasoning": [
        choice({"reasoning": "hm"}),
        choice({"reasoning_content": "hm", "reasoning": "hm"}),
    ],
    "refusal": [choice({"refusal": "I can"}), choice({"refusal": "not."}, finish_reason="stop")],
    "finish reasons": [
        *[choice({"content": "x"}, finish_reason=reason) for reason in ("", None)],
        *[choice({}, index=i, finish_reason=why) for i, why in enumerate(["abort", "eos", "odd"])],
    ],
    "an empty delta with more": [choice({}, signature="s"), choice({"content": ""}, extra=[1.0])],
    "numbers": [
        b'data: {"choices":[{"index":0,"delta":{}}],"x":1.0E+2,"y":12345678901234567890}\n\n'
    ],
}


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_what_deltas_hold_is_the_clients_untouched(payload: str):
    events = [*PAYLOADS[payload], delta("", finish="stop")]
    sent = b"".join(events) + DONE
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for body in (CHAT.body, {**CHAT.body, "stream_options": None, "n": 3}):
            for script in (
                stream(*PAYLOADS[payload], delta("", finish="stop"), DONE),
                stream(sent, DONE),
            ):
                worker.play(script)
                answer = await g.http.post(CHAT.path, json=body)
                assert answer.content == sent


# -- the end mark ------------------------------------------------------------------------------

FINISHED = delta("x", finish="stop")


@pytest.mark.parametrize(
    "behind", [DONE, delta("after"), b": after\n\n", DONE + delta("after"), b"data: [DO", b"\n"]
)
async def test_exactly_one_end_mark_and_nothing_behind_it(behind: bytes):
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for script in (stream(FINISHED, DONE, behind), stream(FINISHED + DONE + behind)):
            for _ in range(2):
                assert await asked(worker, g, CHAT, *script) == FINISHED + DONE
        # One of its own for the requests, since a body that ends is no reason to cut; the probes
        # may hold another.
        assert worker.num_connections <= 2


@pytest.mark.parametrize(
    "mark", [b"data:[DONE]\n\n", b"data: [DONE]\r\n\r\n", b"data: [DONE] \n\n"]
)
async def test_the_end_mark_may_be_written_in_any_way(mark: bytes):
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        assert await asked(worker, g, CHAT, *stream(FINISHED, mark, delta("x"))) == FINISHED + mark


async def test_text_that_names_ends_is_text():
    names = 'data: [DONE]\n\nevent: error\n"finish_reason": "stop", "choices": [], message_stop'
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for family in FAMILIES:
            text = family.text[1].replace("北🌍".encode(), json.dumps(names)[1:-1].encode())
            assert text != family.text[1]
            first, rest = parted(family)
            got = await asked(worker, g, family, *stream(first, text, rest))
            assert got == family.seen_of(first + text + rest)


@pytest.mark.parametrize("missing", [b"", b"\n", b"\n\n"])
async def test_a_last_event_needs_no_blank_line(missing: bytes):
    last = FINISHED.removesuffix(b"\n\n") + missing
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        got = await asked(worker, g, CHAT, stream_head(), chunk(last), END)
    assert got.rstrip(b"\n") == FINISHED.rstrip(b"\n")


async def test_an_empty_finish_reason_is_none():
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        sent = delta("x", finish="")
        got = await asked(worker, g, CHAT, stream_head(), chunk(sent), END)
    assert got.startswith(sent)
    assert CHAT.error_of(got) == "worker_died"


async def test_every_choice_must_have_said_why_it_ended():
    sent = delta("a", finish="stop") + delta("b", index=1)
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        worker.play([stream_head(), chunk(sent), END])
        answer = await g.http.post(CHAT.path, json={**CHAT.body, "n": 2})
    assert CHAT.error_of(answer.content) == "worker_died"


async def test_an_event_without_end_has_a_bound():
    """Memory per stream stays bounded. (Nor is the status held for more than a mebibyte of one.)"""
    endless = [chunk(b"data: " + b"x" * 2**20)] + [chunk(b"x" * 2**20)] * 17
    async with ScriptedWorker([]).running() as worker, gateway(pool("p", worker.url)) as g:
        for before in (b": first\n\n", CHAT.text[0]):
            got = await asked(worker, g, CHAT, stream_head(), chunk(before), *endless, END)
            assert got.startswith(before)
            assert CHAT.error_of(got) == "worker_protocol_error"
