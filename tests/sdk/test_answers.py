"""What a server says, read without I/O: events, hints, refusals, when to try again."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from paceline_client import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    BadStreamError,
    ConnectError,
    Hint,
    IncompleteStreamError,
    NotFoundError,
    OverloadedError,
    PacelineError,
    Retries,
    ServerError,
    StreamErrorEvent,
)
from paceline_client.answers import ChunkReader, refusal, retry_after_s, route_of
from paceline_client.hints import parse_hint


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(text: str, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}


# ---- events --------------------------------------------------------------------------------------


def test_chunks_with_the_hints_before_them() -> None:
    reader = ChunkReader()
    data = (
        b": pace n=3 t=18233 next=44\n" + event(delta("a"))
        + b": keep-alive\n\n: pace n=1\n\n" + event(delta("b")) + event(delta("c", "stop"))
    )  # fmt: skip
    arrived = list(reader.feed(data))
    assert [one.chunk["choices"][0]["delta"]["content"] for one in arrived] == ["a", "b", "c"]
    assert [one.hint for one in arrived] == [
        Hint(num_tokens=3, server_ms=18233, next_ms=44),
        Hint(num_tokens=1),
        None,
    ]


@pytest.mark.parametrize(
    ("comment", "hint"),
    [
        ("pace", None),
        ("pacemaker n=1", None),
        ("pace n=x next=-1 t=nan", Hint()),
        ("pace next=12.5 more=1 n=2", Hint(num_tokens=2, next_ms=12.5)),
    ],
)
def test_hints_as_they_may_be(comment: str, hint: Hint | None) -> None:
    assert parse_hint(comment) == hint


def test_nothing_is_read_after_done() -> None:
    reader = ChunkReader()
    data = event(delta("a", "stop")) + b"data: [DONE]\n\n" + event(delta("b")) + b"data: [DONE]\n\n"
    assert len(list(reader.feed(data))) == 1
    assert reader.done
    reader.end()


def test_an_end_before_the_finish_is_incomplete() -> None:
    reader = ChunkReader(num_choices=2)
    list(reader.feed(event(delta("a", "stop"))))
    with pytest.raises(IncompleteStreamError):
        reader.end()
    list(reader.feed(event(delta("b", "stop", index=1))))
    assert reader.all_finished
    reader.end()


def test_an_empty_finish_is_none() -> None:
    reader = ChunkReader()
    list(reader.feed(event(delta("a", ""))))
    assert not reader.all_finished


@pytest.mark.parametrize(
    ("data", "message", "kind"),
    [
        (event({"error": {"message": "long", "type": "BadRequest"}}), "long", "BadRequest"),
        (event({"error": "plain words"}), "plain words", None),
        (b"event: error\n" + event({"message": "bare", "type": "t"}), "bare", "t"),
        (b"event: error\n" + event({}), "the server reported an error", None),
    ],
)  # fmt: skip
def test_an_error_event_comes_after_the_chunks_before_it(
    data: bytes, message: str, kind: str | None
) -> None:
    events = ChunkReader(request_id="r1").feed(event(delta("a")) + data)
    assert next(events).chunk == delta("a")
    with pytest.raises(StreamErrorEvent, match=message) as caught:
        next(events)
    assert (caught.value.type, caught.value.request_id) == (kind, "r1")


@pytest.mark.parametrize("text", ["{", "[1]", "null", "nonsense"])
def test_what_cannot_be_read_is_an_error_and_not_skipped(text: str) -> None:
    with pytest.raises(BadStreamError):
        list(ChunkReader().feed(f"data: {text}\n\n".encode()))


def test_one_value_over_several_data_lines() -> None:
    data = b'data: {"choices":\ndata: []}\n\n'
    assert [one.chunk for one in ChunkReader().feed(data)] == [{"choices": []}]


def test_empty_data_and_keep_alives_as_data_are_no_events() -> None:
    assert list(ChunkReader().feed(b"data:\n\ndata: : keepalive\n\nretry: 3000\n\n")) == []


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequestError), (401, AuthenticationError), (403, AuthenticationError),
        (404, NotFoundError), (413, BadRequestError), (418, BadRequestError),
        (429, OverloadedError), (500, ServerError), (502, ServerError), (503, OverloadedError),
    ],
)  # fmt: skip
def test_errors_by_cause(status: int, kind: type[ApiError]) -> None:
    body = json.dumps({"error": {"message": "no", "type": "t", "param": "p", "code": "c"}})
    error = refusal(status, {"x-request-id": "r", "retry-after": "7"}, body.encode(), now_s=0)
    assert type(error) is kind
    assert (str(error), error.status, error.type, error.param) == ("no", status, "t", "p")
    assert (error.code, error.request_id, error.retry_after_s) == ("c", "r", 7)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the server said 500"),
        (b"<html>", "the server said 500"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"error": "Unauthorized"}', "Unauthorized"),
        (b'{"object": "error", "message": "old form"}', "old form"),
    ],
)
def test_bodies_in_other_forms(body: bytes, message: str) -> None:
    assert str(refusal(500, {}, body, now_s=0)) == message


def test_where_a_request_went() -> None:
    headers = {
        "x-request-id": "r", "x-paceline-pool": "ngram", "x-paceline-workload": "edit",
        "x-paceline-explain": '{"reason":"rule"}', "server-timing": "decide;dur=1",
    }  # fmt: skip
    route = route_of(headers)
    assert (route.request_id, route.pool, route.workload) == ("r", "ngram", "edit")
    assert route.explain == {"reason": "rule"}
    assert route_of({}).explain is None


# ---- trying again --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3), (" 0 ", 0), (None, None), ("soon", None), ("-1", None),
     ("Thu, 01 Jan 1970 00:00:12 GMT", 2), ("Thu, 01 Jan 1970 00:00:01 GMT", 0)],
)  # fmt: skip
def test_retry_after_in_both_forms(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, now_s=10) == seconds


def refused(status: int, after_s: float | None = None) -> ApiError:
    return ApiError("no", status=status, retry_after_s=after_s)


@pytest.mark.parametrize("error", [ConnectError("x"), refused(429), refused(502), refused(503)])
def test_what_may_mend_is_tried_again_after_growing_waits(error: PacelineError) -> None:
    random = Random(1)
    waits = [Retries(most=3).wait_s(number, error, random) for number in range(4)]
    assert waits[3] is None
    for number, wait_s in enumerate(waits[:3]):
        assert wait_s is not None
        assert 0.25 * 2**number <= wait_s <= 0.5 * 2**number


@pytest.mark.parametrize("error", [refused(400), refused(401), refused(500), PacelineError("x")])
def test_what_will_not_mend_is_let_be(error: PacelineError) -> None:
    assert Retries().wait_s(0, error, Random(1)) is None


def test_retry_after_is_obeyed_up_to_a_cap() -> None:
    assert Retries().wait_s(0, refused(503, 12), Random(1)) == 12
    assert Retries(longest_s=10).wait_s(0, refused(503, 12), Random(1)) is None
