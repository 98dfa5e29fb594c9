"""What the events of a worker's stream say, told by a look where a look is enough."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.chunks import Kind, UsageRemover, error_status, finished_choices, read_block


def event(value: Any, **dumps: Any) -> bytes:
    return b"data: " + json.dumps(value, **dumps).encode() + b"\n\n"


def chunk(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c", "choices": [choice], **more}


USAGE = {"id": "c", "choices": [], "usage": {"completion_tokens": 3}, "system_fingerprint": "fp"}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " :\t")])
def test_each_kind_is_told_in_any_spacing(separators: tuple[str, str]) -> None:
    def kind(value: Any) -> Kind:
        lines = event(value, separators=separators).rstrip().split(b"\n")
        joined = b"\n".join([lines[0], *(b"data: " + line for line in lines[1:])])
        return read_block(joined + b"\n\n")[0]

    assert kind(USAGE) is Kind.USAGE
    assert kind(chunk("x", "stop")) is Kind.FINISH
    assert kind(chunk("x")) is Kind.OTHER
    assert kind(chunk("x", "")) is Kind.OTHER
    assert kind({"choices": []}) is Kind.OTHER
    assert kind({"choices": [], "usage": None}) is Kind.OTHER


@pytest.mark.parametrize(
    "mark", [b"data: [DONE]\n\n", b"data:[DONE] \r\n\r\n", b"data: [DONE]\r\r"]
)
def test_the_end_mark(mark: bytes) -> None:
    assert read_block(mark)[0] is Kind.DONE
    assert read_block(b": [DONE]\n\n")[0] is Kind.OTHER


@given(text=st.text())
def test_no_text_is_taken_for_more_than_text(text: str) -> None:
    tricky = f'"choices":[], "usage":{{}}, "finish_reason":"stop" [DONE] {text} data: [DONE]'
    assert read_block(event(chunk(tricky)))[0] is Kind.OTHER


@pytest.mark.parametrize("odd", [None, 5, "x", [], [None], [{"finish_reason": 1, "index": "a"}]])
def test_odd_choices_are_no_failure(odd: Any) -> None:
    assert set(finished_choices({"choices": odd})) <= {0}


def test_usage_is_taken_out_and_the_fingerprint_goes_back() -> None:
    remover = UsageRemover()
    finish = event(chunk("x", "stop"))
    assert remover.finishing(finish) == b""
    assert remover.holding
    given_back = remover.usage(USAGE)
    assert json.loads(given_back[6:]) == chunk("x", "stop", system_fingerprint="fp")
    assert given_back.endswith(b"\n\n")
    assert not remover.holding


def test_a_fingerprint_that_is_there_already_stays_alone() -> None:
    remover = UsageRemover()
    finish = event(chunk("x", "stop", system_fingerprint="own"))
    remover.finishing(finish)
    assert remover.usage(USAGE) == finish


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"error": {"message": "m", "code": 400}}, 400),
        ({"error": {"message": "m", "code": 503}}, 503),
        ({"error": {"message": "m", "code": "overloaded"}}, 502),
        ({"error": {"message": "m", "code": 200}}, 502),
        ({"error": "m"}, 502),
        ({"object": "error", "message": "m", "code": 404}, 404),
        ({"error": None}, None),
        ({"error": {"code": 400}, "choices": []}, None),
        (chunk('"error": {"code": 400}'), None),
        ("error", None),
    ],
)
def test_an_event_that_is_an_error_and_nothing_else_has_a_status(value: Any, status: Any) -> None:
    assert error_status(json.dumps(value).encode()) == status


def test_nonsense_has_no_status() -> None:
    assert error_status(b'{"error"') is None
    assert error_status(None) is None
