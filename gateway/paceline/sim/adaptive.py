"""The policies that reckon costs: Paceline's own choice, and the same told the truth.

Both call `core.decide.route` with a snapshot of the fleet as a gateway has it: what it has in
flight itself is fresh, what workers say of themselves is up to a second old. Paceline goes by
`core.beliefs.Beliefs`, which start from the priors and learn from every answer that ends, and more
from those few that are replayed; the oracle goes by `Truth`. Nothing here decides: this is the
gateway's part around the decision.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

from paceline.core.beliefs import Beliefs, Outcome, Outlook, conversation_key
from paceline.core.choose import Adaptive
from paceline.core.cost import PassCosts
from paceline.core.decide import route
from paceline.core.lookup import LOOKUPS
from paceline.core.pool_belief import Drafting
from paceline.core.priors import band_shares
from paceline.core.sampling import TOGETHER, TOGETHER_S, TURN_S, CloseLooks, Lessons
from paceline.core.step_time import StepTime
from paceline.core.types import (
    Caller,
    Classification,
    Decision,
    Endpoint,
    Material,
    ModelSnapshot,
    Place,
    PoolSnapshot,
    RequestFeatures,
    RequestView,
    Speculation,
    WorkerLoad,
    WorkerSnapshot,
)
from paceline.sim.fleet import Fleet, Job, true_draws
from paceline.sim.policies import Policy
from paceline.sim.scenario import Scenario, SimulatedPool
from paceline.sim.truth import histogram, num_passes
from paceline.sim.workload import Request

MODEL = "simulated"
CHARS_PER_TOKEN = 4  # of English text in common vocabularies (OpenAI's rule of thumb)


def speculation_of(pool: SimulatedPool) -> Speculation | None:
    """A pool's speculation as the gateway's configuration says it."""
    if pool.method is None:
        return None
    return Speculation(method=pool.method, num_speculative_tokens=pool.k)


class FleetView:
    """Snapshots of a fleet for decisions; of a worker a new one only after it has changed."""

    def __init__(self, fleet: Fleet, default_pool: str) -> None:
        self._fleet = fleet
        self._default_pool = default_pool
        self._speculation = {pool.name: speculation_of(pool) for pool in fleet.pools}
        self._known: list[tuple[int, WorkerLoad, WorkerSnapshot] | None] = [None] * len(
            fleet.workers
        )

    def model(self) -> ModelSnapshot:
        fleet = self._fleet
        return ModelSnapshot(
            name=MODEL,
            default_pool=self._default_pool,
            pools=tuple(
                [
                    PoolSnapshot(
                        name=pool.name,
                        speculation=self._speculation[pool.name],
                        workers=tuple([self._worker(i) for i in fleet.pool_workers[pool.name]]),
                        max_num_seqs=pool.max_num_seqs,
                    )
                    for pool in fleet.pools
                ]
            ),
        )

    def _worker(self, index: int) -> WorkerSnapshot:
        worker, load, known = self._fleet.workers[index], self._fleet.loads[index], self._known
        kept = known[index]
        if kept is not None and kept[0] == worker.changes and kept[1] is load:
            return kept[2]
        snapshot = WorkerSnapshot(
            url=str(index),
            in_flight=worker.in_flight,
            last_picked=worker.last_picked,
            load=load,
            drafting=worker.drafting_in_flight,
            per_request_k=True,
        )
        known[index] = (worker.changes, load, snapshot)
        return snapshot


@cache
def features_of(num_prompt_tokens: int, max_tokens: int) -> RequestFeatures:
    """What a gateway would measure of a request of that size."""
    return RequestFeatures(
        view=RequestView(
            endpoint=Endpoint.CHAT_COMPLETIONS, model=MODEL, stream=True, max_tokens=max_tokens
        ),
        material=Material.NONE,
        material_chars=0,
        prompt_chars=num_prompt_tokens * CHARS_PER_TOKEN,
    )


def decision(fleet: Fleet, view: FleetView, request: Request, adaptive: Adaptive) -> Decision:
    """Where `core.decide` sends a request, by what it is believed to be."""
    return route(
        features_of(request.num_prompt_tokens, fleet.scenario.max_tokens),
        request.believed,
        _caller(request),
        view.model(),
        (),
        adaptive,
    )


def _caller(request: Request) -> Caller:
    return Caller(conversation=request.conversation, template=request.template)


class Truth:
    """What the oracle is told of the request at hand: its true survivals and length, and how long
    passes take."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.request: Request | None = None

    def outlook(
        self, features: RequestFeatures, classification: Classification, caller: Caller
    ) -> Outlook:
        assert self.request is not None
        return Outlook(
            workload=self.request.workload,
            shares=band_shares(classification.copy_ratio),
            output_tokens=self.request.num_output_tokens,
            prompt_tokens=self.request.num_prompt_tokens,
            context=self._fleet.mean_context,
        )

    def draftings(self, outlook: Outlook) -> Mapping[str, Drafting]:
        assert self.request is not None
        return {pool.name: _drafting(pool, self.request) for pool in self._fleet.pools}

    def step_times(self, pool: str) -> Mapping[str, StepTime]:
        workers = [(index, self._fleet.workers[index]) for index in self._fleet.pool_workers[pool]]
        return {str(index): _step_time(of.times.costs, of.pool.k) for index, of in workers}


def _drafting(pool: SimulatedPool, request: Request) -> Drafting:
    found = [true_draws(pool, request, k).mean for k in range(pool.k + 1)]
    return Drafting.of((1.0,), tuple([(1.0 / mean,) for mean in found]))


@cache
def _step_time(costs: PassCosts, k: int) -> StepTime:
    return StepTime.of(costs, k)


class ByCost:
    """What Paceline and the oracle have in common: places of conversations, and the decision."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._places: dict[str, Place] = {}
        self._rng = random.Random(f"exploration {seed}")
        self._view: FleetView | None = None

    def _decided(self, fleet: Fleet, request: Request, adaptive: Adaptive) -> tuple[int, int]:
        if self._view is None:
            self._view = FleetView(fleet, self._scenario.default_pool)
        made = decision(fleet, self._view, request, adaptive)
        self._places[request.conversation] = Place(pool=made.pool, worker=made.worker)
        index = int(made.worker)
        return index, fleet.workers[index].pool.k if made.k is None else made.k


class Paceline(ByCost):
    """The gateway's adaptive mode, from its first request on."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        super().__init__(scenario, seed)
        self.learner = Learner(scenario, random.Random(f"lessons {seed}"))

    def choose(self, fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        self.learner.take_in(now_s)
        adaptive = Adaptive(
            expectations=self.learner.beliefs,
            place=self._places.get(request.conversation),
            draw=self._rng.random(),
        )
        return self._decided(fleet, request, adaptive)

    def ended(self, job: Job, now_s: float) -> None:
        self.learner.ended(job, now_s)


class Learner:
    """What the gateway learns from, at its own pace: in each turn an even draw of the answers that
    ended in it, and those few that are replayed when some have come together."""

    def __init__(self, scenario: Scenario, rng: random.Random) -> None:
        self.beliefs = Beliefs({pool.name: speculation_of(pool) for pool in scenario.pools})
        self._max_tokens = scenario.max_tokens
        self._pools = [pool for pool in scenario.pools for _ in range(pool.num_workers)]
        self._lookups = [pool for pool in scenario.pools if pool.method in LOOKUPS]
        self._lessons: Lessons[tuple[Job, float]] = Lessons(rng)
        self._looks = CloseLooks()
        self._looked_at: list[tuple[Job, float]] = []
        self._turn_ends_s = TURN_S

    def ended(self, job: Job, now_s: float) -> None:
        self.take_in(now_s)
        expected = job.request.believed.copy_ratio.expected
        if self._lookups and self._looks.wants(expected, now_s):
            self._looked_at.append((job, now_s))
            return
        looked_up = self._pools[job.worker] in self._lookups
        self._lessons.add((job, now_s), looked_up=looked_up)

    def take_in(self, now_s: float) -> None:
        """Learn from the turn that is over, if one is."""
        looked_at = self._looked_at
        if looked_at and (len(looked_at) >= TOGETHER or now_s >= looked_at[0][1] + TOGETHER_S):
            self._looked_at = []
            for job, ended_s in looked_at:
                self._replay(job, ended_s, now_s)
        if now_s < self._turn_ends_s:
            return
        for job, ended_s in self._lessons.take():
            self.beliefs.observe(self._outcome(job, ended_s, None), now_s)
        self._turn_ends_s = now_s + TURN_S

    def _replay(self, job: Job, ended_s: float, now_s: float) -> None:
        """What the text shows: the true copy ratio, and what other lookup pools would have made of
        it. Exactly, here: the error of replaying in word tokens is left out."""
        request = job.request
        for pool in self._lookups:
            if pool is not self._pools[job.worker]:
                of = true_draws(pool, request, pool.k)
                tokens = request.num_output_tokens - 1
                self.beliefs.observe_replay(
                    pool.name,
                    request.believed.workload,
                    request.copy_ratio,
                    of.survivals,
                    num_passes(tokens, of, pool.k, request.passes_draw),
                    now_s,
                )
        self.beliefs.observe(self._outcome(job, ended_s, request.copy_ratio), now_s)

    def _outcome(self, job: Job, ended_s: float, copy_ratio: float | None) -> Outcome:
        request, tokens = job.request, job.request.num_output_tokens
        assert job.first_s is not None
        return Outcome(
            pool=self._pools[job.worker].name,
            worker=str(job.worker),
            workload=request.believed.workload,
            template=request.template,
            conversation=conversation_key(_caller(request)),
            believed=band_shares(request.believed.copy_ratio),
            k=job.k,
            prompt_chars=request.num_prompt_tokens * CHARS_PER_TOKEN,
            prompt_tokens=request.num_prompt_tokens,
            output_tokens=tokens,
            max_tokens=self._max_tokens,
            accepted=histogram(job.num_passes, tokens - 1, job.draws) if job.k else None,
            drafted_tokens=job.num_drafted,
            decode_s=ended_s - job.first_s,
            running=job.running,
            scheduled=job.scheduled,
            copy_ratio=copy_ratio,
        )


class Oracle(ByCost):
    """The same decision, told the truth, and so without exploring."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        super().__init__(scenario, seed)
        self._truth: Truth | None = None

    def choose(self, fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        if self._truth is None:
            self._truth = Truth(fleet)
        self._truth.request = request
        adaptive = Adaptive(
            expectations=self._truth,
            place=self._places.get(request.conversation),
            exploration=0.0,
        )
        return self._decided(fleet, request, adaptive)

    def ended(self, job: Job, now_s: float) -> None:
        """It knows."""


class Regret:
    """How much dearer a chosen pool truly was than the best, on every `EVERY`th request.

    Both at their cheapest worker and k, by the cost that decisions go by, told the truth.
    """

    EVERY = 25

    def __init__(self, fleet: Fleet, scenario: Scenario) -> None:
        self._view = FleetView(fleet, scenario.default_pool)
        self._truth = Truth(fleet)
        self._sum = 0.0
        self._count = 0

    @property
    def mean(self) -> float | None:
        return self._sum / self._count if self._count else None

    def judge(self, fleet: Fleet, request: Request, worker: int) -> None:
        """Of a request that is about to go to a worker."""
        self._truth.request = request
        adaptive = Adaptive(expectations=self._truth, exploration=0.0)
        choice = decision(fleet, self._view, request, adaptive).choice
        assert choice is not None
        name = fleet.workers[worker].pool.name
        cost_s = next(terms.cost_s for terms in choice.weighed if terms.pool == name)
        self._sum += cost_s / choice.weighed[0].cost_s - 1.0
        self._count += 1


ADAPTIVE: dict[str, Policy] = {
    "paceline": Policy(chooser=Paceline),
    "oracle": Policy(chooser=Oracle),
}
