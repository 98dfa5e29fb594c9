"""A short stream of each family of endpoints, in the parts that a fault can fall between."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from paceline.testing.scripted import DONE, delta, event

TYPES = {"worker_died": "api_error", "worker_timeout": "timeout_error"}
"""Anthropic's names for errors of ours; any other is `api_error`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Events in their order: `opening` shows no work yet, `finish` says why the answer ended,
    `usage` stands behind it, `done` is the end mark. A family without one of them has b""."""

    name: str
    path: str
    asks: dict[str, Any]
    opening: bytes = b""
    text: tuple[bytes, ...]
    finish: bytes = b""
    usage: bytes = b""
    done: bytes
    keeps_usage: bool = True

    @property
    def body(self) -> dict[str, Any]:
        return {"model": "m", "stream": True, **self.asks}

    @property
    def whole(self) -> bytes:
        return b"".join([self.opening, *self.text, self.finish, self.usage, self.done])

    def seen_of(self, sent: bytes) -> bytes:
        """What a client gets of it: whole events, and of usage what it asked for."""
        whole = sent[: sent.rfind(b"\n\n") + 2] if b"\n\n" in sent else b""
        return whole if self.keeps_usage or not self.usage else whole.replace(self.usage, b"")

    def error_of(self, body: bytes) -> str:
        """Our code for the error event that ends `body`, in the shape of this family alone."""
        *_, last = [block for block in body.split(b"\n\n") if block]
        *named, data = last.split(b"\n")
        said = json.loads(data.removeprefix(b"data: "))
        assert body.endswith(last + b"\n\n")
        if self.path == "/v1/messages":
            assert named == [b"event: error"]
            assert set(said) == {"type", "error"}
            assert said["type"] == "error"
            assert set(said["error"]) == {"type", "message"}
            return said["error"]["type"]
        assert set(said["error"]) == {"message", "type", "param", "code"}
        if self.path == "/v1/responses":
            assert named == [b"event: error"]
            numbers = [int(part.split(b"}")[0].split(b",")[0]) for part in body.split(_NUMBER)[1:]]
            assert numbers == list(range(len(numbers))), "errors are numbered on"
            assert said["type"] == "error"
            assert said["code"] == said["error"]["code"]
        else:
            assert not named
            assert set(said) == {"error"}
        return said["error"]["code"]

    def code(self, ours: str) -> str:
        """What `error_of` says of an error with our code `ours`."""
        return TYPES.get(ours, "api_error") if self.path == "/v1/messages" else ours


_NUMBER = b'"sequence_number":'


def named(kind: str, **more: Any) -> bytes:
    """An event that says its name twice, as the Responses and Messages APIs do."""
    return f"event: {kind}\n".encode() + event({"type": kind, **more})


def _completion(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": finish}
    return event({"id": "cmpl-1", "object": "text_completion", "choices": [choice]})


USAGE = event({"id": "1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})

CHAT = Family(
    name="chat",
    path="/v1/chat/completions",
    asks={
        "messages": [{"role": "user", "content": "hi"}],
        "stream_options": {"include_usage": True},
    },
    text=(delta("one "), delta("北🌍 "), delta("three")),
    finish=delta("", finish="stop"),
    usage=USAGE,
    done=DONE,
)
CHAT_WITHOUT_USAGE = Family(
    name="chat without usage",
    path=CHAT.path,
    asks={"messages": CHAT.asks["messages"]},
    text=CHAT.text,
    finish=CHAT.finish,
    usage=USAGE,
    done=DONE,
    keeps_usage=False,
)
COMPLETIONS = Family(
    name="completions",
    path="/v1/completions",
    asks={"prompt": "hi", "stream_options": {"include_usage": True}},
    text=(_completion("one "), _completion("北🌍")),
    finish=_completion("", "length"),
    usage=USAGE,
    done=DONE,
)
RESPONSES = Family(
    name="responses",
    path="/v1/responses",
    asks={"input": "hi"},
    opening=named("response.created", sequence_number=0, response={"id": "r", "output": []})
    + named("response.in_progress", sequence_number=1, response={"id": "r"}),
    text=(
        named("response.output_text.delta", sequence_number=2, delta="one "),
        named("response.output_text.delta", sequence_number=3, delta="北🌍"),
    ),
    finish=named("response.output_text.done", sequence_number=4, text="one 北🌍"),
    done=named(
        "response.completed",
        sequence_number=5,
        response={"id": "r", "usage": {"output_tokens": 4}},
    ),
)
MESSAGES = Family(
    name="messages",
    path="/v1/messages",
    asks={"messages": CHAT.asks["messages"], "max_tokens": 9},
    opening=named("ping"),
    text=(
        named("message_start", message={"id": "msg_1", "content": []}),
        named("content_block_delta", index=0, delta={"type": "text_delta", "text": "北🌍"}),
    ),
    finish=named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4}),
    done=named("message_stop"),
)
FAMILIES = (CHAT, CHAT_WITHOUT_USAGE, COMPLETIONS, RESPONSES, MESSAGES)
