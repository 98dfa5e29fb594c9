"""A finished exchange to be replayed, what it taught, and both as bytes for a pipe.

It is kept as the bytes that went by; nothing of it is read before the teacher's own process does
(`study`). What that gives back holds counts alone, no text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from paceline.core.chunks import json_or_none
from paceline.core.fields import mapping
from paceline.core.output_text import output_text
from paceline.core.prompt_text import prompt_text
from paceline.core.repeats import copy_ratio, loops
from paceline.core.replay import LookupReplay, replay
from paceline.core.types import Endpoint, Speculation
from paceline.core.word_tokens import cut_to_share, word_tokens

TEXT_BYTES = 256 * 2**10
"""Of the texts of prompt and output together; of longer ones both ends are looked at."""
_LENGTHS = struct.Struct(">III")  # of what is said about an exchange, its request, its answer
_OPTIONS = ("prompt_lookup_", "suffix_decoding_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayable:
    """`request` is the client's body, `answer` the worker's: JSON, or as many of a stream's bytes
    as were kept (`is_cut` if there were more). `lookups` are the pools to replay, by name; those
    whose method is no lookup are passed over."""

    endpoint: Endpoint
    request: bytes
    answer: bytes
    is_stream: bool
    lookups: Mapping[str, Speculation]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What one answer taught; lengths are in word tokens.

    `copy_ratio` is the output's true one; None for an output of less than four tokens. If it
    `loops`, no lookup was replayed: one would seem to do well. `is_whole` is False where texts had
    to be cut, and then a replay must not be compared with what a worker counted.
    """

    num_prompt_tokens: int
    num_output_tokens: int
    copy_ratio: float | None
    loops: bool
    is_whole: bool
    lookups: Mapping[str, LookupReplay] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Replayed:
        """From `as_json`. Raises TypeError, ValueError for anything else."""
        lookups = {
            pool: LookupReplay(**{**counts, "accepted_counts": tuple(counts["accepted_counts"])})
            for pool, counts in said["lookups"].items()
        }
        return cls(**{**said, "lookups": lookups})


def study(exchange: Replayable) -> Replayed | None:
    """What it teaches; None where prompt or output cannot be read as text."""
    asked = prompt_text(exchange.endpoint, mapping(json_or_none(exchange.request)))
    answered = output_text(exchange.endpoint, exchange.answer, is_stream=exchange.is_stream)
    if asked is None or answered is None:
        return None
    prompt_part, output_part = cut_to_share(asked, answered, TEXT_BYTES)
    prompt, output = word_tokens(prompt_part), word_tokens(output_part)
    does_loop = loops(output)
    return Replayed(
        num_prompt_tokens=len(prompt),
        num_output_tokens=len(output),
        copy_ratio=copy_ratio(prompt, output),
        loops=does_loop,
        is_whole=not exchange.is_cut and (prompt_part, output_part) == (asked, answered),
        lookups={} if does_loop else _replays(exchange.lookups, prompt, output),
    )


def _replays(
    lookups: Mapping[str, Speculation], prompt: list[str], output: list[str]
) -> dict[str, LookupReplay]:
    replays = {pool: replay(how, prompt, output) for pool, how in lookups.items()}
    return {pool: replayed for pool, replayed in replays.items() if replayed is not None}


def frame_of(exchange: Replayable) -> tuple[bytes, bytes, bytes]:
    """The bytes of an exchange, in three parts so that the texts are not copied."""
    about = orjson.dumps(
        {
            "endpoint": exchange.endpoint,
            "is_stream": exchange.is_stream,
            "is_cut": exchange.is_cut,
            "lookups": {pool: _lookup(how) for pool, how in exchange.lookups.items()},
        }
    )
    lengths = _LENGTHS.pack(len(about), len(exchange.request), len(exchange.answer))
    return lengths + about, exchange.request, exchange.answer


def _lookup(how: Speculation) -> dict[str, Any]:
    options = {name: value for name, value in how.options.items() if name.startswith(_OPTIONS)}
    return {
        "method": how.method,
        "num_speculative_tokens": how.num_speculative_tokens,
        "options": options,
    }


def read_replayable(read: Callable[[int], bytes]) -> Replayable | None:
    """The next exchange of a stream whose `read(n)` gives n bytes, less at its end; None there."""
    lengths = read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    parts = [read(length) for length in _LENGTHS.unpack(lengths)]
    if tuple(map(len, parts)) != _LENGTHS.unpack(lengths):
        return None
    about = orjson.loads(parts[0])
    lookups = {pool: Speculation(**how) for pool, how in about["lookups"].items()}
    return Replayable(
        endpoint=Endpoint(about["endpoint"]),
        request=parts[1],
        answer=parts[2],
        is_stream=about["is_stream"],
        lookups=lookups,
        is_cut=about["is_cut"],
    )
