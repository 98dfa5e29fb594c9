"""The pool, worker and k with the least expected cost, in seconds of everybody's time.

    cost(w, k) = wait + prefill + t * (1 + eta * B * (1 - T0 / T1)),    t = G * T1 / tau(k)

t is how long the request writes its G tokens: T1 is a pass of the worker with it, drafting k, and
tau the tokens that a pass yields. The last factor is what it costs the B others there, whose passes
took T0 before: their sequence-seconds, in the same unit as its own. With eta = 0 each request
thinks of itself.

A request is one of several cases (how much will it copy?), each with a tau of its own, and time
goes by 1 / tau: so tau here is the harmonic mean over the cases. The arithmetic mean would let the
case that copies pay for the passes of the one that does not, and send half-likely edits to lookups
on which they are slower on average.

When costs are close or uncertain, what is known stays: the default pool, unless another costs less
than `WORTH` of it in `SURE` of the cases; a conversation's place, unless another costs less than
`MOVES` of it.

Where it fails: G is a mean, so the cost of a wrong pool is misjudged for very long and very short
answers; sequences beside are all taken to have a mean context; a worker's queue is taken to drain
at this request's pace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from paceline.core.beliefs import Outlook
from paceline.core.pool_belief import Drafting
from paceline.core.step_time import StepTime
from paceline.core.types import (
    Caller,
    Choice,
    Classification,
    Place,
    PoolSnapshot,
    Reason,
    RequestFeatures,
    Terms,
    WorkerSnapshot,
)

SURE = 0.6
WORTH = 0.97
"""Of the default pool's cost, below which another is cheaper: passes are timed from outside, and a
tie is no reason to leave."""
MOVES = 0.85
PREFERENCE = 0.8
"""What a rule's `prefer` multiplies a pool's cost with."""
HARMLESS = 1.25
"""Exploring may cost up to this factor of the least cost."""
MAX_NUM_SEQS = 256
"""Where a pool's is not known: vLLM's default for servers but on the largest devices."""
CLOSEST = 2
"""In how many of a pool's workers, the cheapest at full k, every k is tried."""


_COST = attrgetter("cost_s")


class Expectations(Protocol):
    """What the choice asks: `beliefs.Beliefs`, or in a simulation someone who knows."""

    def outlook(
        self, features: RequestFeatures, classification: Classification, caller: Caller
    ) -> Outlook: ...
    def drafting(self, pool: PoolSnapshot, outlook: Outlook) -> Drafting: ...
    def step_time(self, pool: PoolSnapshot, worker: WorkerSnapshot) -> StepTime: ...


class Adaptive(Struct, frozen=True):
    """What the adaptive mode decides by, beside the request and the fleet.

    `draw` is uniform in [0, 1) and decides whether this request explores; `place` is where its
    conversation was before. `exploration` is the share of requests that may, where harmless.
    """

    expectations: Expectations
    place: Place | None = None
    draw: float = 1.0
    exploration: float = 0.02
    eta: float = 1.0


def choose(
    pools: Sequence[PoolSnapshot],
    outlook: Outlook,
    adaptive: Adaptive,
    *,
    default_pool: str,
    preferred: str | None = None,
) -> tuple[Choice, Reason]:
    """The cheapest of the `pools`, or what stays where that is not clear, and why.

    There must be one at least, and each must have a worker that is up; else ValueError, IndexError.
    """
    offers = {
        pool.name: _Offer(pool, outlook, adaptive, PREFERENCE if pool.name == preferred else 1.0)
        for pool in pools
    }
    weighed = sorted([offer.best() for offer in offers.values()], key=_COST)
    best = weighed[0]
    default = next((terms for terms in weighed if terms.pool == default_pool), None)

    def choice(chosen: Terms) -> Choice:
        sure = None if default is None else _confidence(chosen, default, offers)
        return Choice(chosen=chosen, weighed=tuple(weighed), confidence=sure)

    staying = _staying(adaptive.place, weighed, offers)
    if staying is not None:
        if best.cost_s < MOVES * staying.cost_s:
            return choice(best), Reason.COST
        return choice(staying), Reason.STAY
    if adaptive.draw < adaptive.exploration:
        unknown = _harmless(weighed, offers)
        if unknown:
            drawn = int(adaptive.draw / adaptive.exploration * len(unknown))
            return choice(unknown[drawn]), Reason.EXPLORE
    for terms in weighed:  # the default pool's own is always sure, so it ends there at the latest
        chosen = choice(terms)
        if chosen.confidence is None or chosen.confidence >= SURE:
            return chosen, Reason.COST if terms is best else Reason.UNSURE
    raise AssertionError("the default pool is as cheap as itself")


class _Offer:
    """What one pool can do for this request."""

    __slots__ = ("_adaptive", "_outlook", "_preference", "drafting", "limit", "pool")

    def __init__(
        self, pool: PoolSnapshot, outlook: Outlook, adaptive: Adaptive, preference: float
    ) -> None:
        self.pool = pool
        self._outlook = outlook
        self._adaptive = adaptive
        self._preference = preference
        self.drafting = adaptive.expectations.drafting(pool, outlook)
        self.limit = len(self.drafting.inverse_taus) - 1  # the pool's k

    def best(self) -> Terms:
        """The cheapest worker that is up, with the cheapest k; one due for a trial comes first."""
        up = [worker for worker in self.pool.workers if worker.up]
        if not up:
            raise ValueError(f"no worker of pool {self.pool.name} is up")
        if len(up) == 1:
            return self.at(up[0])
        up = [worker for worker in up if worker.on_trial] or up
        offers = [(self._terms(worker, self.limit), worker) for worker in up]
        offers.sort(key=_cost_then_turn)
        if not any(worker.per_request_k for _, worker in offers[:CLOSEST]):
            return offers[0][0]
        return min([self.at(worker) for _, worker in offers[:CLOSEST]], key=_COST)

    def at(self, worker: WorkerSnapshot) -> Terms:
        """The cheapest k at one worker: where it may be asked for, one of all there are."""
        if not worker.per_request_k:
            return self._terms(worker, self.limit)
        return min([self._terms(worker, k) for k in range(self.limit + 1)], key=_COST)

    def longest(self, worker: str) -> Terms:
        """At a worker with the k that shows most of how it drafts."""
        (found,) = (each for each in self.pool.workers if each.url == worker)
        return self._terms(found, self.limit)

    def _terms(self, worker: WorkerSnapshot, k: int) -> Terms:
        outlook, fill, context = self._outlook, self.drafting.fill, self._outlook.context
        step = self._adaptive.expectations.step_time(self.pool, worker)
        counted = worker.in_flight + worker.elsewhere
        # One that returns may carry a share of a load, so what it has weighs as much more.
        present = (counted + 1.0) / worker.share - 1.0
        seats = _seats(self.pool, worker)
        running = beside = present if present < seats else seats - 1.0
        if counted > 0:  # each of those beside has its own token in a pass, and its draft
            slots = worker.drafting + worker.elsewhere * self.limit
            beside *= 1.0 + slots * fill / counted
        scheduled = beside + 1.0 + k * fill
        pass_s = step.seconds(running + 1.0, scheduled, context)
        before_s = step.seconds(running, beside, context)
        prefill_s = pass_s + step.token_s * outlook.prompt_tokens
        queue = max(0.0, present + 1.0 - seats) / seats
        harm = self._adaptive.eta * running * (1.0 - before_s / pass_s)
        inverse_tau, preference = self.drafting.mean_inverses[k], self._preference
        slope_s = outlook.output_tokens * pass_s * (1.0 + queue + harm) * preference
        return Terms(
            self.pool.name, worker.url, k, inverse_tau, outlook.output_tokens, running, scheduled,
            step.known_to, pass_s, before_s, prefill_s, queue, harm, preference, slope_s,
            prefill_s * preference + slope_s * inverse_tau,
        )  # fmt: skip


def _seats(pool: PoolSnapshot, worker: WorkerSnapshot) -> float:
    """How many sequences the worker runs at a time. One whose requests wait has no more than run
    now, whatever it was started with: its KV cache is full."""
    most = float(pool.max_num_seqs or MAX_NUM_SEQS)
    load = worker.load
    if load.waiting and load.running:
        return min(most, max(load.running, 1.0))
    return most


def _confidence(chosen: Terms, default: Terms, offers: Mapping[str, _Offer]) -> float:
    """P(`chosen` is worth leaving `default` for), over the cases that the request may be."""
    if chosen.pool == default.pool:
        return 1.0
    cases = offers[chosen.pool].drafting
    theirs = offers[default.pool].drafting.inverse_taus[default.k]
    margin_s = WORTH * default.fixed_s - chosen.fixed_s
    ours_s, theirs_s = chosen.slope_s, WORTH * default.slope_s
    pairs = zip(cases.shares, cases.inverse_taus[chosen.k], theirs, strict=True)
    return sum([share for share, one, other in pairs if ours_s * one < margin_s + theirs_s * other])


def _staying(
    place: Place | None, weighed: Sequence[Terms], offers: Mapping[str, _Offer]
) -> Terms | None:
    """At the conversation's last worker, if it can go there again."""
    if place is None:
        return None
    for terms in weighed:
        if terms.worker == place.worker and terms.pool == place.pool:
            return terms
    offer = offers.get(place.pool)
    if offer is None:
        return None
    up = (worker for worker in offer.pool.workers if worker.up and worker.url == place.worker)
    return next(map(offer.at, up), None)


def _harmless(weighed: Sequence[Terms], offers: Mapping[str, _Offer]) -> list[Terms]:
    """What would teach something and cost little more than the best: other pools that draft, and
    the best one's longest draft, since positions past the k in use are never seen."""
    best = weighed[0]
    teaching = [terms for terms in weighed[1:] if terms.k > 0]
    longest = offers[best.pool].longest(best.worker)
    if longest.k > best.k:
        teaching.append(longest)
    return [terms for terms in teaching if terms.cost_s <= HARMLESS * best.cost_s]


def _cost_then_turn(offer: tuple[Terms, WorkerSnapshot]) -> tuple[float, int]:
    return offer[0].cost_s, offer[1].last_picked
