"""What is believed of one model's requests and pools, and how it changes with what they come to.

The one mutable part of the decision, with few methods: `outlook` and `drafting` and `step_time` are
asked for each request, `observe` takes in one that has ended. Everything starts from `priors`, so
there is an answer from the first request on:

- how many tokens a pass yields, from survivals by (pool, workload, band of the copy ratio), mixed
  over the request's own belief about its copy ratio (`posterior`, `priors`);
- how far copy ratios turn out otherwise than classified, by workload, template and conversation
  (`band_shift`);
- how long a pass takes, by pool, and how much slower than its pool a worker is (`step_time`);
- how much a request writes and reads (running means).

A request's true copy ratio is not known when it ends, unless its output was looked at. It is
inferred: the bands believed in, each weighted by how well its survivals explain what was accepted.
That is one step of expectation-maximisation a request (Neal and Hinton, "A view of the EM algorithm
that justifies incremental, sparse, and other variants", 1998).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from msgspec import Struct

from paceline.core.band_shift import (
    CONVERSATION_REQUESTS,
    TEMPLATE_REQUESTS,
    WORKLOAD_REQUESTS,
    BandShift,
    Shares,
    Shifts,
    normalised,
)
from paceline.core.knee import knee_running_sequences
from paceline.core.pool_belief import Drafting, Mean, PoolBelief
from paceline.core.posterior import log_likelihood
from paceline.core.priors import NUM_BANDS, band_of, band_shares, prior_step_time
from paceline.core.step_time import StepTime, StepTimeFit
from paceline.core.types import (
    Caller,
    Classification,
    CopyRatio,
    RequestFeatures,
    Speculation,
    Workload,
)

MAX_KEPT = 4096
"""Beliefs about copy ratios for which it is kept what follows. They are rounded, so few differ."""
_CHAT = Workload.CHAT
"""Read of the enum once, since Python 3.11 looks for a member in Python."""
PRIOR_OUTPUT_TOKENS = {Workload.CODE: 300.0, Workload.CHAT: 250.0, Workload.EDIT: 300.0}
"""Of the order of ShareGPT's answers (some 200 to 300 tokens); soon replaced by what is seen."""
PRIOR_COPY_RATIOS = {
    Workload.CODE: (0.0, 0.02, 0.05, 0.1, 0.3),
    Workload.CHAT: (0.0, 0.0, 0.02, 0.05, 0.15),
    Workload.EDIT: (0.1, 0.5, 0.75, 0.88, 0.95),
}
"""What a workload's requests are like as a whole: quantiles of the development prompts."""
TYPICAL_WEIGHT = 1.0 / 64.0
"""Of one request in that."""
CHARS_PER_TOKEN = 4.0
"""Of English text in common vocabularies (OpenAI's rule of thumb); learned for the traffic here."""
MOST_TOKENS = 2**24
"""Of a prompt or an answer that is believed: beyond it a worker has miscounted. So what is learned,
and kept, has this bound too."""
MOST_CHARS_PER_TOKEN = float(2**32)


class Outlook(Struct, frozen=True, kw_only=True):
    """What is expected of a request, whoever serves it. Tokens; means."""

    workload: Workload
    shares: Shares  # of the bands that its copy ratio may lie in
    output_tokens: float
    prompt_tokens: float
    context: float  # of a sequence that runs beside it


class Outcome(Struct, frozen=True, kw_only=True):
    """What a request that has ended came to.

    `believed` are the classifier's bands before any correction. `accepted[i]` is the number of
    passes with i draft tokens accepted, cut to the k in use; None where the worker did not say.
    `running` and `scheduled` are the sequences beside it and the tokens of a pass, itself included,
    on average while it ran; `decode_s` the time from its first token to its last.
    """

    pool: str
    worker: str
    workload: Workload
    template: int = 0
    conversation: int = 0
    believed: Shares
    k: int
    prompt_chars: int = 0
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    max_tokens: int | None = None
    accepted: tuple[int, ...] | None = None
    drafted_tokens: int | None = None
    decode_s: float | None = None
    running: float = 1.0
    scheduled: float = 1.0
    copy_ratio: float | None = None  # where the output was looked at
    loops: bool = False  # its output repeats itself, which fakes the success of lookups

    @property
    def num_passes(self) -> float | None:
        """Decode passes: each yields one token beside those accepted; the first token comes with
        the prompt. None where they cannot be counted."""
        if self.output_tokens is None or self.output_tokens < 2:
            return None
        if self.accepted is None:
            return float(self.output_tokens - 1) if self.k == 0 else None
        accepted = sum(i * count for i, count in enumerate(self.accepted))
        return float(max(self.output_tokens - 1 - accepted, sum(self.accepted)))


@dataclass(slots=True)
class Beliefs:
    """Of one model. `pools` are its pools' speculation by name."""

    pools: dict[str, Speculation | None]
    half_life_s: float = 1800.0
    num_observed: int = 0
    num_looping: int = 0
    _of_pool: dict[str, PoolBelief] = field(init=False)
    _shifts: dict[Workload, BandShift] = field(init=False)
    _templates: Shifts = field(default_factory=lambda: Shifts(TEMPLATE_REQUESTS))
    _conversations: Shifts = field(default_factory=lambda: Shifts(CONVERSATION_REQUESTS))
    _output: dict[Workload, Mean] = field(init=False)
    _prompt: Mean = field(default_factory=lambda: Mean(500.0))
    _chars_per_token: Mean = field(default_factory=lambda: Mean(CHARS_PER_TOKEN))
    _typical: dict[Workload, Shares] = field(init=False)
    _beliefs: dict[tuple[CopyRatio, Workload, int], Shares] = field(default_factory=dict)
    _draftings: dict[tuple[Workload, Shares], Mapping[str, Drafting]] = field(default_factory=dict)
    _step_times: dict[str, _StepTimes] = field(default_factory=dict)  # all until they change
    _timed_s: float = 0.0  # when passes were timed last, in any pool

    def __post_init__(self) -> None:
        self._of_pool = {
            name: PoolBelief(how, self.half_life_s) for name, how in self.pools.items()
        }
        self._shifts = {workload: BandShift(WORKLOAD_REQUESTS) for workload in Workload}
        self._output = {workload: Mean(PRIOR_OUTPUT_TOKENS[workload]) for workload in Workload}
        self._typical = {
            workload: band_shares(CopyRatio(quantiles=PRIOR_COPY_RATIOS[workload]))
            for workload in Workload
        }

    # -- asked for each request ------------------------------------------------------------------

    def outlook(
        self, features: RequestFeatures, classification: Classification, caller: Caller
    ) -> Outlook:
        workload, most = classification.workload, features.view.max_tokens
        output = self._output[workload].value
        if most is not None and most < output:
            output = float(max(most, 1))
        shares = self._believed(classification.copy_ratio, workload, caller.template)
        return Outlook(
            workload=workload,
            shares=self._conversations.corrected(conversation_key(caller), shares),
            output_tokens=output,
            prompt_tokens=features.prompt_chars / self._chars_per_token.value,
            context=self._context,
        )

    def draftings(self, outlook: Outlook) -> Mapping[str, Drafting]:
        """By pool; kept until something is learned of one."""
        key = (outlook.workload, outlook.shares)
        known = self._draftings.get(key)
        if known is None:
            if len(self._draftings) >= MAX_KEPT:
                self._draftings.clear()
            known = {name: believed.drafting(*key) for name, believed in self._of_pool.items()}
            self._draftings[key] = known
        return known

    def looks_up(self, pool: str) -> bool:
        """Whether a pool drafts by looking up, so that what it accepts tells of copying."""
        return self._of_pool[pool].looks_up

    def fill_of(self, pool: str) -> float:
        """What part of its draft slots a pool's requests use, in [0, 1]."""
        return self._of_pool[pool].fill.value

    def step_times(self, pool: str) -> Mapping[str, StepTime]:
        """By worker; worked out when asked for, and kept until passes were timed again."""
        known = self._step_times.get(pool)
        if known is None:
            of = self._of_pool[pool]
            known = self._step_times[pool] = _StepTimes(of, self._timed_s, self._elsewhere(of))
        return known

    # -- asked by operators ----------------------------------------------------------------------

    def tokens_per_pass(self, pool: str, workload: Workload) -> tuple[float, ...]:
        """By k = 0, 1, …, for the requests of a workload as they are as a whole."""
        return tuple(1.0 / mean for mean in self._typically(pool, workload).mean_inverses)

    def knee(self, pool: str, workload: Workload) -> int | None:
        """Running sequences from which the pool is slower than one that does not speculate; None
        if that is far off. The latter is the model's own, or as fast as one would be."""
        plain = next((of for of in self._of_pool.values() if of.limit == 0), None)
        fit = StepTimeFit(prior_step_time(None, 0)) if plain is None else plain.fit
        return knee_running_sequences(
            fit.step_time(self._timed_s, self._elsewhere(plain)),
            self.pool_step_time(pool),
            self._typically(pool, workload).mean_inverses,
            fill=self.fill_of(pool),
            context=self._context,
        )

    def pool_step_time(self, pool: str) -> StepTime:
        """Of a worker that is neither slower nor faster than its pool."""
        of = self._of_pool[pool]
        return of.fit.step_time(self._timed_s, self._elsewhere(of))

    def fit_of(self, pool: str) -> StepTimeFit:
        return self._of_pool[pool].fit

    def slowness(self, pool: str, worker: str) -> float:
        """How much longer a worker's passes take than its pool's do."""
        slow = self._of_pool[pool].slowness.get(worker)
        return 1.0 if slow is None else slow.factor(self._timed_s)

    def _typically(self, pool: str, workload: Workload) -> Drafting:
        return self._of_pool[pool].drafting(workload, self._typical[workload])

    # -- told of each that has ended -------------------------------------------------------------

    def observe(self, outcome: Outcome, now_s: float) -> None:
        """Learns of a request that was answered to its end. Looping outputs are only counted."""
        self.num_observed += 1
        if outcome.loops:
            self.num_looping += 1
            return
        self._observe_sizes(outcome)
        pool = self._of_pool.get(outcome.pool)
        passes = outcome.num_passes
        found = self._found_bands(outcome, pool, passes)
        if found is not None:
            self._observe_bands(outcome, found)
        if pool is None or passes is None:
            return
        if outcome.accepted is not None:
            where = found or self._corrected(outcome)
            for band, share in enumerate(where):
                pool.cells[outcome.workload, band].observe(
                    outcome.accepted, passes, now_s, half_life_s=self.half_life_s, weight=share
                )
            if outcome.drafted_tokens is not None and outcome.k > 0:
                pool.fill.observe(min(1.0, outcome.drafted_tokens / (outcome.k * passes)))
            self._changed(pool, outcome.workload)
        self._observe_time(outcome, pool, passes, now_s)

    def observe_replay(
        self,
        pool: str,
        workload: Workload,
        copy_ratio: float,
        survivals: Sequence[float],
        num_passes: int,
        now_s: float,
    ) -> None:
        """Learns what a lookup pool would have made of a request that another pool served."""
        believed = self._of_pool.get(pool)
        if believed is None or num_passes < 1:
            return
        levels = (1.0, *survivals, 0.0)
        accepted = [num_passes * (levels[i] - levels[i + 1]) for i in range(len(levels) - 1)]
        believed.cells[workload, band_of(copy_ratio)].observe(
            accepted, float(num_passes), now_s, half_life_s=self.half_life_s
        )
        self._changed(believed, workload)

    def _observe_sizes(self, outcome: Outcome) -> None:
        if outcome.prompt_tokens:
            self._prompt.observe(outcome.prompt_tokens)
            if outcome.prompt_chars > 0:
                self._chars_per_token.observe(outcome.prompt_chars / outcome.prompt_tokens)
        if outcome.output_tokens:
            cut = outcome.max_tokens is not None and outcome.output_tokens >= outcome.max_tokens
            mean = self._output[outcome.workload]
            if not cut or outcome.output_tokens > mean.value:  # else it says nothing of the mean
                mean.observe(outcome.output_tokens)

    def _found_bands(
        self, outcome: Outcome, pool: PoolBelief | None, passes: float | None
    ) -> Shares | None:
        """Where the copy ratio lay, as far as can be told; None if nothing was seen of it.

        What a lookup accepted tells it (rank correlation 0.88 with the overlap in the traces of
        SpecDecode-Bench). A trained head's acceptance does not: code drafts well without copying.
        """
        if outcome.copy_ratio is not None:
            return tuple([float(band == band_of(outcome.copy_ratio)) for band in range(NUM_BANDS)])
        if pool is None or passes is None or outcome.accepted is None or not pool.looks_up:
            return None
        believed = self._corrected(outcome)
        logs = [
            log_likelihood(outcome.accepted, passes, pool.cells[outcome.workload, band].survivals())
            for band in range(NUM_BANDS)
        ]
        highest = max(logs)
        return normalised(
            share * exp(explained - highest)
            for share, explained in zip(believed, logs, strict=True)
        )

    def _observe_bands(self, outcome: Outcome, found: Shares) -> None:
        """Of the workload, then of what is narrower: each learns what is left to be put right."""
        shift = self._shifts[outcome.workload]
        believed = shift.corrected(outcome.believed)
        believed = self._templates.observe(outcome.template, believed, found)
        self._conversations.observe(outcome.conversation, believed, found)
        typical = self._typical[outcome.workload]
        self._typical[outcome.workload] = tuple(
            old + TYPICAL_WEIGHT * (new - old) for old, new in zip(typical, found, strict=True)
        )
        shift.observe(outcome.believed, found)
        self._beliefs.clear()

    def _observe_time(
        self, outcome: Outcome, pool: PoolBelief, passes: float, now_s: float
    ) -> None:
        if outcome.decode_s is None or outcome.decode_s <= 0 or passes < 4:
            return
        seconds = outcome.decode_s / passes
        context = (outcome.prompt_tokens or 0) + 0.5 * (outcome.output_tokens or 0)
        self._step_times.clear()
        self._timed_s = now_s
        pool.observe_time(
            outcome.worker, outcome.running, outcome.scheduled, context, seconds, now_s,
            self._elsewhere(pool),
        )  # fmt: skip

    @property
    def _context(self) -> float:
        """Tokens that a running sequence has before it, on average."""
        return self._prompt.value + 0.5 * self._output[_CHAT].value

    # -- kept from one start to the next ---------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that was learned, but for what may be another's tomorrow (templates, conversations,
        slow workers), as plain JSON values."""
        return {
            "pools": {name: of.state() for name, of in self._of_pool.items()},
            "shifts": {workload.value: shift.state() for workload, shift in self._shifts.items()},
            "output": {workload.value: mean.state() for workload, mean in self._output.items()},
            "typical": {workload.value: list(shares) for workload, shares in self._typical.items()},
            "prompt": self._prompt.state(),
            "chars_per_token": self._chars_per_token.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes up what was learned before; pools that are new or draft otherwise start anew.

        Raises ValueError, KeyError, TypeError for what is no such state.
        """
        for name, believed in self._of_pool.items():
            if name in state["pools"]:
                believed.restore(state["pools"][name])
        for workload in Workload:
            self._shifts[workload].restore(**state["shifts"][workload.value])
            self._output[workload] = Mean.of(
                state["output"][workload.value], least=1.0, most=MOST_TOKENS
            )
            self._typical[workload] = _shares(state["typical"][workload.value])
        self._step_times.clear()
        self._draftings.clear()
        self._beliefs.clear()
        self._prompt = Mean.of(state["prompt"], least=1.0, most=MOST_TOKENS)
        self._chars_per_token = Mean.of(
            state["chars_per_token"], least=1.0 / MOST_TOKENS, most=MOST_CHARS_PER_TOKEN
        )

    # -- within ----------------------------------------------------------------------------------

    def _changed(self, pool: PoolBelief, workload: Workload) -> None:
        """Something was learned of how a pool drafts."""
        pool.changed(workload)
        self._draftings.clear()

    def _corrected(self, outcome: Outcome) -> Shares:
        shares = self._put_right(outcome.believed, outcome.workload, outcome.template)
        return self._conversations.corrected(outcome.conversation, shares)

    def _believed(self, copy_ratio: CopyRatio, workload: Workload, template: int) -> Shares:
        """The classifier's belief, put right by its workload and template; kept until either of
        any request has turned out."""
        key = (copy_ratio, workload, template)
        known = self._beliefs.get(key)
        if known is None:
            if len(self._beliefs) >= MAX_KEPT:
                self._beliefs.clear()
            known = self._put_right(band_shares(copy_ratio), workload, template)
            self._beliefs[key] = known
        return known

    def _put_right(self, shares: Shares, workload: Workload, template: int) -> Shares:
        """The classifier's belief, by how the like of its workload and template have turned out."""
        return self._templates.corrected(template, self._shifts[workload].corrected(shares))

    def _elsewhere(self, pool: PoolBelief | None) -> float | None:
        """How slow this model's passes are beside the prior's device, in all other pools: `pool` is
        believed to have the same device until its own passes say otherwise."""
        return StepTimeFit.scale(of.fit for of in self._of_pool.values() if of is not pool)


class _StepTimes(dict[str, StepTime]):
    """Of one pool, by worker."""

    def __init__(self, pool: PoolBelief, now_s: float, elsewhere: float | None) -> None:
        self._pool = pool
        self._now_s = now_s
        self._elsewhere = elsewhere

    def __missing__(self, worker: str) -> StepTime:
        found = self[worker] = self._pool.step_time(worker, self._now_s, self._elsewhere)
        return found


def _shares(kept: Sequence[float]) -> Shares:
    """Raises ValueError for what are no probabilities of the bands."""
    if len(kept) != NUM_BANDS or not all(0.0 <= share <= 1.0 for share in kept) or not sum(kept):
        raise ValueError(f"not the probabilities of {NUM_BANDS} bands")
    return normalised(kept)


def conversation_key(caller: Caller) -> int:
    """What a conversation is remembered by: Python's own hash, which differs between processes. 0,
    which is that of nothing, is no conversation."""
    return hash(caller.conversation)
