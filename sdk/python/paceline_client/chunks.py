"""Chat-completion chunks through a pacer: taken apart by choice and channel, put together again.

A chunk may bring text of several choices, and in each of reasoning, answer and refusal: every one
is a lane. Where one chunk is shown in several pieces, the first carries its unknown fields, each
its own log-probabilities and token ids, the last the finish and the usage. A chunk that is shown
whole is passed on as the very object that came.

Chunks are mappings, or objects as the `openai` package makes them. Anything else keeps its place:
strings are paced as text, the rest is passed on in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline_client.cutting import Piece
from paceline_client.options import PacerOptions
from paceline_client.pacer import Hint, Pacer, PacerStats

_REASONING = ("reasoning", "reasoning_content")  # new and old vLLM; some servers send both
_IDENTITY = ("id", "object", "created", "model")
_AT_THE_END = ("finish_reason", "stop_reason")


@dataclass(slots=True, eq=False)
class _Segment:
    """One lane's text in a chunk, or what a choice brings beside its texts (then no `keys`).

    `keys` are where the text stands: in the delta, or for plain completions in the choice. The
    choice's token ids and log-probabilities belong to its last text (`owns_tokens`).
    """

    chunk: Any
    data: Mapping[str, Any]
    choice: Mapping[str, Any]
    channel: str = ""
    keys: tuple[str, ...] = ()
    text: str = ""
    first_of_choice: bool = False
    last_of_choice: bool = False
    first_of_chunk: bool = False
    last_of_chunk: bool = False
    owns_tokens: bool = False
    num_tokens: int | None = None


class ChunkPacer:
    """A `Pacer` for chunks. Times are milliseconds, as there."""

    def __init__(self, options: PacerOptions | None = None, *, num_choices: int = 1) -> None:
        """`num_choices` is how many choices were asked for."""
        self._pacer = Pacer(options)
        self._num_choices = num_choices
        self._enabled = options is None or options.enabled
        self._seen: set[int] = set()
        self._finished: set[int] = set()
        self._completion_tokens = 0

    def push(self, chunk: Any, now_ms: float, *, hint: Hint | None = None) -> None:
        """Takes a chunk that arrived at `now_ms`, with what the server said of its pace."""
        if hint is not None:
            self._pacer.hint(hint)
        if not self._enabled:
            data = _as_mapping(chunk)
            if data is not None:
                self._note(data)
            self._pacer.part(chunk, now_ms, closes=None)
            return
        if isinstance(chunk, str):
            self._pacer.push(chunk, now_ms, num_tokens=hint.num_tokens if hint else None)
            return
        data = _as_mapping(chunk)
        if data is None:
            self._pacer.part(chunk, now_ms, closes=None)
            return
        self._note(data)
        segments = _take_apart(chunk, data)
        counted = self._count(data, hint)
        if not any(segment.text for segment in segments):
            self._pacer.part(chunk, now_ms, closes=_completes(data))
            return
        for segment in segments:
            self._push_segment(segment, now_ms, counted)

    def _push_segment(self, segment: _Segment, now_ms: float, counted: int | None) -> None:
        lane = f"{_index(segment.choice)}."
        if not segment.keys:
            ends = segment.choice.get("finish_reason") or _tool_calls(segment.choice)
            self._pacer.part(segment, now_ms, closes=lane if ends else None)
            return
        token_texts = _token_texts(segment)
        self._pacer.push(
            segment.text,
            now_ms,
            lane=lane + segment.channel,
            num_tokens=segment.num_tokens or counted,
            token_texts=token_texts,
            cargo=segment,
            final=segment.last_of_choice and bool(segment.choice.get("finish_reason")),
        )

    def _note(self, data: Mapping[str, Any]) -> None:
        for choice in data["choices"]:
            self._seen.add(_index(choice))
            if choice.get("finish_reason"):  # some servers send "" until the end
                self._finished.add(_index(choice))

    def _count(self, data: Mapping[str, Any], hint: Hint | None) -> int | None:
        """How many tokens this chunk brings, by the hint or by continuous usage."""
        usage = data.get("usage")
        total = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
        brought = None
        if isinstance(total, int):
            brought = total - self._completion_tokens
            self._completion_tokens = total
        if len(self._seen) != 1:
            return None  # several choices share these numbers
        return hint.num_tokens if hint and hint.num_tokens else brought

    def finish(self, now_ms: float) -> None:
        """No more will come."""
        self._pacer.finish(now_ms)

    def take(self, now_ms: float) -> list[Any]:
        """The chunks to be shown by `now_ms`, in order."""
        return [_render(piece) for piece in self._pacer.take(now_ms)]

    def take_timed(self, now_ms: float) -> list[tuple[float, Any]]:
        return [(due_ms, _render(piece)) for due_ms, piece in self._pacer.take_timed(now_ms)]

    def flush(self, now_ms: float) -> list[Any]:
        return [_render(piece) for piece in self._pacer.flush(now_ms)]

    def abort(self, now_ms: float) -> list[Any]:
        return [_render(piece) for piece in self._pacer.abort(now_ms)]

    @property
    def next_due_ms(self) -> float | None:
        return self._pacer.next_due_ms

    @property
    def num_waiting(self) -> int:
        """How many pieces have not been taken."""
        return self._pacer.num_waiting

    @property
    def stats(self) -> PacerStats:
        return self._pacer.stats

    @property
    def all_finished(self) -> bool:
        """Whether every choice that was seen or asked for has its finish."""
        return len(self._finished) >= self._num_choices and not self.incomplete

    @property
    def incomplete(self) -> bool:
        """Whether a choice has begun and not finished: an end here would be too early."""
        return self._seen != self._finished


# -- chunks apart ----------------------------------------------------------------------------------


def _as_mapping(chunk: Any) -> Mapping[str, Any] | None:
    """A chunk's fields; None for what is no chunk with choices."""
    data = chunk
    if not isinstance(chunk, Mapping):
        dump = getattr(chunk, "model_dump", None)
        if dump is None or not hasattr(chunk, "choices"):
            return None
        data = dump(exclude_unset=True, warnings=False)
    choices = data.get("choices")
    if not isinstance(choices, list | tuple) or not all(isinstance(c, Mapping) for c in choices):
        return None
    return data  # type: ignore[no-any-return]


def _take_apart(chunk: Any, data: Mapping[str, Any]) -> list[_Segment]:
    segments: list[_Segment] = []
    for choice in data["choices"]:
        of_choice = [
            _Segment(chunk, data, choice, channel, keys, text)
            for channel, keys, text in _texts(choice)
        ]
        if of_choice:
            of_choice[-1].owns_tokens = True
            of_choice[-1].num_tokens = _num_tokens(of_choice[-1])
        if not of_choice or _tool_calls(choice):
            of_choice.append(_Segment(chunk, data, choice, owns_tokens=not of_choice))
        of_choice[0].first_of_choice = of_choice[-1].last_of_choice = True
        segments += of_choice
    if segments:
        segments[0].first_of_chunk = segments[-1].last_of_chunk = True
    return segments


def _texts(choice: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...], str]]:
    """(channel, keys, text) of each text, reasoning before the answer."""
    delta = choice.get("delta")
    if not isinstance(delta, Mapping):
        text = choice.get("text")
        return [("text", ("text",), text)] if isinstance(text, str) and text else []
    found = []
    reasoning = tuple(key for key in _REASONING if isinstance(delta.get(key), str) and delta[key])
    if reasoning:
        text = delta[reasoning[0]]
        same = tuple(key for key in reasoning if delta[key] == text)
        found.append(("reasoning", same, text))
    for channel, key in (("text", "content"), ("refusal", "refusal")):
        text = delta.get(key)
        if isinstance(text, str) and text:
            found.append((channel, (key,), text))
    return found


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _tool_calls(choice: Mapping[str, Any]) -> bool:
    delta = choice.get("delta")
    return isinstance(delta, Mapping) and bool(delta.get("tool_calls") or delta.get("audio"))


def _completes(data: Mapping[str, Any]) -> str | None:
    """Which lanes a chunk without text completes, for `Pacer.part`."""
    choices = data["choices"]
    if not choices:
        return "" if data.get("usage") else None
    ending = [choice for choice in choices if choice.get("finish_reason") or _tool_calls(choice)]
    if not ending:
        return None
    return f"{_index(ending[0])}." if len(choices) == 1 else ""


def _logprobs_key(segment: _Segment) -> str:
    return "refusal" if segment.channel == "refusal" else "content"


def _entries(segment: _Segment) -> list[Any] | None:
    """The chunk's log-probabilities, one entry a token of this lane's text."""
    logprobs = segment.choice.get("logprobs")
    entries = logprobs.get(_logprobs_key(segment)) if isinstance(logprobs, Mapping) else None
    return entries if isinstance(entries, list) and entries else None


def _num_tokens(segment: _Segment) -> int | None:
    ids = segment.choice.get("token_ids")
    entries = ids if isinstance(ids, list) and ids else _entries(segment)
    return len(entries) if entries else None


def _token_texts(segment: _Segment) -> list[str] | None:
    entries = _entries(segment) if segment.owns_tokens else None
    if entries is None:
        return None
    return [str(entry.get("token")) if isinstance(entry, Mapping) else "" for entry in entries]


# -- and together ----------------------------------------------------------------------------------


def _render(piece: Piece) -> Any:
    """The chunk that shows `piece`."""
    segment = piece.cargo
    if not isinstance(segment, _Segment):
        return segment if segment is not None else piece.text
    alone = segment.first_of_chunk and segment.last_of_chunk and piece.first and piece.last
    if alone and piece.text == segment.text:
        return segment.chunk
    first = segment.first_of_chunk and piece.first
    last = segment.last_of_chunk and piece.last
    data = {
        key: value
        for key, value in segment.data.items()
        if key in _IDENTITY or (last if key == "usage" else first)
    }
    data["choices"] = [_choice(segment, piece)]
    if isinstance(segment.chunk, Mapping):
        return data
    return type(segment.chunk).construct(**data)


def _choice(segment: _Segment, piece: Piece) -> dict[str, Any]:
    choice = segment.choice
    first = segment.first_of_choice and piece.first
    last = segment.last_of_choice and piece.last
    shown: dict[str, Any] = {}
    for key, value in choice.items():
        if key in _AT_THE_END:
            if last or key == "finish_reason":
                shown[key] = value if last else None
        elif key == "token_ids":
            shown[key] = _of_piece(segment, value, piece)
        elif key == "logprobs":
            shown[key] = _logprobs(segment, value, piece)
        elif key == "delta" and isinstance(value, Mapping):
            shown[key] = _delta(segment, value, piece.text, first=first, last=last)
        elif key in segment.keys:
            shown[key] = piece.text
        elif key == "index" or first:
            shown[key] = value
    return shown


def _delta(
    segment: _Segment, delta: Mapping[str, Any], text: str, *, first: bool, last: bool
) -> dict[str, Any]:
    """The lane's text; the other lanes' are left to their own pieces."""
    elsewhere = {key for _, keys, _ in _texts(segment.choice) for key in keys}
    shown: dict[str, Any] = {}
    for key, value in delta.items():
        if key in segment.keys:
            shown[key] = text
        elif key in elsewhere:
            continue
        elif key in ("tool_calls", "audio"):
            if last:
                shown[key] = value
        elif first:
            shown[key] = value
    return shown


def _of_piece(segment: _Segment, values: Any, piece: Piece) -> Any:
    """A list with an entry a token: those of the piece's tokens. Anything else: on the first."""
    if not segment.owns_tokens:
        return None
    if not segment.keys:
        return values
    if not isinstance(values, list) or len(values) != segment.num_tokens:
        return values if piece.first else None
    start, end = piece.tokens
    return values[start:end]


def _logprobs(segment: _Segment, logprobs: Any, piece: Piece) -> Any:
    entries = _entries(segment)
    if not isinstance(logprobs, Mapping) or entries is None:
        return logprobs if piece.first and segment.owns_tokens else None
    kept = _of_piece(segment, entries, piece)
    if kept is None:
        return None
    key = _logprobs_key(segment)
    beside = {k: v for k, v in logprobs.items() if k == key or v is None or piece.first}
    return {**beside, key: kept}
