"""How a family of endpoints speaks in its streams: which events end something, what an error is.

The relay asks the `Dialect` of a request about every block that goes by. Most are text on its way
and are told by a look at their bytes; JSON is read for the few that end something.

    family     ends with                                 usage                    an error
    chunks     [DONE]                                    a chunk without choices  {"error": …}
    responses  response.completed, .incomplete, .failed  in the response there    event: error
    messages   message_stop                              in message_delta         event: error

What vLLM 0.32 sends: `[DONE]` after chunks alone, also after its errors; in responses nothing but
`response.completed`, and a failure within a stream as a cut connection; in messages an `error` of
type `internal_error`, whatever the cause, and then no `message_stop`; no comments, no `ping`; what
was accepted (`metrics.speculative_decoding`) for chat and completions only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import UNSET, DecodeError, Struct, UnsetType
from msgspec.json import Decoder

from paceline.core.acceptance import SpeculationReport
from paceline.core.chunks import Kind, json_or_none
from paceline.core.dialect_chunks import ChunkDialect
from paceline.core.dialect_messages import MessagesDialect
from paceline.core.dialect_responses import ResponsesDialect
from paceline.core.fields import integer, mapping
from paceline.core.types import Endpoint
from paceline.errors import PacelineError


class Dialect(Protocol):
    """One family's ways, for one stream: `read` is told every block of it, in order."""

    @property
    def complete(self) -> bool:
        """Whether the stream, if it ended here without more, would be a whole answer."""

    def passes(self, data: bytes) -> bool:
        """Whether `data`, which begins with an event, is nothing but whole events that are all
        `Kind.OTHER`, told at a look; then `read` need not be told of them. No may also mean not
        known."""

    def read(self, block: bytes) -> tuple[Kind, dict[str, Any]]:
        """What a block is, and its event where that was read. Nothing may follow `Kind.DONE`."""

    def first_event(self, blocks: Sequence[bytes]) -> bytes | None:
        """The data of the first event that shows the worker at work, for which the status waits.

        Comments, `ping`, and the events that open a response before any of it is there show
        nothing: the worker may still refuse, or be replaced by another.
        """

    def rejection(self, data: bytes | None) -> tuple[int, bytes] | None:
        """The status and the JSON body that an error in place of the first event stands for."""

    def error_event(self, error: PacelineError) -> bytes:
        """Our error at the end of a stream whose status has gone out: what this family's official
        clients raise. Nothing follows it that would say the stream came to its proper end."""


def dialect_of(endpoint: Endpoint, *, num_choices: int = 1) -> Dialect:
    """A new dialect for one stream of `endpoint`.

    `num_choices` must have said why they ended for chunks without `[DONE]` to be complete. In
    transcriptions every piece of the audio has its own finish reason (vLLM cuts it into pieces of
    30 s), so there only `[DONE]` tells.
    """
    match endpoint:
        case Endpoint.RESPONSES:
            return ResponsesDialect()
        case Endpoint.MESSAGES:
            return MessagesDialect()
        case Endpoint.TRANSCRIPTIONS:
            return ChunkDialect(num_choices=None)
    return ChunkDialect(num_choices=num_choices)


class Said(Struct, frozen=True, kw_only=True):
    """What an answer says of itself at its end; None is unknown."""

    num_output_tokens: int | None = None
    num_prompt_tokens: int | None = None
    report: SpeculationReport | None = None

    def then(self, later: Said) -> Said:
        """As a later event of the same answer has it; what that does not say stays as it was."""
        output, prompt = later.num_output_tokens, later.num_prompt_tokens
        return Said(
            num_output_tokens=self.num_output_tokens if output is None else output,
            num_prompt_tokens=self.num_prompt_tokens if prompt is None else prompt,
            report=later.report or self.report,
        )


def said_by(answer: Mapping[str, Any]) -> Said:
    """Of a whole answer of any family, or of the event of a stream that carries usage."""
    answer = mapping(answer.get("response")) or answer  # as the last event of responses wraps it
    usage = mapping(answer.get("usage"))
    num_tokens = integer(usage.get("completion_tokens", usage.get("output_tokens")))
    return Said(
        num_output_tokens=num_tokens,
        num_prompt_tokens=integer(usage.get("prompt_tokens", usage.get("input_tokens"))),
        report=SpeculationReport.of(answer),
    )


class _Usage(Struct, frozen=True):
    completion_tokens: int | UnsetType | None = UNSET
    output_tokens: int | None = None
    prompt_tokens: int | UnsetType | None = UNSET
    input_tokens: int | None = None


class _Drafted(Struct):
    num_spec_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    acceptance_histogram: list[int] | None = None


class _Metrics(Struct):
    speculative_decoding: _Drafted | None = None


class _Usual(Struct):
    usage: _Usage = _Usage()
    metrics: _Metrics | None = None
    response: None = None  # an event of a stream


_USUAL = Decoder(_Usual)


def said_in(answer: bytes) -> Said:
    """The same of a whole answer's bytes, which are not read but for what is asked of them."""
    try:
        usual = _USUAL.decode(answer)
    except DecodeError:  # of other types than usual, or no JSON
        return said_by(mapping(json_or_none(answer)))
    usage, report = usual.usage, None
    if usual.metrics is not None and usual.metrics.speculative_decoding is not None:
        drafted = usual.metrics.speculative_decoding
        report = SpeculationReport.told(
            drafted.num_spec_steps,
            drafted.num_draft_tokens,
            drafted.num_accepted_draft_tokens,
            drafted.acceptance_histogram,
        )
    output, prompt = usage.completion_tokens, usage.prompt_tokens
    return Said(
        num_output_tokens=usage.output_tokens if output is UNSET else output,
        num_prompt_tokens=usage.input_tokens if prompt is UNSET else prompt,
        report=report,
    )
