"""The compiled costs are those of `core/offers.py`, to the last bit, whatever a fleet may be."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.core import choose as choosing
from paceline.core import compiled, offers
from paceline.core.beliefs import Outlook
from paceline.core.choose import Adaptive
from paceline.core.offers import Offer
from paceline.core.pool_belief import Drafting
from paceline.core.step_time import StepTime
from paceline.core.types import (
    Place,
    PoolSnapshot,
    Speculation,
    WorkerLoad,
    WorkerSnapshot,
    Workload,
)

costs = pytest.importorskip("paceline.native.costs", reason="it was not built")
assert compiled.IS_COMPILED  # which gave it its law

counts = st.integers(0, 400)
parts = st.floats(0.0, 1.0)
seconds = st.floats(1e-6, 1.0)
loads = st.builds(
    WorkerLoad,
    running=st.none() | st.floats(0.0, 300.0) | st.integers(0, 300),
    waiting=st.none() | st.just(0.0) | st.floats(0.0, 50.0),
)
workers = st.builds(
    WorkerSnapshot,
    url=st.sampled_from([f"http://{i}" for i in range(4)]),
    in_flight=counts,
    last_picked=counts,
    up=st.booleans(),
    on_trial=st.booleans(),
    share=st.floats(0.05, 1.0),
    load=loads,
    drafting=st.floats(0.0, 2000.0),
    elsewhere=st.just(0.0) | st.floats(0.0, 100.0),
    per_request_k=st.sampled_from([False, False, False, True]),
)
steps = st.builds(
    StepTime,
    fixed_s=seconds,
    token_s=st.floats(0.0, 1e-3),
    kv_token_s=st.floats(0.0, 1e-6),
    known_to=st.floats(1.0, 1000.0) | st.just(float("inf")),
)
NUM_CASES = 3


@st.composite
def draftings(draw: st.DrawFn) -> Drafting:
    k = draw(st.integers(0, 6))
    case = st.tuples(*[st.floats(0.1, 1.0)] * NUM_CASES)
    return Drafting.of(draw(case), tuple(draw(case) for _ in range(k + 1)), draw(parts))


@st.composite
def offered(draw: st.DrawFn) -> Offer:
    drafting = draw(draftings())
    k = len(drafting.inverse_taus) - 1
    return Offer(
        PoolSnapshot(
            name=draw(st.sampled_from(["a", "b"])),
            speculation=Speculation(method="ngram", num_speculative_tokens=k) if k else None,
            workers=tuple(
                draw(st.lists(workers, min_size=1, max_size=4, unique_by=attrgetter("url")))
            ),
            max_num_seqs=draw(st.none() | st.integers(1, 300)),
        ),
        drafting,
        {f"http://{i}": draw(steps) for i in range(4)},
        Outlook(
            workload=Workload.CHAT,
            shares=(1.0,),
            output_tokens=draw(st.floats(1.0, 5000.0) | st.integers(1, 5000)),
            prompt_tokens=draw(st.floats(0.0, 1e5)),
            context=draw(st.floats(0.0, 1e5)),
        ),
        draw(st.sampled_from([0.0, 1.0])),
        draw(st.sampled_from([0.8, 1.0])),
    )


@settings(max_examples=80)
@given(offered())
def test_the_best_of_a_pool_is_the_laws(offer: Offer) -> None:
    if any(worker.up for worker in offer.pool.workers):
        assert costs.best(offer) == offers.best(offer)
    else:
        with pytest.raises(ValueError, match="is up"):
            costs.best(offer)


@settings(max_examples=60)
@given(offered(), offered())
def test_confidence_is_the_laws(one: Offer, other: Offer) -> None:
    both = [
        replace(offer, pool=replace(offer.pool, workers=(WorkerSnapshot(url="http://0"),)))
        for offer in (one, other)
    ]
    chosen, default = map(offers.best, both)
    asked = chosen, default, one.drafting, other.drafting
    assert costs.confidence(*asked) == offers.confidence(*asked)


@dataclass(frozen=True)
class Told:
    """Expectations that are known beforehand."""

    offers: Mapping[str, Offer]

    def draftings(self, outlook: Outlook) -> Mapping[str, Drafting]:
        return {name: offer.drafting for name, offer in self.offers.items()}

    def step_times(self, pool: str) -> Mapping[str, StepTime]:
        return self.offers[pool].step_times


@settings(max_examples=60)
@given(
    st.lists(offered(), min_size=1, max_size=3),
    st.none() | st.builds(
        Place, pool=st.sampled_from(["0", "1", "9"]), worker=st.sampled_from(["http://0", "http://1"])
    ),
    st.floats(0.0, 0.1),
    st.sampled_from(["0", "1", "9"]),
    st.none() | st.sampled_from(["0", "1"]),
)  # fmt: skip
def test_the_choice_is_the_laws(
    made: list[Offer], place: Place | None, draw: float, default: str, preferred: str | None
) -> None:
    named = {
        str(at): replace(offer, pool=replace(offer.pool, name=str(at)))
        for at, offer in enumerate(made)
    }
    up = [offer.pool for offer in named.values() if offer.pool.is_up]
    asked = up, made[0].outlook, Adaptive(Told(named), place, draw, 0.02), default, preferred
    if not up:
        with pytest.raises(IndexError):
            costs.choose(*asked)
        return
    found, reason = costs.choose(*asked)
    expected, because = choosing.choose(*asked)
    assert (found, reason) == (expected, because)
    assert [terms.pool for terms in found.weighed] == [terms.pool for terms in expected.weighed]


WORKER = WorkerSnapshot(url="http://0", in_flight=3)
DRAFTING = Drafting.of((1.0,), ((1.0,), (0.6,)))
OFFER = Offer(
    PoolSnapshot(name="a", speculation=None, workers=(WORKER,)),
    DRAFTING,
    {"http://0": StepTime(fixed_s=0.01, token_s=1e-5, kv_token_s=1e-8)},
    Outlook(
        workload=Workload.CHAT, shares=(1.0,), output_tokens=10.0, prompt_tokens=5.0, context=9.0
    ),
    1.0,
    1.0,
)  # fmt: skip


def test_a_mapping_that_works_step_times_out_is_asked() -> None:
    step = OFFER.step_times["http://0"]
    lazy = replace(OFFER, step_times=defaultdict(lambda: step))
    assert costs.best(lazy) == offers.best(OFFER)


NAN = float("nan")


@pytest.mark.parametrize("slots", [(1.0, NAN, 5.0, NAN), (5.0, NAN, 1.0), (NAN, 5.0, 1.0)])
def test_costs_that_are_no_numbers_are_ordered_as_by_the_law(slots: tuple[float, ...]) -> None:
    busy = [
        WorkerSnapshot(url=f"http://{at}", in_flight=1, drafting=drafting)
        for at, drafting in enumerate(slots)
    ]
    steps = defaultdict(lambda: OFFER.step_times["http://0"])
    offer = replace(OFFER, pool=replace(OFFER.pool, workers=tuple(busy)), step_times=steps)
    assert costs.best(offer).worker == offers.best(offer).worker


def test_no_confidence_that_is_no_number_is_enough() -> None:
    unclear = Drafting(
        shares=(NAN,), inverse_taus=((0.1,),), mean_inverses=(0.1,), fill=DRAFTING.fill
    )
    named = {
        "a": OFFER,
        "b": replace(OFFER, pool=replace(OFFER.pool, name="b"), drafting=unclear),
    }
    asked = [each.pool for each in named.values()], OFFER.outlook, Adaptive(Told(named)), "a", None
    assert costs.choose(*asked)[1] == choosing.choose(*asked)[1]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"step_times": {}}, KeyError),
        ({"step_times": {"http://0": None}}, AttributeError),
        ({"drafting": replace(DRAFTING, mean_inverses=())}, IndexError),
        ({"drafting": replace(DRAFTING, fill=None)}, TypeError),
        ({"eta": "1"}, TypeError),
        ({"outlook": None}, AttributeError),
    ],
)
def test_nonsense_is_refused_as_the_law_refuses_it(
    change: dict[str, object], error: type[Exception]
) -> None:
    offer = replace(OFFER, **change)
    for best in (offers.best, costs.best):
        with pytest.raises(error):
            best(offer)


class Unsure(Told):
    """Expectations that have step times of every pool, and of none how it drafts."""

    def draftings(self, outlook: Outlook) -> Mapping[str, Drafting]:
        return {}


def test_a_pool_that_nothing_is_believed_of_is_refused_as_the_law_refuses_it() -> None:
    for choose in (choosing.choose, costs.choose):
        with pytest.raises(KeyError):
            choose([OFFER.pool], OFFER.outlook, Adaptive(Unsure({"a": OFFER})), "a", None)


def test_nothing_is_kept() -> None:
    terms = costs.best(OFFER)
    told = Told({"a": OFFER})
    staying = Adaptive(told, Place("a", "http://0"))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        costs.best(OFFER)
        costs.confidence(terms, terms, DRAFTING, DRAFTING)
        costs.choose([OFFER.pool], OFFER.outlook, Adaptive(told), "a", None)
        costs.choose([OFFER.pool], OFFER.outlook, staying, "b", "a")
        with pytest.raises(KeyError):
            costs.choose([OFFER.pool], OFFER.outlook, Adaptive(Told({})), "a", None)
        with pytest.raises(KeyError):
            costs.best(replace(OFFER, step_times={}))
    gc.collect()
    assert len(gc.get_objects()) - before < 200
