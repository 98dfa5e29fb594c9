"""Many workers under one clock, fast: a worker jumps from one change of its batch to the next.

`engine.py` goes pass by pass and token by token. Here a sequence's number of passes is drawn when
it joins (`truth.num_passes`); until some sequence ends or another one joins, each pass differs from
the last only by the context that has grown, so its length is a straight line in the pass number and
the sum over any number of passes is known at once. A change costs O(log n) in the batch.

As in the engine: who arrives during a pass joins the next; prompts are computed beside the decodes
within the token budget, first come, first served; the pass that ends a prefill yields its first
token. A worker drafts its pool's k tokens for every sequence; of these each sequence has its own k
verified.

Left out: preemption (a sequence joins only when its whole answer has room in the KV cache),
batch-size schedules, prefix caching. A sequence's tokens are spread evenly over its passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, sqrt

from paceline.core.cost import PassCosts, PassLoad
from paceline.core.lookup import LOOKUPS
from paceline.core.types import WorkerLoad
from paceline.sim.cost import pass_costs
from paceline.sim.hardware import kv_cache_tokens
from paceline.sim.scenario import Fault, Scenario, SimulatedPool
from paceline.sim.truth import Draws, draws, num_passes
from paceline.sim.workload import Request

SCRAPE_S = 1.0
"""Between two looks at the workers' own metrics."""


@dataclass(slots=True, eq=False)
class Job:
    """A request on a worker, and what became of it; times are None until they come.

    `running` is the number of sequences beside it and itself, and `scheduled` the tokens of a pass,
    both averaged over its start and end.
    """

    request: Request
    worker: int
    k: int
    draws: Draws
    num_passes: int
    tokens_per_pass: float
    scheduled_tokens: float  # its own, in each of its passes
    first_s: float | None = None
    finish_s: float | None = None
    running: float = 0.0
    scheduled: float = 0.0

    @property
    def num_drafted(self) -> int:
        """Draft tokens that were verified."""
        return round(self.num_passes * (self.scheduled_tokens - 1.0))

    @property
    def num_accepted(self) -> int:
        """Tokens beyond the one that each pass, and the prefill, yields anyway."""
        return self.request.num_output_tokens - 1 - self.num_passes


class PassTimes:
    """`PassCosts`, with its constants taken apart so that a pass costs two look-ups.

    Seconds are linear in context and in query-context pairs; the rest depends on whole numbers that
    come again and again.
    """

    def __init__(self, costs: PassCosts, k: int) -> None:
        self.costs = costs
        self._k = k
        self._kept: dict[tuple[int, int], float] = {}
        many = 10**6
        base_s = self.fixed_s(1, 1)
        self.context_s = (self.seconds(1, 1, context=many) - base_s) / many
        self.pair_s = (self.seconds(1, 1, pairs=many) - base_s) / many

    def seconds(self, num_tokens: int, yielding: int, context: int = 0, pairs: int = 0) -> float:
        """Of a pass with `num_tokens`, after which `yielding` sequences get a draft."""
        return self.costs.seconds(
            PassLoad(
                num_tokens=num_tokens,
                num_context_tokens=context,
                num_pairs=pairs,
                draft_steps=self._k if yielding else 0,
                num_drafting=yielding if self._k else 0,
                verifies=num_tokens > yielding and self._k > 0,
            )
        )

    def fixed_s(self, num_tokens: int, running: int) -> float:
        """Seconds of a decode pass, if it looked at no context."""
        key = (num_tokens, running)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self.seconds(num_tokens, running)
        return found


class SimulatedWorker:
    """One worker. `in_flight` counts jobs from their arrival to their last token, and
    `drafting_in_flight` the draft tokens of their passes; `changes` grows with each that comes or
    goes."""

    def __init__(
        self, index: int, pool: SimulatedPool, times: PassTimes, scenario: Scenario
    ) -> None:
        self.index, self.pool, self.times = index, pool, times
        self.in_flight = 0
        self.drafting_in_flight = 0.0
        self.changes = 0
        self.last_picked = 0
        self.waiting: deque[Job] = deque()
        self.running = 0
        self.event_s: float | None = None  # the next change, always at the end of a pass
        self.version = 0  # of `event_s`
        self.draft_tokens = 0.0  # that a pass verifies
        self._budget = scenario.max_num_batched_tokens
        self._kv_tokens = kv_cache_tokens(scenario.hardware, scenario.model)
        self._kv_reserved = 0
        self._begun_s = 0.0
        self._passes = 0  # ended since the start of the simulation
        self._event_passes = 0  # how many passes the change is away from `_begun_s`
        self._first_s = 0.0  # seconds of the first of them
        self._growth_s = 0.0  # by which each is longer than the one before
        self._ends: list[tuple[int, int, Job]] = []  # (pass in which it ends, tie-breaker, job)
        self._tokens = 0.0
        self._context = self._context_rate = 0.0
        self._pairs = self._pairs_rate = 0.0
        self._prefilling: list[Job] = []  # whose prefill ends with the pass under way
        self._is_prefill = False
        self._left = 0  # prompt tokens of the first in the queue that are still to be computed

    @property
    def context(self) -> float:
        """Tokens of all running sequences, at the last change."""
        return self._context

    @property
    def kv_cache_usage(self) -> float:
        return min(1.0, self._context / self._kv_tokens)

    def submit(self, job: Job, now_s: float) -> None:
        self.in_flight += 1
        self.changes += 1
        self.drafting_in_flight += job.scheduled_tokens - 1.0
        self.waiting.append(job)
        if self.event_s is None:
            self._begin(now_s)
        elif len(self.waiting) == 1 and not self._is_prefill:
            self._cut(now_s)

    def slow_down(self, factor: float, now_s: float) -> None:
        """All passes after the one under way take `factor` times as long."""
        self.times = PassTimes(self.times.costs.slowed(factor), self.pool.k)
        if self.event_s is not None and not self._is_prefill:
            self._cut(now_s)

    def step(self) -> list[Job]:
        """What is due at `event_s`: the jobs that end then, and the next stretch begun."""
        assert self.event_s is not None
        now_s = self.event_s
        self._advance(self._event_passes)
        ended: list[Job] = []
        if self._is_prefill:
            self._end_prefill(now_s, ended)
        ends = self._ends
        while ends and ends[0][0] <= self._passes:
            job = heappop(ends)[2]
            self._leave(job)
            ended.append(job)
        for job in ended:
            job.finish_s = now_s
            self.drafting_in_flight -= job.scheduled_tokens - 1.0
        self.in_flight -= len(ended)
        self.changes += len(ended)
        self._begin(now_s)
        return ended

    # --- stretches of passes ----------------------------------------------------------------------

    def _begin(self, now_s: float) -> None:
        self.version += 1
        self._begun_s = now_s
        self._is_prefill = False
        if self.waiting and self._begin_prefill(now_s):
            return
        if not self.running:
            self.event_s = None
            self._context = self._context_rate = self._pairs = self._pairs_rate = 0.0
            return
        times = self.times
        self._first_s = (
            times.fixed_s(round(self._tokens), self.running)
            + times.context_s * self._context
            + times.pair_s * self._pairs
        )
        self._growth_s = times.context_s * self._context_rate + times.pair_s * self._pairs_rate
        self._event_passes = self._ends[0][0] - self._passes
        self.event_s = now_s + self._after(self._event_passes)

    def _after(self, passes: int) -> float:
        """Seconds that the first so many passes of the stretch take."""
        return passes * (self._first_s + self._growth_s * (passes - 1) / 2)

    def _cut(self, now_s: float) -> None:
        """End the stretch with the pass that is under way at `now_s`."""
        gone_s = now_s - self._begun_s
        half = self._growth_s / 2
        first = self._first_s - half
        passes = 2 * gone_s / (first + sqrt(first * first + 4 * half * gone_s))
        self._event_passes = min(self._event_passes, max(1, ceil(passes - 1e-9)))
        self.version += 1
        self.event_s = self._begun_s + self._after(self._event_passes)

    def _advance(self, passes: int) -> None:
        self._passes += passes
        self._context += passes * self._context_rate
        self._pairs += passes * self._pairs_rate

    # --- who joins and leaves ---------------------------------------------------------------------

    def _begin_prefill(self, now_s: float) -> bool:
        """A pass with prompts in it; False if none of them has room."""
        budget = self._budget - round(self._tokens)
        chunks = pairs = context = 0
        joining = self._prefilling
        while self.waiting and budget > 0 and self.running + len(joining) < self.pool.max_num_seqs:
            job = self.waiting[0]
            prompt = job.request.num_prompt_tokens
            if not self._left:
                whole = prompt + job.request.num_output_tokens + job.k
                if self._kv_reserved + whole > self._kv_tokens and self._kv_reserved:
                    break
                self._kv_reserved += whole
                self._left = prompt
            chunk = min(self._left, budget)
            done = prompt - self._left
            budget -= chunk
            chunks += chunk
            context += done + chunk
            pairs += chunk * done + chunk * chunk // 2
            self._left -= chunk
            if self._left:
                break
            joining.append(self.waiting.popleft())
        if not chunks:
            return False
        self._is_prefill = True
        self._event_passes = 1
        self.event_s = now_s + self.times.seconds(
            round(self._tokens) + chunks,
            self.running + len(joining),
            round(self._context) + context,
            round(self._pairs) + pairs,
        )
        return True

    def _end_prefill(self, now_s: float, ended: list[Job]) -> None:
        for job in self._prefilling:
            job.first_s = now_s
            if job.num_passes:
                self._join(job)
            else:
                self._kv_reserved -= _reserved(job)
                ended.append(job)
        self._prefilling = []

    def _join(self, job: Job) -> None:
        self.running += 1
        job.running = self.running
        tokens, context = job.scheduled_tokens, job.request.num_prompt_tokens + 1
        self._tokens += tokens
        job.scheduled = self._tokens
        self.draft_tokens += tokens - 1.0
        self._context += context
        self._context_rate += job.tokens_per_pass
        self._pairs += tokens * context
        self._pairs_rate += tokens * job.tokens_per_pass
        heappush(self._ends, (self._passes + job.num_passes, job.request.index, job))

    def _leave(self, job: Job) -> None:
        job.running = (job.running + self.running) / 2
        job.scheduled = (job.scheduled + self._tokens) / 2
        self.running -= 1
        request, tokens = job.request, job.scheduled_tokens
        context = request.num_prompt_tokens + request.num_output_tokens
        self._tokens -= tokens
        self.draft_tokens = self.draft_tokens - (tokens - 1.0) if self.running else 0.0
        self._context -= context
        self._context_rate -= job.tokens_per_pass
        self._pairs -= tokens * context
        self._pairs_rate -= tokens * job.tokens_per_pass
        self._kv_reserved -= _reserved(job)


def _reserved(job: Job) -> int:
    return job.request.num_prompt_tokens + job.request.num_output_tokens + job.k


Choose = Callable[["Fleet", Request, float], tuple[int, int]]
"""(fleet, request, now) → (worker, k)."""
Ended = Callable[[Job, float], None]


class Fleet:
    """The workers of a scenario's pools, in their order, and the clock over them.

    `loads` are what the workers' metrics said at the last look, up to `SCRAPE_S` ago; in-flight
    counts are fresh.
    """

    def __init__(self, scenario: Scenario, pools: Sequence[SimulatedPool] | None = None) -> None:
        self.scenario = scenario
        self.pools = tuple(scenario.pools if pools is None else pools)
        self.now_s = 0.0
        self.workers: list[SimulatedWorker] = []
        self.pool_workers: dict[str, range] = {}
        for pool in self.pools:
            costs = pass_costs(scenario.hardware, scenario.model, method=pool.method)
            times = PassTimes(costs, pool.k)
            first = len(self.workers)
            self.workers += [
                SimulatedWorker(first + i, pool, times, scenario) for i in range(pool.num_workers)
            ]
            self.pool_workers[pool.name] = range(first, len(self.workers))
        self.loads = [WorkerLoad()] * len(self.workers)
        self.loads_version = 0
        self._scrapes = True
        self._scrape_at_s = 0.0
        self._events: list[tuple[float, int, int]] = []  # (when, worker, version)
        self._faults = sorted(scenario.faults, key=lambda fault: fault.at_s)

    @property
    def mean_context(self) -> float:
        """Tokens of a running sequence, over all workers; 0 while none runs."""
        running = sum([worker.running for worker in self.workers])
        return sum([worker.context for worker in self.workers]) / running if running else 0.0

    def job(self, request: Request, worker: int, k: int) -> Job:
        """The request on a worker with `k` draft tokens: how many passes it will take there."""
        pool = self.workers[worker].pool
        of = true_draws(pool, request, k)
        tokens = request.num_output_tokens - 1
        passes = num_passes(tokens, of, k, request.passes_draw)
        padded = self.scenario.hardware.pads_lookups or pool.method not in LOOKUPS
        return Job(
            request=request,
            worker=worker,
            k=k,
            draws=of,
            num_passes=passes,
            tokens_per_pass=tokens / passes if passes else 0.0,
            scheduled_tokens=1.0 + (k if padded else k * of.drafted_share),
        )

    def run(self, requests: Sequence[Request], choose: Choose, ended: Ended) -> list[Job]:
        """Serve them; what is not finished when the scenario ends stays unfinished."""
        jobs: list[Job] = []
        at, end_s = 0, self.scenario.duration_s + self.scenario.drain_s
        events, workers = self._events, self.workers
        while True:
            arrival_s = requests[at].arrival_s if at < len(requests) else float("inf")
            due_s = events[0][0] if events else float("inf")
            now_s = min(arrival_s, due_s)
            if self._faults and self._faults[0].at_s <= min(now_s, end_s):
                self._strike(self._faults.pop(0))
                continue
            if now_s > end_s:
                return jobs
            self.now_s = now_s
            if due_s <= arrival_s:
                _, index, version = heappop(events)
                worker = workers[index]
                if worker.version != version:
                    continue
                for job in worker.step():
                    ended(job, now_s)
                self._due(worker)
            else:
                if now_s >= self._scrape_at_s:
                    self._scrape(now_s)
                request = requests[at]
                at += 1
                index, k = choose(self, request, now_s)
                job = self.job(request, index, k)
                jobs.append(job)
                worker = workers[index]
                worker.last_picked = at
                version = worker.version
                worker.submit(job, now_s)
                if worker.version != version:
                    self._due(worker)

    def _due(self, worker: SimulatedWorker) -> None:
        if worker.event_s is not None:
            heappush(self._events, (worker.event_s, worker.index, worker.version))

    def _scrape(self, now_s: float) -> None:
        self._scrape_at_s = now_s - now_s % SCRAPE_S + SCRAPE_S
        if self._scrapes:
            self.loads_version += 1
            self.loads = [
                WorkerLoad(
                    running=worker.running,
                    waiting=worker.in_flight - worker.running,
                    kv_cache_usage=worker.kv_cache_usage,
                )
                for worker in self.workers
            ]

    def _strike(self, fault: Fault) -> None:
        self.now_s = max(self.now_s, fault.at_s)
        if fault.lose_metrics:
            self._scrapes = False
            self.loads_version += 1
            self.loads = [WorkerLoad()] * len(self.workers)
        if fault.slow_worker is not None:
            worker = self.workers[fault.slow_worker]
            worker.slow_down(fault.slow_factor, self.now_s)
            self._due(worker)


def true_draws(pool: SimulatedPool, request: Request, k: int) -> Draws:
    """What the request's passes truly yield in the pool with `k` draft tokens."""
    luck = request.lookup_luck if pool.method in LOOKUPS else request.head_luck
    return draws(pool.method, request.workload, request.copy_ratio, k, luck)
