"""Hints as the SDK reads them, and chunks that lose nothing but what was not asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.hints import Hints
from paceline_client.hints import parse_hint
from paceline_client.pacer import Hint
from paceline_client.sse import SseParser


def data(value: Any, **dumps: Any) -> bytes:
    return b"data: " + json.dumps(value, **(dumps or {"separators": (",", ":")})).encode() + b"\n\n"


def chunk(text: str, num_tokens: int | None = None, *, index: int = 0) -> dict[str, Any]:
    """As vLLM writes it: usage last, of the choice alone."""
    choice = {"index": index, "delta": {"content": text}, "finish_reason": None}
    usage = {"prompt_tokens": 9, "completion_tokens": num_tokens, "total_tokens": 0}
    return {"id": "c", "choices": [choice], **({} if num_tokens is None else {"usage": usage})}


def read(stream: bytes) -> tuple[list[Hint | None], list[str]]:
    """The hints that the SDK reads, and the data of the events that it hands over."""
    hints: list[Hint | None] = []
    events = SseParser(on_comment=lambda text: hints.append(parse_hint(text))).feed(stream)
    return hints, [event.data for event in events]


def test_the_sdk_reads_what_is_written() -> None:
    hints = Hints(cut_usage=True)
    told = [(0, 100.0), (1, 100.040), (4, 100.100), (4, 100.100), (6, 101.0)]
    stream = b"".join(hints.hinted(data(chunk("x", count)), now_s) for count, now_s in told)
    gaps = [40.0, 40 + 20 / 4, 45 - 45 / 4, 33.75 + (900 - 33.75) / 4]
    assert read(stream)[0] == [
        Hint(num_tokens=0, server_ms=0, next_ms=None),
        Hint(num_tokens=1, server_ms=40, next_ms=round(gaps[0])),
        Hint(num_tokens=3, server_ms=100, next_ms=round(gaps[1])),
        Hint(num_tokens=0, server_ms=100, next_ms=round(gaps[2])),
        Hint(num_tokens=2, server_ms=1000, next_ms=round(gaps[3])),
    ]
    assert stream.startswith(b": pace n=0 t=0\ndata: {")


def test_every_choice_counts_for_itself() -> None:
    hints = Hints(cut_usage=True)
    told = [(0, 2), (1, 3), (0, 5), (1, 4)]
    stream = b"".join(
        hints.hinted(data(chunk("x", count, index=index)), 0.0) for index, count in told
    )
    assert [hint and hint.num_tokens for hint in read(stream)[0]] == [2, 3, 3, 1]


@pytest.mark.parametrize(
    "event",
    [
        chunk("x"),
        {"choices": [], "usage": {"completion_tokens": 7}},
        {"choices": [{}, {}], "usage": {"completion_tokens": 7}},
        {"choices": [{}], "usage": {"completion_tokens": None}},
        {"choices": [{}], "usage": {"completion_tokens": True}},
        {"choices": [{}], "usage": None},
        {"choices": "usage", "usage": 5},
        ["usage"],
        "usage",
    ],
)
def test_what_is_not_known_is_left_out(event: Any) -> None:
    hints = Hints(cut_usage=False)
    stream = hints.hinted(data(event), 5.0)
    assert read(stream) == (
        [Hint(num_tokens=None, server_ms=0, next_ms=None)],
        [data(event)[6:-2].decode()],
    )


def test_a_count_that_falls_is_not_known() -> None:
    hints = Hints(cut_usage=False)
    stream = b"".join(hints.hinted(data(chunk("x", count)), 0.0) for count in (5, 3, 4))
    assert [hint and hint.num_tokens for hint in read(stream)[0]] == [5, None, 1]


@pytest.mark.parametrize("block", [b": ping\n\n", b"\n", b"event: x\n\n", b"retry: 5\r\n\r\n"])
def test_what_is_no_event_passes(block: bytes) -> None:
    hints = Hints(cut_usage=True)
    assert hints.hinted(block, 1.0) is block
    assert hints.hinted(b"data: x\n\n", 9.0) == b": pace t=0\ndata: x\n\n"


def test_events_of_any_family_are_timed() -> None:
    hints = Hints(cut_usage=False)
    delta = b'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n'
    stream = hints.hinted(delta, 1.0) + hints.hinted(delta, 1.5)
    assert [hint and hint.next_ms for hint in read(stream)[0]] == [None, 500]
    assert stream.count(delta) == 2


def test_the_end_mark_is_an_event() -> None:
    hints = Hints(cut_usage=True)
    assert hints.hinted(b"data: [DONE]\n\n", 1.0) == b": pace t=0\ndata: [DONE]\n\n"


def test_a_byte_order_mark_stays_first() -> None:
    stream = Hints(cut_usage=False).hinted(b"\xef\xbb\xbfdata: x\n\n", 0.0)
    assert stream == b"\xef\xbb\xbf: pace t=0\ndata: x\n\n"
    assert read(stream)[1] == ["x"]


# ---- usage that the client did not ask for -------------------------------------------------------


def cut(block: bytes) -> bytes:
    hinted = Hints(cut_usage=True).hinted(block, 0.0)
    comment, _, rest = hinted.partition(b"\n")
    assert comment.startswith(b": pace ")
    return rest


def test_a_chunk_is_as_the_worker_would_have_written_it_without() -> None:
    assert cut(data(chunk("héllo", 5))) == data(chunk("héllo"))


def test_the_chunk_with_usage_alone_is_the_removers() -> None:
    last = data({"choices": [], "usage": {"completion_tokens": 5}})
    assert cut(last) == last


def test_usage_that_was_asked_for_stays() -> None:
    block = data(chunk("x", 5))
    assert Hints(cut_usage=False).hinted(block, 0.0) == b": pace n=5 t=0\n" + block


texts = st.sampled_from(
    ['"usage":{}', ',"usage":{"a":1}', "usage", "}", '\\"', "\\", "é"]
) | st.text(max_size=5)
values = st.recursive(
    st.none() | st.integers(0, 99) | texts,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(texts | st.just("usage"), inner, max_size=3)
    ),
    max_leaves=6,
)
members = st.lists(st.tuples(texts, values), max_size=3).map(
    lambda pairs: [pair for pair in pairs if pair[0] not in ("usage", "choices")]
)
usages = st.fixed_dictionaries({"completion_tokens": st.integers(0, 99)}) | values


@given(
    before=members,
    after=members,
    usage=usages,
    spaced=st.booleans(),
    ascii_only=st.booleans(),
    times=st.integers(0, 2),
)
@settings(deadline=None, max_examples=300)
def test_nothing_but_usage_is_cut(
    before: list[Any], after: list[Any], usage: Any, spaced: bool, ascii_only: bool, times: int
) -> None:
    """Written by hand, since keys may occur twice."""
    comma, colon = (", ", ": ") if spaced else (",", ":")

    def written(pairs: list[tuple[str, Any]]) -> bytes:
        said = (
            json.dumps(key, ensure_ascii=ascii_only)
            + colon
            + json.dumps(value, separators=(comma, colon), ensure_ascii=ascii_only)
            for key, value in pairs
        )
        return b"data: {" + comma.join(said).encode() + b"}\r\n\r\n"

    choices = [("choices", [{"index": 0}])]
    with_usage = [*before, *[("usage", usage)] * times, *choices, *after]
    assert cut(written(with_usage)) == written([*before, *choices, *after])


def test_a_usage_of_objects_is_cut_whole() -> None:
    value = chunk("x", 5)
    value["usage"]["completion_tokens_details"] = {"reasoning_tokens": 1, "note": '}"'}
    value["system_fingerprint"] = "fp"
    expected = {**chunk("x"), "system_fingerprint": "fp"}
    assert cut(data(value)) == data(expected)


def test_a_name_in_escapes_is_a_name() -> None:
    block = b'data: {"choices":[{"x":"usage"}],"us\\u0061ge":{"completion_tokens":1}}\n\n'
    assert cut(block) == b'data: {"choices":[{"x":"usage"}]}\n\n'


def test_a_value_over_several_lines_stays() -> None:
    block = b'data: {"choices":[{}],\ndata: "usage":{"completion_tokens":3}}\n\n'
    assert Hints(cut_usage=True).hinted(block, 0.0) == b": pace n=3 t=0\n" + block
