"""How each family's streams speak: told by a look where that is enough, the same at any split."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
import openai
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import chunks, named_events
from paceline.core.acceptance import SpeculationReport
from paceline.core.chunks import Kind
from paceline.core.dialects import Dialect, Said, dialect_of, said_by, said_in
from paceline.core.error_shapes import anthropic_type, error_body, status_of
from paceline.core.types import Endpoint
from paceline.errors import (
    ConfigurationError,
    InvalidRequest,
    PacelineError,
    RequestError,
    ShuttingDown,
    Unauthorized,
    WorkerDied,
    WorkerTimeout,
)
from paceline_client.sse import SseParser, SseSplitter, event_data


def data(value: Any) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def named(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\n".encode() + data(event)


# ---- streams as vLLM 0.32 sends them -------------------------------------------------------------


def chat_stream(text: str) -> list[bytes]:
    def chunk(content: str, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
        return data({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})

    usage = {"prompt_tokens": 2, "completion_tokens": 3}
    spoken = {"num_spec_steps": 2, "num_draft_tokens": 6, "num_accepted_draft_tokens": 1}
    metrics = {"speculative_decoding": spoken}
    last = {"id": "c", "choices": [], "usage": usage, "metrics": metrics}
    return [chunk(""), chunk(text), chunk("", "stop"), data(last), b"data: [DONE]\n\n"]


def responses_stream(text: str, end: str = "response.completed") -> list[bytes]:
    opened = {"id": "r", "error": None, "status": "in_progress", "output": [], "usage": None}
    usage = {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "i", "content": [part]}
    ended = {**opened, "status": end.removeprefix("response."), "output": [item], "usage": usage}
    events = [
        {"response": opened, "sequence_number": 0, "type": "response.created"},
        {"response": opened, "sequence_number": 1, "type": "response.in_progress"},
        {"output_index": 0, "sequence_number": 2, "type": "response.output_item.added"},
        {"delta": text, "sequence_number": 3, "type": "response.output_text.delta"},
        {"text": text, "sequence_number": 4, "type": "response.output_text.done"},
        {"item": item, "sequence_number": 5, "type": "response.output_item.done"},
        {"response": ended, "sequence_number": 6, "type": end},
    ]
    return [named(event) for event in events]


def messages_stream(text: str) -> list[bytes]:
    started = {"id": "m", "type": "message", "role": "assistant", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**started, "usage": {"output_tokens": 0}}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}, "index": 0},
        {
            "type": "content_block_delta",
            "delta": {"type": "text_delta", "text": text},
            "index": 0,
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"input_tokens": 2, "output_tokens": 3},
        },
        {"type": "message_stop"},
    ]
    return [named(event) for event in events]


STREAMS = {
    Endpoint.CHAT_COMPLETIONS: chat_stream,
    Endpoint.RESPONSES: responses_stream,
    Endpoint.MESSAGES: messages_stream,
}
KINDS = {
    Endpoint.CHAT_COMPLETIONS: [
        Kind.OTHER, Kind.OTHER, Kind.FINISH, Kind.USAGE, Kind.DONE,
    ],
    Endpoint.RESPONSES: [Kind.OTHER] * 6 + [Kind.DONE],
    Endpoint.MESSAGES: [Kind.OTHER] * 4 + [Kind.USAGE, Kind.DONE],
}  # fmt: skip
FAMILIES = sorted(STREAMS)

tricky = st.text(max_size=20) | st.sampled_from(
    [
        "error", '"error"', '{"error":{"code":400}}', "response.completed", "response.failed",
        'event: error\ndata: {"type":"error"}\n\n', "\nevent: message_stop\n", "message_delta",
        '"type":"message_stop"', "[DONE]", "data: [DONE]\n\n", '"finish_reason":"stop"',
        '"choices":[]', '"sequence_number":99', "\r\n\r\n", "\u2028", "ping",
    ]
)  # fmt: skip


@given(text=tricky, endpoint=st.sampled_from(FAMILIES), cuts=st.lists(st.integers(0, 2000)))
@settings(deadline=None, max_examples=200)
def test_any_split_and_any_text_give_the_same_kinds(
    text: str, endpoint: Endpoint, cuts: list[int]
) -> None:
    stream = b"".join(STREAMS[endpoint](text))
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter, dialect = SseSplitter(), dialect_of(endpoint)
    kinds: list[Kind] = []
    for start, end in pairwise(edges):
        kinds += [dialect.read(block)[0] for block in splitter.feed(stream[start:end])]
    assert kinds == KINDS[endpoint]
    assert dialect.complete


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
@pytest.mark.parametrize("endpoint", FAMILIES)
def test_any_line_end_gives_the_same_kinds(endpoint: Endpoint, line_end: bytes) -> None:
    stream = b": hello\n\n" + b"".join(STREAMS[endpoint]("error"))
    splitter, dialect = SseSplitter(), dialect_of(endpoint)
    fed = stream.replace(b"\n", line_end)
    blocks = [block for at in range(len(fed)) for block in splitter.feed(fed[at : at + 1])]
    kinds = [dialect.read(block)[0] for block in blocks]
    assert kinds == [Kind.OTHER, *KINDS[endpoint]]


TEXT_AT = {Endpoint.CHAT_COMPLETIONS: 1, Endpoint.RESPONSES: 3, Endpoint.MESSAGES: 2}


@pytest.mark.parametrize("endpoint", FAMILIES)
def test_text_is_told_without_reading_it(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(data: bytes | None) -> Any:
        raise AssertionError(f"read as JSON: {data!r}")

    monkeypatch.setattr(named_events, "json_or_none", unwanted)
    monkeypatch.setattr(chunks, "json_or_none", unwanted)
    block = STREAMS[endpoint]("an error, and message_delta too")[TEXT_AT[endpoint]]
    assert b"an error" in block
    assert dialect_of(endpoint).read(block) == (Kind.OTHER, {})


@pytest.mark.parametrize("endpoint", FAMILIES)
def test_what_an_answer_says_at_its_end(endpoint: Endpoint) -> None:
    dialect = dialect_of(endpoint)
    read = [dialect.read(block) for block in STREAMS[endpoint]("x")]
    said = [said_by(event) for kind, event in read if event.get("usage") or event.get("response")]
    (last,) = said
    assert last.num_output_tokens == 3
    report = SpeculationReport(num_spec_steps=2, num_draft_tokens=6, num_accepted_draft_tokens=1)
    assert last.report == (report if endpoint is Endpoint.CHAT_COMPLETIONS else None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"usage": {"completion_tokens": 4}}, 4),
        ({"usage": {"output_tokens": 4, "input_tokens": 9}}, 4),
        ({"object": "list", "usage": {"prompt_tokens": 4}}, None),
        ({"usage": {"completion_tokens": True}}, None),
        ({"usage": None, "response": None}, None),
        ({"response": {"usage": {"output_tokens": "4"}}}, None),
        ({}, None),
    ],
)
def test_output_tokens_of_a_whole_answer(answer: dict[str, Any], expected: int | None) -> None:
    assert said_by(answer).num_output_tokens == expected


def test_prompt_tokens_by_either_name() -> None:
    assert said_by({"usage": {"prompt_tokens": 4}}).num_prompt_tokens == 4
    assert said_by({"usage": {"input_tokens": 5}}).num_prompt_tokens == 5


counts = st.none() | st.integers(-2, 40) | st.booleans() | st.text(max_size=2)
reports = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "num_spec_steps": counts,
        "num_draft_tokens": counts,
        "num_accepted_draft_tokens": counts,
        "acceptance_histogram": counts | st.lists(counts, max_size=4),
        "more": counts,
    },
)
whole_answers = st.fixed_dictionaries(
    {},
    optional={
        "usage": st.none() | st.just([]) | st.fixed_dictionaries(
            {},
            optional={
                "completion_tokens": counts, "output_tokens": counts,
                "prompt_tokens": counts, "input_tokens": counts, "details": counts,
            },
        ),
        "metrics": counts | st.fixed_dictionaries({}, optional={"speculative_decoding": reports}),
        "response": st.none() | st.just({"usage": {"output_tokens": 3}}),
        "choices": st.lists(counts, max_size=3),
    },
)  # fmt: skip


@given(whole_answers | counts | st.lists(counts, max_size=2))
def test_bytes_say_what_they_say_once_parsed(answer: Any) -> None:
    assert said_in(orjson.dumps(answer)) == said_by(answer if isinstance(answer, dict) else {})


def test_what_is_no_json_says_nothing() -> None:
    assert said_in(b"") == said_in(b"\xff{") == said_in(b'{"usage":') == Said()


# ---- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["response.completed", "response.incomplete", "response.failed"])
@pytest.mark.parametrize("with_line", [True, False])
def test_a_response_ends_with_its_last_event_alone(end: str, with_line: bool) -> None:
    dialect = dialect_of(Endpoint.RESPONSES)
    *before, last = responses_stream("x", end)
    for block in before:
        assert dialect.read(block)[0] is Kind.OTHER
        assert not dialect.complete
    kind, event = dialect.read(last if with_line else last.partition(b"\n")[2])
    assert (kind, event["type"], dialect.complete) == (Kind.DONE, end, True)


def test_done_is_no_end_of_a_response_or_a_message() -> None:
    for endpoint in (Endpoint.RESPONSES, Endpoint.MESSAGES):
        dialect = dialect_of(endpoint)
        assert dialect.read(b"data: [DONE]\n\n")[0] is Kind.OTHER
        assert not dialect.complete


def test_a_message_is_whole_once_it_said_why_it_stopped() -> None:
    dialect = dialect_of(Endpoint.MESSAGES)
    *before, delta, stop = messages_stream("x")
    for block in before:
        dialect.read(block)
    assert not dialect.complete
    running = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {}}
    assert dialect.read(named(running))[0] is Kind.OTHER
    assert not dialect.complete
    assert dialect.read(delta)[0] is Kind.USAGE
    assert dialect.complete
    assert dialect.read(stop)[0] is Kind.DONE


@pytest.mark.parametrize("endpoint", [Endpoint.RESPONSES, Endpoint.MESSAGES])
@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "error": {"type": "internal_error", "message": "m"}},
        {"error": {"message": "m", "code": 500}},
        {"type": "error", "code": "server_error", "message": "m", "sequence_number": 9},
    ],
)
def test_a_workers_own_error_ends_a_stream(endpoint: Endpoint, error: dict[str, Any]) -> None:
    for block in (data(error), b"event: error\n" + data(error)):
        dialect = dialect_of(endpoint)
        assert dialect.read(block)[0] is Kind.DONE
        assert dialect.complete


def test_chunks_without_done_are_whole_once_every_choice_has_finished() -> None:
    def finish(index: int) -> bytes:
        return data({"choices": [{"index": index, "finish_reason": "stop"}]})

    two = dialect_of(Endpoint.COMPLETIONS, num_choices=2)
    assert two.read(finish(0))[0] is Kind.FINISH
    two.read(finish(0))
    assert not two.complete
    two.read(finish(1))
    assert two.complete


def test_a_transcription_is_whole_with_done_alone() -> None:
    """Each piece of the audio finishes for itself."""
    dialect = dialect_of(Endpoint.TRANSCRIPTIONS)
    piece = {"delta": {"content": "so"}, "finish_reason": "stop"}
    dialect.read(data({"object": "transcription.chunk", "choices": [piece]}))
    assert not dialect.complete
    dialect.read(b"data: [DONE]\n\n")
    assert dialect.complete


@pytest.mark.parametrize("endpoint", FAMILIES)
@given(block=st.binary(max_size=60))
@settings(deadline=None, max_examples=50)
def test_nonsense_is_other(endpoint: Endpoint, block: bytes) -> None:
    dialect = dialect_of(endpoint)
    for nonsense in (block + b"\n\n", b"event: error\ndata: " + block + b"\n\n", b"data: 5\n\n"):
        kind, event = dialect.read(nonsense)
        assert kind is Kind.OTHER or isinstance(event, dict)
    dialect.rejection(block)
    dialect.first_event([block + b"\n\n"])


# ---- before the first event ----------------------------------------------------------------------

PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def test_openings_and_pings_are_not_the_first_event() -> None:
    responses, messages = dialect_of(Endpoint.RESPONSES), dialect_of(Endpoint.MESSAGES)
    opening, rest = responses_stream("x")[:2], responses_stream("x")[2:]
    assert responses.first_event([b": hi\n\n", *opening]) is None
    assert responses.first_event([*opening, *rest]) == event_data(rest[0])
    assert messages.first_event([PING, b'data: {"type": "ping"}\n\n']) is None
    assert messages.first_event([PING, *messages_stream("x")]) == event_data(messages_stream("")[0])
    chat = dialect_of(Endpoint.CHAT_COMPLETIONS)
    assert chat.first_event([b": hi\n\n", *chat_stream("")]) == event_data(chat_stream("")[0])


@pytest.mark.parametrize(
    ("error_type", "status"),
    [
        ("invalid_request_error", 400),
        ("authentication_error", 401),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("request_too_large", 413),
        ("rate_limit_error", 429),
        ("api_error", 500),
        ("internal_error", 500),
        ("overloaded_error", 503),
        ("timeout_error", 504),
        ("BadRequestError", 400),
        ("of another kind", 502),
        (None, 502),
        ([], 502),
    ],
)
def test_the_status_of_an_error_in_place_of_a_message(error_type: Any, status: int) -> None:
    event = {"type": "error", "error": {"type": error_type, "message": "m"}}
    dialect = dialect_of(Endpoint.MESSAGES)
    first = dialect.first_event([PING, named(event)])
    rejection = dialect.rejection(first)
    assert rejection is not None
    assert rejection[0] == status
    assert json.loads(rejection[1]) == event


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        ({"code": "rate_limit_exceeded", "message": "m"}, 429, "rate_limit_exceeded"),
        ({"code": "server_error", "message": "m"}, 500, "server_error"),
        ({"code": None, "message": "m"}, 502, None),
        ({"error": {"message": "m", "type": "BadRequestError", "code": 400}}, 400, 400),
        ({"error": {"message": "m", "code": "x", "type": "server_error"}}, 500, "x"),
        ({"error": "m"}, 502, None),
    ],
)
def test_the_status_of_an_error_in_place_of_a_response(
    event: dict[str, Any], status: int, code: Any
) -> None:
    dialect = dialect_of(Endpoint.RESPONSES)
    blocks = [*responses_stream("")[:2], named({"type": "error", **event})]
    rejection = dialect.rejection(dialect.first_event(blocks))
    assert rejection is not None
    assert rejection[0] == status
    said = json.loads(rejection[1])["error"]
    assert (said["message"], said["code"]) == ("m", code)


@pytest.mark.parametrize("endpoint", FAMILIES)
def test_what_is_no_error_is_no_rejection(endpoint: Endpoint) -> None:
    dialect = dialect_of(endpoint)
    for block in STREAMS[endpoint]('{"error": {"code": 400}}'):
        assert dialect.rejection(event_data(block)) is None
    assert dialect.rejection(None) is None
    failed = named({"type": "response.failed", "response": {"error": {"code": "server_error"}}})
    assert dialect_of(Endpoint.RESPONSES).rejection(event_data(failed)) is None


# ---- our own errors ------------------------------------------------------------------------------


def every_error(kind: type[PacelineError] = PacelineError) -> Iterator[type[PacelineError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every_error(below)


TOLD = [kind for kind in every_error() if not issubclass(kind, ConfigurationError)]


@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("endpoint", [*Endpoint, None])
def test_every_error_has_a_body_in_every_family(
    kind: type[PacelineError], endpoint: Endpoint | None
) -> None:
    body = json.loads(error_body(kind("gone wrong", param="p"), endpoint))
    if endpoint in (Endpoint.MESSAGES, Endpoint.COUNT_TOKENS):
        assert body.pop("type") == "error"
        name = body["error"]["type"]
        assert name == anthropic_type(kind.status)
        assert (status_of({"type": name}) < 500) == (kind.status < 500)
    else:
        assert body["error"]["type"] == kind.type
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"message", "type", "param", "code"}
    assert (body["error"]["message"], body["error"]["param"]) == ("gone wrong", "p")


def test_anthropics_names() -> None:
    assert anthropic_type(Unauthorized.status) == "authentication_error"
    assert anthropic_type(InvalidRequest.status) == "invalid_request_error"
    assert anthropic_type(ShuttingDown.status) == "overloaded_error"
    assert anthropic_type(WorkerTimeout.status) == "timeout_error"
    assert anthropic_type(WorkerDied.status) == "api_error"
    assert anthropic_type(415) == "invalid_request_error"
    assert RequestError.status == 400


@pytest.mark.parametrize("endpoint", FAMILIES)
def test_our_error_is_one_event_that_ends_the_stream(endpoint: Endpoint) -> None:
    dialect = dialect_of(endpoint)
    event = dialect.error_event(WorkerDied("a worker died\n\ndata: [DONE]"))
    (read,) = SseParser().feed(event)
    assert b"[DONE]\n" not in event
    assert "a worker died" in read.data
    if endpoint is not Endpoint.CHAT_COMPLETIONS:
        assert read.event == "error"
        assert dialect.read(event)[0] is Kind.DONE


@pytest.mark.parametrize("seen", range(7))
def test_our_error_in_a_response_has_the_next_number(seen: int) -> None:
    dialect = dialect_of(Endpoint.RESPONSES)
    for block in responses_stream('"sequence_number":99')[:seen]:
        dialect.read(block)
        dialect.read(b": keep-alive\n\n")
    (event,) = SseParser().feed(dialect.error_event(WorkerDied("gone")))
    assert json.loads(event.data)["sequence_number"] == seen


def broken_off(endpoint: Endpoint, dialect: Dialect) -> bytes:
    """A stream cut in its middle, ended by our error."""
    blocks = STREAMS[endpoint]("so far")[:3]
    for block in blocks:
        dialect.read(block)
    return b"".join(blocks) + dialect.error_event(WorkerDied("the worker died"))


def answering(body: bytes, status: int = 200) -> httpx2.MockTransport:
    kind = "text/event-stream" if status == 200 else "application/json"
    return httpx2.MockTransport(
        lambda request: httpx2.Response(status, headers={"content-type": kind}, content=body)
    )


def openai_client(transport: httpx2.MockTransport) -> openai.OpenAI:
    http = httpx2.Client(transport=transport)
    return openai.OpenAI(api_key="k", base_url="http://g/v1", max_retries=0, http_client=http)


def anthropic_client(transport: httpx2.MockTransport) -> anthropic.Anthropic:
    http = httpx2.Client(transport=transport)
    return anthropic.Anthropic(api_key="k", base_url="http://g", max_retries=0, http_client=http)


def collect(events: Iterable[Any], seen: list[str]) -> None:
    """Their types as they come, kept if the stream raises."""
    for event in events:
        seen.append(event.type)


def test_openais_client_raises_for_our_error_in_chunks() -> None:
    stream = broken_off(Endpoint.CHAT_COMPLETIONS, dialect_of(Endpoint.CHAT_COMPLETIONS))
    with openai_client(answering(stream)) as client, pytest.raises(openai.APIError) as raised:
        list(client.chat.completions.create(model="m", messages=[], stream=True))
    assert raised.value.message == "the worker died"
    assert raised.value.code == "worker_died"


def test_openais_client_raises_for_our_error_in_responses() -> None:
    stream = broken_off(Endpoint.RESPONSES, dialect_of(Endpoint.RESPONSES))
    seen: list[str] = []
    with openai_client(answering(stream)) as client, pytest.raises(openai.APIError) as raised:
        collect(client.responses.create(model="m", input="x", stream=True), seen)
    assert len(seen) == 3
    assert raised.value.message == "the worker died"
    assert raised.value.code == "worker_died"


def test_anthropics_client_raises_for_our_error() -> None:
    stream = broken_off(Endpoint.MESSAGES, dialect_of(Endpoint.MESSAGES))
    seen: list[str] = []
    with anthropic_client(answering(stream)) as client, pytest.raises(anthropic.APIError) as raised:
        collect(client.messages.create(model="m", max_tokens=1, messages=[], stream=True), seen)
    assert len(seen) == 3
    assert "the worker died" in raised.value.message
    assert "api_error" in raised.value.message


def test_anthropics_client_reads_our_error_bodies() -> None:
    body = error_body(Unauthorized("no such key"), Endpoint.MESSAGES)
    with anthropic_client(answering(body, 401)) as client:
        with pytest.raises(anthropic.AuthenticationError) as raised:
            client.messages.create(model="m", max_tokens=1, messages=[])
        assert raised.value.body == json.loads(body)


# ---- what passes at a look -----------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=12).map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode()),
    st.binary(max_size=12),
    st.sampled_from(
        [
            b"\n\ndata: [DONE]\n\n",
            b"\r\rdata: [DONE]\r\r",
            b'"},"finish_reason":"stop',
            b"\\",
            b'\\"',
            b"\r",
            b"",
        ]
    ),
)
ENDS = st.sampled_from([b"null", b"null", b"null", b'"stop"', b'""', b"nul"])


def framed(text: bytes, end: bytes, more: bytes = b"") -> bytes:
    choice = b'{"index":0,"delta":{"content":"%b"},"finish_reason":%b}' % (text, end)
    return b'data: {"id":"c","choices":[%b]%b}\n\n' % (choice, more)


@given(st.lists(st.lists(st.builds(framed, TEXTS, ENDS), min_size=1, max_size=2), max_size=12))
def test_what_passes_at_a_look_is_nothing_that_would_be_read(reads: list[list[bytes]]) -> None:
    dialect = dialect_of(Endpoint.CHAT_COMPLETIONS)
    for events in reads:
        read = b"".join(events)
        if not dialect.passes(read):
            continue
        splitter = SseSplitter()
        kinds = [chunks.read_block(block)[0] for block in splitter.feed(read)]
        assert splitter.is_empty
        assert set(kinds) == {Kind.OTHER}


def test_text_events_pass_and_what_ends_something_does_not() -> None:
    dialect = dialect_of(Endpoint.CHAT_COMPLETIONS)
    for text in (b"a", b"", b"\xf0\x9f\x8c\x8d", b'with \\"quotes\\"', b"\\n", b"b"):
        assert dialect.passes(framed(text, b"null"))
    assert not dialect.passes(framed(b"c", b'"stop"'))
    assert not dialect.passes(b"data: [DONE]\n\n")
    assert not dialect.passes(b'data: {"id":"c","choices":[],"usage":{}}\n\n')
    assert not dialect.passes(b": comment\n\n")
    assert not dialect.passes(framed(b"d", b"null")[:-1])


def test_frames_that_change_with_every_event_are_not_learned_for_ever() -> None:
    dialect = dialect_of(Endpoint.CHAT_COMPLETIONS)
    for number in range(100):
        assert dialect.passes(framed(b"x", b"null", b',"usage":{"completion_tokens":%d}' % number))
