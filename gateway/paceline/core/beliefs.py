"""What is believed of one model's requests and pools, and how it changes with what they come to.

The one mutable part of the decision, with few methods: `outlook` and `drafting` and `step_time` are
asked for each request, `observe` takes in one that has ended. Everything starts from `priors`, so
there is an answer from the first request on:

- how many tokens a pass yields, from survivals by (pool, workload, band of the copy ratio), mixed
  over the request's own belief about its copy ratio (`posterior`, `priors`);
- how far copy ratios turn out otherwise than classified, by workload and by template
  (`band_shift`);
- how long a pass takes, by pool, and how much slower than its pool a worker is (`step_time`);
- how much a request writes and reads (running means).

A request's true copy ratio is not known when it ends, unless its output was looked at. It is
inferred: the bands believed in, each weighted by how well its survivals explain what was accepted.
That is one step of expectation-maximisation a request (Neal and Hinton, "A view of the EM algorithm
that justifies incremental, sparse, and other variants", 1998).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp, log
from operator import mul
from typing import NamedTuple

from paceline.core.band_shift import (
    TEMPLATE_REQUESTS,
    WORKLOAD_REQUESTS,
    BandShift,
    Shares,
    normalised,
)
from paceline.core.posterior import SurvivalPosterior, log_likelihood
from paceline.core.priors import (
    NUM_BANDS,
    band_of,
    band_shares,
    draft_limit,
    prior_step_time,
    prior_survivals,
)
from paceline.core.step_time import StepTime, StepTimeFit
from paceline.core.types import (
    Caller,
    Classification,
    PoolSnapshot,
    RequestFeatures,
    Speculation,
    WorkerSnapshot,
    Workload,
)

PRIOR_OUTPUT_TOKENS = {Workload.CODE: 300.0, Workload.CHAT: 250.0, Workload.EDIT: 300.0}
"""Of the order of ShareGPT's answers (some 200 to 300 tokens); soon replaced by what is seen."""
CHARS_PER_TOKEN = 4.0
"""Of English text in common vocabularies (OpenAI's rule of thumb); learned for the traffic here."""
MEAN_MEMORY = 64.0
"""Requests that a running mean remembers."""
MAX_TEMPLATES = 4096
SLOWNESS_WEIGHT = 1.0 / 8.0
"""Of one request in a worker's slowness."""
MOST_SLOWNESS = 8.0
LOOKUPS = frozenset(["ngram", "suffix"])


class Drafting(NamedTuple):
    """How a pool drafts for a request: the cases that the request may be, with the probability of
    each, and by k = 0, 1, … what 1 / tokens a pass is in each."""

    shares: tuple[float, ...]
    inverse_taus: tuple[tuple[float, ...], ...]

    def mean_inverse(self, k: int) -> float:
        return sum(map(mul, self.shares, self.inverse_taus[k]), start=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is expected of a request, whoever serves it. Tokens; means."""

    workload: Workload
    shares: Shares  # of the bands that its copy ratio may lie in
    output_tokens: float
    prompt_tokens: float
    context: float  # of a sequence that runs beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a request that has ended came to.

    `believed` are the classifier's bands before any correction. `accepted[i]` is the number of
    passes with i draft tokens accepted, cut to the k in use; None where the worker did not say.
    `running` and `scheduled` are the sequences beside it and the tokens of a pass, itself included,
    on average while it ran; `decode_s` the time from its first token to its last.
    """

    pool: str
    worker: str
    workload: Workload
    template: str = ""
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
class Mean:
    """A running mean that starts as its prior's, worth `prior_count` observations."""

    value: float
    count: float = 4.0

    def observe(self, value: float) -> None:
        self.count = min(self.count + 1.0, MEAN_MEMORY)
        self.value += (value - self.value) / self.count


@dataclass(slots=True)
class _Slowness:
    """How much longer a worker's passes take than its pool's fit says, as a factor."""

    log_factor: float = 0.0
    count: float = 0.0

    def observe(self, ratio: float) -> None:
        self.count += 1.0
        weight = max(SLOWNESS_WEIGHT, 1.0 / (self.count + 2.0))  # two as expected, to begin with
        bounded = min(max(log(ratio), -log(MOST_SLOWNESS)), log(MOST_SLOWNESS))
        self.log_factor += weight * (bounded - self.log_factor)

    @property
    def factor(self) -> float:
        return exp(self.log_factor)


class _PoolBelief:
    """Of one pool: survivals by workload and band, seconds of a pass, slots really drafted."""

    def __init__(self, speculation: Speculation | None) -> None:
        method = speculation.method if speculation is not None else None
        self.limit = draft_limit(speculation)
        self.looks_up = method in LOOKUPS
        priors = prior_survivals(method, self.limit)
        self.cells = {
            (workload, band): SurvivalPosterior(priors[band])
            for workload in Workload
            for band in range(NUM_BANDS)
        }
        self.fit = StepTimeFit(prior_step_time(method, self.limit))
        self.fill = Mean(1.0)  # of the k slots, what part is drafted and so verified
        self.slowness: dict[str, _Slowness] = {}
        self._inverse_taus: dict[Workload, tuple[tuple[float, ...], ...]] = {}

    def inverse_taus(self, workload: Workload) -> tuple[tuple[float, ...], ...]:
        """1 / tokens a pass, by k = 0, 1, … `limit` and then by band; kept until it changes."""
        known = self._inverse_taus.get(workload)
        if known is None:
            by_band = [
                [
                    1.0 / tau
                    for tau in accumulate(self.cells[workload, band].survivals(), initial=1.0)
                ]
                for band in range(NUM_BANDS)
            ]
            known = self._inverse_taus[workload] = tuple(zip(*by_band, strict=True))
        return known

    def changed(self, workload: Workload) -> None:
        self._inverse_taus.pop(workload, None)


@dataclass(slots=True)
class Beliefs:
    """Of one model. `pools` are its pools' speculation by name."""

    pools: dict[str, Speculation | None]
    half_life_s: float = 1800.0
    num_observed: int = 0
    num_looping: int = 0
    _of_pool: dict[str, _PoolBelief] = field(init=False)
    _shifts: dict[Workload, BandShift] = field(init=False)
    _templates: OrderedDict[str, BandShift] = field(default_factory=OrderedDict)
    _output: dict[Workload, Mean] = field(init=False)
    _prompt: Mean = field(default_factory=lambda: Mean(500.0))
    _chars_per_token: Mean = field(default_factory=lambda: Mean(CHARS_PER_TOKEN))

    def __post_init__(self) -> None:
        self._of_pool = {name: _PoolBelief(how) for name, how in self.pools.items()}
        self._shifts = {workload: BandShift(WORKLOAD_REQUESTS) for workload in Workload}
        self._output = {workload: Mean(PRIOR_OUTPUT_TOKENS[workload]) for workload in Workload}

    # -- asked for each request ------------------------------------------------------------------

    def outlook(
        self, features: RequestFeatures, classification: Classification, caller: Caller
    ) -> Outlook:
        workload, view = classification.workload, features.view
        output = self._output[workload].value
        if view.max_tokens is not None:
            output = min(output, float(max(view.max_tokens, 1)))
        return Outlook(
            workload=workload,
            shares=self._corrected(
                band_shares(classification.copy_ratio), workload, caller.template
            ),
            output_tokens=output,
            prompt_tokens=features.prompt_chars / self._chars_per_token.value,
            context=self._prompt.value + 0.5 * self._output[Workload.CHAT].value,
        )

    def drafting(self, pool: PoolSnapshot, outlook: Outlook) -> Drafting:
        return Drafting(outlook.shares, self._of_pool[pool.name].inverse_taus(outlook.workload))

    def fill(self, pool: PoolSnapshot) -> float:
        """What part of its draft slots a pool's requests use, in [0, 1]."""
        return self._of_pool[pool.name].fill.value

    def step_time(self, pool: PoolSnapshot, worker: WorkerSnapshot) -> StepTime:
        believed = self._of_pool[pool.name]
        step_time = believed.fit.step_time(self._scale())
        slow = believed.slowness.get(worker.url)
        return step_time if slow is None else step_time.times(slow.factor)

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
            where = found or self._corrected(outcome.believed, outcome.workload, outcome.template)
            for band, share in enumerate(where):
                pool.cells[outcome.workload, band].observe(
                    outcome.accepted, passes, now_s, half_life_s=self.half_life_s, weight=share
                )
            if outcome.drafted_tokens is not None and outcome.k > 0:
                pool.fill.observe(min(1.0, outcome.drafted_tokens / (outcome.k * passes)))
            pool.changed(outcome.workload)
        self._observe_time(outcome, pool, passes)

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
        self, outcome: Outcome, pool: _PoolBelief | None, passes: float | None
    ) -> Shares | None:
        """Where the copy ratio lay, as far as can be told; None if nothing was seen of it.

        What a lookup accepted tells it (rank correlation 0.88 with the overlap in the traces of
        SpecDecode-Bench). A trained head's acceptance does not: code drafts well without copying.
        """
        if outcome.copy_ratio is not None:
            return tuple([float(band == band_of(outcome.copy_ratio)) for band in range(NUM_BANDS)])
        if pool is None or passes is None or outcome.accepted is None or not pool.looks_up:
            return None
        believed = self._corrected(outcome.believed, outcome.workload, outcome.template)
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
        shift = self._shifts[outcome.workload]
        if outcome.template:
            template = self._templates.pop(outcome.template, None) or BandShift(TEMPLATE_REQUESTS)
            self._templates[outcome.template] = template  # the latest comes last
            template.observe(shift.corrected(outcome.believed), found)
            while len(self._templates) > MAX_TEMPLATES:
                self._templates.popitem(last=False)
        shift.observe(outcome.believed, found)

    def _observe_time(self, outcome: Outcome, pool: _PoolBelief, passes: float) -> None:
        if outcome.decode_s is None or outcome.decode_s <= 0 or passes < 4:
            return
        seconds = outcome.decode_s / passes
        context = (outcome.prompt_tokens or 0) + 0.5 * (outcome.output_tokens or 0)
        if pool.fit.num_observed > 0:
            expected = pool.fit.step_time().seconds(outcome.running, outcome.scheduled, context)
            slow = pool.slowness.setdefault(outcome.worker, _Slowness())
            slow.observe(seconds / expected)
        pool.fit.observe(outcome.running, outcome.scheduled, context, seconds)

    # -- within ----------------------------------------------------------------------------------

    def _corrected(self, shares: Shares, workload: Workload, template: str) -> Shares:
        shares = self._shifts[workload].corrected(shares)
        shift = self._templates.get(template) if template else None
        return shares if shift is None else shift.corrected(shares)

    def _scale(self) -> float | None:
        """How slow this model's passes are beside the prior's device: of the pools measured, whose
        devices the others are believed to share."""
        scales = [of.fit.scale for of in self._of_pool.values()]
        known = sorted(filter(None, scales))
        return known[len(known) // 2] if known else None
