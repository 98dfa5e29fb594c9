"""What one pool offers a request: its cheapest worker and k, in the terms of `choose.py`'s formula.

`best` is what every request asks of every pool. `core/compiled.py` says who answers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from msgspec import Struct

from paceline.core.beliefs import Outlook
from paceline.core.pool_belief import Drafting
from paceline.core.step_time import StepTime
from paceline.core.types import PoolSnapshot, Terms, WorkerSnapshot

WORTH = 0.97
"""Of the default pool's cost, below which another is cheaper: passes are timed from outside, and a
tie is no reason to leave."""
MAX_NUM_SEQS = 256
"""Where a pool's is not known: vLLM's default for servers but on the largest devices."""
CLOSEST = 2
"""In how many of a pool's workers, the cheapest at full k, every k is tried."""

_COST = attrgetter("cost_s")


class Offer(Struct, frozen=True):
    """A pool and what is believed of it for this request; `preference` multiplies its costs."""

    pool: PoolSnapshot
    drafting: Drafting
    step_times: Mapping[str, StepTime]  # of its workers, by address
    outlook: Outlook
    eta: float
    preference: float

    @property
    def limit(self) -> int:
        """The pool's k."""
        return len(self.drafting.inverse_taus) - 1


def best(offer: Offer) -> Terms:
    """The cheapest worker that is up, with the cheapest k; one due for a trial comes first.

    Raises ValueError if none is up.
    """
    up = [worker for worker in offer.pool.workers if worker.up]
    if not up:
        raise ValueError(f"no worker of pool {offer.pool.name} is up")
    if len(up) == 1:
        return at(offer, up[0])
    up = [worker for worker in up if worker.on_trial] or up
    offers = [(terms_of(offer, worker, offer.limit), worker) for worker in up]
    offers.sort(key=_cost_then_turn)
    if not any(worker.per_request_k for _, worker in offers[:CLOSEST]):
        return offers[0][0]
    return min([at(offer, worker) for _, worker in offers[:CLOSEST]], key=_COST)


def at(offer: Offer, worker: WorkerSnapshot) -> Terms:
    """The cheapest k at one worker: where it may be asked for, one of all there are."""
    if not worker.per_request_k:
        return terms_of(offer, worker, offer.limit)
    return min([terms_of(offer, worker, k) for k in range(offer.limit + 1)], key=_COST)


def longest(offer: Offer, worker: str) -> Terms:
    """At a worker with the k that shows most of how it drafts."""
    (found,) = (each for each in offer.pool.workers if each.url == worker)
    return terms_of(offer, found, offer.limit)


def terms_of(offer: Offer, worker: WorkerSnapshot, k: int) -> Terms:
    outlook, fill, context = offer.outlook, offer.drafting.fill, offer.outlook.context
    step = offer.step_times[worker.url]
    counted = worker.in_flight + worker.elsewhere
    # One that returns may carry a share of a load, so what it has weighs as much more.
    present = (counted + 1.0) / worker.share - 1.0
    seats = _seats(offer.pool, worker)
    running = beside = present if present < seats else seats - 1.0
    if counted > 0:  # each of those beside has its own token in a pass, and its draft
        slots = worker.drafting + worker.elsewhere * offer.limit
        beside *= 1.0 + slots * fill / counted
    scheduled = beside + 1.0 + k * fill
    pass_s = step.seconds(running + 1.0, scheduled, context)
    before_s = step.seconds(running, beside, context)
    prefill_s = pass_s + step.token_s * outlook.prompt_tokens
    queue = max(0.0, present + 1.0 - seats) / seats
    harm = offer.eta * running * (1.0 - before_s / pass_s)
    inverse_tau, preference = offer.drafting.mean_inverses[k], offer.preference
    slope_s = outlook.output_tokens * pass_s * (1.0 + queue + harm) * preference
    return Terms(
        offer.pool.name, worker.url, k, inverse_tau, outlook.output_tokens, running, scheduled,
        step.known_to, pass_s, before_s, prefill_s, queue, harm, preference, slope_s,
        prefill_s * preference + slope_s * inverse_tau,
    )  # fmt: skip


def confidence(chosen: Terms, default: Terms, ours: Drafting, theirs: Drafting) -> float:
    """P(`chosen` is worth leaving `default` for), over the cases that the request may be."""
    if chosen.pool == default.pool:
        return 1.0
    margin_s = WORTH * default.fixed_s - chosen.fixed_s
    ours_s, theirs_s = chosen.slope_s, WORTH * default.slope_s
    sure = 0.0
    cases = zip(
        ours.shares, ours.inverse_taus[chosen.k], theirs.inverse_taus[default.k], strict=True
    )
    for share, one, other in cases:
        if ours_s * one < margin_s + theirs_s * other:
            sure += share
    return sure


def _seats(pool: PoolSnapshot, worker: WorkerSnapshot) -> float:
    """How many sequences the worker runs at a time. One whose requests wait has no more than run
    now, whatever it was started with: its KV cache is full."""
    most = float(pool.max_num_seqs or MAX_NUM_SEQS)
    load = worker.load
    if load.waiting and load.running:
        return min(most, max(load.running, 1.0))
    return most


def _cost_then_turn(offer: tuple[Terms, WorkerSnapshot]) -> tuple[float, int]:
    return offer[0].cost_s, offer[1].last_picked
