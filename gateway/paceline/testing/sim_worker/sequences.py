"""An accepted request → the engine's sequences, their texts already written."""

from __future__ import annotations

import random
import secrets
import zlib

from paceline.core.suffix import SuffixIndex
from paceline.sim.counters import SpecCounts
from paceline.sim.drafter import drafter_for
from paceline.sim.generation import Generation
from paceline.sim.script import Script, make_script
from paceline.sim.writer import Writing, write
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import Prompt
from paceline.testing.sim_worker.requests import GenerateRequest


def sequences(
    request: GenerateRequest, options: SimWorkerOptions, shared: SuffixIndex | None = None
) -> list[Generation]:
    """One for every prompt and choice, in the order of the answer's choices. `shared` are the
    outputs that suffix decoding may look in."""
    call = secrets.token_hex(8)
    return [
        _sequence(request, options, prompt, f"{call}-{i}-{choice}", choice, shared)
        for i, prompt in enumerate(request.prompts)
        for choice in range(request.n)
    ]


def _sequence(
    request: GenerateRequest,
    options: SimWorkerOptions,
    prompt: Prompt,
    key: str,
    choice: int,
    shared: SuffixIndex | None,
) -> Generation:
    rng = _rng(options.seed if request.seed is None else request.seed, prompt, choice)
    writing = request.given or _written(request, prompt, rng)
    return Generation(
        key=key,
        num_prompt_tokens=max(1, len(prompt.tokens)),
        script=_script(writing.text, request),
        drafter=drafter_for(
            options.speculation,
            writing.workload,
            prompt.tokens,
            rng,
            padded=options.pads_lookups,
            shared=shared,
        ),
        max_draft_tokens=request.max_draft_tokens,
        spec=SpecCounts.up_to(options.num_speculative_tokens),
        pooled=request.pooled,
    )


def _written(request: GenerateRequest, prompt: Prompt, rng: random.Random) -> Writing:
    at_least = request.max_tokens if request.ignore_eos else request.min_tokens
    return write(prompt.turns, rng, at_least=min(at_least, request.max_tokens))


def _script(text: str, request: GenerateRequest) -> Script:
    return make_script(
        text,
        max_tokens=request.max_tokens,
        stop=request.stop,
        keep_stop=request.keep_stop,
        ends=request.given is not None or not request.ignore_eos,  # a grammar has its own end
    )


def _rng(seed: int, prompt: Prompt, choice: int) -> random.Random:
    """The same for the same prompt, choice and seed, in every process."""
    digest = zlib.crc32("".join(prompt.tokens).encode())
    return random.Random(f"{seed}-{digest}-{choice}")
