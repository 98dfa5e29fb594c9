"""The decisions of late, for operators: the last ones in memory, and each as a line of a file.

No prompt and no answer is in them. Lines are written by a thread from a bounded queue, so that a
slow disk costs lines, which are counted, and never a request.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from paceline.core.explain import explain, explain_choice
from paceline.edge.telemetry import RequestRecord
from paceline.errors import ConfigurationError

log = logging.getLogger(__name__)

REMEMBERED = 250
"""Records kept in memory. What is kept is memory that the next requests do not find at hand: with
a thousand, all that a request does took some 4 % longer."""
QUEUED = 4096


def described(record: RequestRecord, ended_unix_s: float) -> dict[str, Any]:
    """A request's decision and what came of it, as plain JSON values; times in seconds."""
    decision = record.decision
    assert decision is not None
    first_s, said = record.first_event_s, record.said
    return {
        "ended_unix_s": round(ended_unix_s, 3),
        "request_id": record.request_id,
        "code": record.code,
        "prompt_tokens": said.num_prompt_tokens,
        "completion_tokens": said.num_output_tokens,
        "ttft_s": None if first_s is None else round(first_s - record.arrived_s, 6),
        "e2e_s": None if record.ended_s is None else round(record.ended_s - record.arrived_s, 6),
        "accepted": None if said.report is None else list(said.report.histogram),
        **explain(decision),
        **explain_choice(decision.choice),
    }


class Decisions:
    """The last ones, newest last; and a file's writer, if there is a file."""

    def __init__(self, path: Path | None) -> None:
        """Raises ConfigurationError if the file cannot be written."""
        self.num_dropped = 0
        self._latest: deque[tuple[RequestRecord, float]] = deque(maxlen=REMEMBERED)
        self._lines: queue.SimpleQueue[tuple[RequestRecord, float] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if path is not None:
            try:
                self._file = path.open("ab")
            except OSError as error:
                raise ConfigurationError(
                    f"log.decisions: {path}: cannot be written: {error.strerror}"
                ) from error
            self._thread = threading.Thread(target=self._write, name="decisions", daemon=True)
            self._thread.start()

    def ended(self, record: RequestRecord) -> None:
        """A request with a decision has ended."""
        entry = (record, time.time())
        self._latest.append(entry)
        if self._thread is None:
            return
        if self._lines.qsize() < QUEUED:
            self._lines.put(entry)
        else:
            self.num_dropped += 1

    def latest(
        self, *, limit: int, pool: str | None = None, workload: str | None = None,
        reason: str | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """The newest first, of those that fit what is given."""
        wanted = {"pool": pool, "workload": workload, "reason": reason}
        found = (described(*entry) for entry in reversed(self._latest))
        fitting = (
            said
            for said in found
            if all(value is None or said[name] == value for name, value in wanted.items())
        )
        return [said for said, _ in zip(fitting, range(limit), strict=False)]

    def close(self) -> None:
        """Writes what is queued, and ends the file."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(timeout=5.0)

    def _write(self) -> None:
        for batch in self._batches():
            try:
                self._file.write(b"".join(batch))
                self._file.flush()
            except OSError as error:
                self.num_dropped += len(batch)
                log.warning("decisions cannot be written: %s", error)
        with contextlib.suppress(OSError):  # lines that found no room are counted already
            self._file.close()

    def _batches(self) -> Iterator[list[bytes]]:
        """Lines as they come, those together that have come by then."""
        while True:
            entry = self._lines.get()
            batch = []
            while entry is not None:
                batch.append(orjson.dumps(described(*entry), option=orjson.OPT_APPEND_NEWLINE))
                if self._lines.empty():
                    break
                entry = self._lines.get()
            if batch:
                yield batch
            if entry is None:
                return
