"""What a request's record says of its answer."""

from __future__ import annotations

import orjson
import pytest

from paceline.edge.telemetry import UNREAD_BYTES, RequestRecord

USAGE = {"usage": {"prompt_tokens": 3, "completion_tokens": 7}}


def whole(answer: bytes) -> RequestRecord:
    record = RequestRecord(0.0)
    record.learn_later(answer)
    return record


@pytest.mark.parametrize("padding", [0, UNREAD_BYTES])
def test_a_whole_answer_says_it_whenever_it_is_asked(padding: int) -> None:
    record = whole(orjson.dumps(USAGE | {"text": "x" * padding}))
    assert (record.said.num_prompt_tokens, record.said.num_output_tokens) == (3, 7)
    assert record.said is record.said


def test_a_long_answer_is_not_kept() -> None:
    text = orjson.dumps(USAGE | {"text": "x" * UNREAD_BYTES})
    assert text not in [getattr(whole(text), name) for name in RequestRecord.__struct_fields__]


@pytest.mark.parametrize("answer", [b"", b"{", b"[1]", b"null", b'"usage"', b'{"usage": 3}'])
def test_an_odd_answer_says_nothing(answer: bytes) -> None:
    said = whole(answer).said
    assert (said.num_prompt_tokens, said.num_output_tokens, said.report) == (None, None, None)


def test_what_a_later_event_does_not_say_stays() -> None:
    record = RequestRecord(0.0)
    record.learn({"usage": {"input_tokens": 3, "output_tokens": 1}})
    record.learn({"usage": {"output_tokens": 7}})
    record.learn({"choices": []})
    record.learn(None)
    assert (record.said.num_prompt_tokens, record.said.num_output_tokens) == (3, 7)
