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
from paceline.core.offers import Offer, at, best, confidence, longest
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
)

SURE = 0.6
MOVES = 0.85
PREFERENCE = 0.8
"""What a rule's `prefer` multiplies a pool's cost with."""
HARMLESS = 1.25
"""Exploring may cost up to this factor of the least cost."""

_COST = attrgetter("cost_s")


class Expectations(Protocol):
    """What the choice asks: `beliefs.Beliefs`, or in a simulation someone who knows."""

    def outlook(
        self, features: RequestFeatures, classification: Classification, caller: Caller
    ) -> Outlook: ...
    def draftings(self, outlook: Outlook) -> Mapping[str, Drafting]: ...  # by pool
    def step_times(self, pool: str) -> Mapping[str, StepTime]: ...  # by worker


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
    default_pool: str,
    preferred: str | None = None,
) -> tuple[Choice, Reason]:
    """The cheapest of the `pools`, or what stays where that is not clear, and why.

    There must be one at least, and each must have a worker that is up; else ValueError, IndexError.
    """
    expectations, eta = adaptive.expectations, adaptive.eta
    draftings = expectations.draftings(outlook)
    offers: dict[str, Offer] = {}
    bests: dict[str, Terms] = {}
    for pool in pools:
        name = pool.name
        preference = PREFERENCE if name == preferred else 1.0
        step_times = expectations.step_times(name)
        offers[name] = Offer(pool, draftings[name], step_times, outlook, eta, preference)
        bests[name] = best(offers[name])
    weighed = tuple(sorted(bests.values(), key=_COST))
    cheapest, default = weighed[0], bests.get(default_pool)

    def sure(chosen: Terms) -> float | None:
        if default is None:
            return None
        return confidence(
            chosen, default, offers[chosen.pool].drafting, offers[default.pool].drafting
        )

    def choice(chosen: Terms) -> Choice:
        return Choice(chosen=chosen, weighed=weighed, confidence=sure(chosen))

    staying = _staying(adaptive.place, weighed, offers)
    if staying is not None:
        if cheapest.cost_s < MOVES * staying.cost_s:
            return choice(cheapest), Reason.COST
        return choice(staying), Reason.STAY
    if adaptive.draw < adaptive.exploration:
        unknown = _harmless(weighed, offers)
        if unknown:
            drawn = int(adaptive.draw / adaptive.exploration * len(unknown))
            return choice(unknown[drawn]), Reason.EXPLORE
    for terms in weighed:  # the default pool's own is always sure, so it ends there at the latest
        confident = sure(terms)
        if confident is None or confident >= SURE:
            reason = Reason.COST if terms is cheapest else Reason.UNSURE
            return Choice(chosen=terms, weighed=weighed, confidence=confident), reason
    raise AssertionError("the default pool is as cheap as itself")


def _staying(
    place: Place | None, weighed: Sequence[Terms], offers: Mapping[str, Offer]
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
    return next((at(offer, worker) for worker in up), None)


def _harmless(weighed: Sequence[Terms], offers: Mapping[str, Offer]) -> list[Terms]:
    """What would teach something and cost little more than the best: other pools that draft, and
    the best one's longest draft, since positions past the k in use are never seen."""
    cheapest = weighed[0]
    teaching = [terms for terms in weighed[1:] if terms.k > 0]
    further = longest(offers[cheapest.pool], cheapest.worker)
    if further.k > cheapest.k:
        teaching.append(further)
    return [terms for terms in teaching if terms.cost_s <= HARMLESS * cheapest.cost_s]
