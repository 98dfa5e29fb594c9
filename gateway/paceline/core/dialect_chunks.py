"""The dialect of chat, completions and transcriptions: chunks, and `[DONE]` at the end.

What a single chunk says is `chunks`' to tell; here is what a stream of them adds up to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from paceline.core.chunks import (
    Kind,
    ends_nothing,
    error_status,
    finished_choices,
    first_data,
    read_block,
)
from paceline.core.error_shapes import error_body
from paceline.errors import PacelineError

MAX_FRAMES = 16
"""Learned in one stream: with log-probabilities or usage in its events every one has another."""
_NO_FRAME = b"\0"
_TEXT = re.compile(rb'"(?:content|text|reasoning|reasoning_content|arguments)":"([^"\\]*)"')


class ChunkDialect:
    def __init__(self, *, num_choices: int | None) -> None:
        """Without `[DONE]` a stream is complete once `num_choices` have said why they ended, which
        some servers leave it at; for None it never is."""
        self._num_choices = num_choices
        self._finished: set[int] = set()
        self._done = False
        self._before = self._behind = _NO_FRAME  # the bytes around the text of the last event
        self._num_frames = 0

    @property
    def complete(self) -> bool:
        finished = self._num_choices is not None and len(self._finished) >= self._num_choices
        return self._done or finished

    def passes(self, data: bytes) -> bool:
        """The events of a stream differ in their text alone, so one that has the same bytes before
        and behind a text without quotes is what the last one was: three looks in memory, a third of
        what a pattern costs."""
        before, behind = self._before, self._behind
        if (
            data.startswith(before)
            and data.endswith(behind)
            and len(data) >= len(before) + len(behind)
            and data.find(b'"', len(before), -len(behind)) < 0
            and data.find(b"\n", len(before), -len(behind)) < 0
            and data.find(b"\r", len(before), -len(behind)) < 0
        ):
            return True
        if not ends_nothing(data):
            return False
        if self._num_frames < MAX_FRAMES:
            self._learn_frame(data)
        return True

    def _learn_frame(self, data: bytes) -> None:
        self._num_frames += 1
        text = _TEXT.search(data)
        if text is not None:
            self._before, self._behind = data[: text.start(1)], data[text.end(1) :]

    def read(self, block: bytes) -> tuple[Kind, dict[str, Any]]:
        kind, chunk = reading = read_block(block)
        if kind is Kind.FINISH:
            self._finished.update(finished_choices(chunk))
        elif kind is Kind.DONE:
            self._done = True
        return reading

    def first_event(self, blocks: Sequence[bytes]) -> bytes | None:
        return first_data(blocks)

    def rejection(self, data: bytes | None) -> tuple[int, bytes] | None:
        status = error_status(data)
        return None if data is None or status is None else (status, data)

    def error_event(self, error: PacelineError) -> bytes:
        """A chunk that is an error. vLLM sends `[DONE]` after its own; we do not, since clients
        that skip events they do not know would take it for a proper end."""
        return b"data: " + error_body(error) + b"\n\n"
