"""The least busy worker, and equal shares among equals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.balance import pick_worker
from paceline.core.types import PoolSnapshot, WorkerLoad, WorkerSnapshot


def pool_of(*workers: tuple[int, bool], last_picked: Sequence[int] = ()) -> PoolSnapshot:
    """A pool of workers w0, w1, …: each with its requests in flight, and whether it is up."""
    turns = [*last_picked, *[0] * len(workers)]
    return PoolSnapshot(
        name="p",
        speculation=None,
        workers=tuple(
            WorkerSnapshot(url=f"w{index}", in_flight=in_flight, up=up, last_picked=turns[index])
            for index, (in_flight, up) in enumerate(workers)
        ),
    )


states = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=8)


@given(workers=states)
def test_only_workers_that_are_up_are_eligible_while_there_are_any(workers: list) -> None:
    pool = pool_of(*workers)
    assert pick_worker(pool).up == pool.is_up


@given(workers=states)
def test_nobody_eligible_is_less_busy_than_the_one_picked(workers: list) -> None:
    pool = pool_of(*workers)
    picked = pick_worker(pool)
    eligible = [worker for worker in pool.workers if worker.up or not pool.is_up]
    assert picked in eligible
    assert picked.in_flight == min(worker.in_flight for worker in eligible)


@given(num_workers=st.integers(1, 9), rounds=st.integers(1, 4), start=st.integers(0, 1000))
def test_equal_loads_take_turns_whatever_other_pools_do_in_between(
    num_workers: int, rounds: int, start: int
) -> None:
    last_picked = [0] * num_workers
    shares: Counter[str] = Counter()
    for turn in range(rounds * num_workers):
        picked = pick_worker(pool_of(*[(2, True)] * num_workers, last_picked=last_picked))
        last_picked[int(picked.url[1:])] = start + 3 * turn + 1  # the turns between go elsewhere
        shares[picked.url] += 1
    assert shares == {f"w{index}": rounds for index in range(num_workers)}


@given(workers=states, others=states)
def test_busier_workers_do_not_change_who_is_picked(workers: list, others: list) -> None:
    up = [(in_flight, True) for in_flight, _ in workers]
    busier = [(9, is_up) for _, is_up in others]
    assert pick_worker(pool_of(*up, *busier)) == pick_worker(pool_of(*up))


def test_counting_what_is_sent_spreads_a_burst_evenly() -> None:
    in_flight = [0, 3, 1]
    for _ in range(20):
        picked = pick_worker(pool_of(*((count, True) for count in in_flight)))
        in_flight[int(picked.url[1:])] += 1
    assert in_flight == [8, 8, 8]


def test_scraped_load_sends_no_herd() -> None:
    idle_a_second_ago = WorkerSnapshot(url="idle", in_flight=3, load=WorkerLoad(running=0.0))
    busy_a_second_ago = WorkerSnapshot(url="busy", in_flight=2, load=WorkerLoad(running=40.0))
    pool = PoolSnapshot(name="p", speculation=None, workers=(idle_a_second_ago, busy_a_second_ago))
    assert pick_worker(pool).url == "busy"


def test_with_none_up_the_least_busy_is_tried_all_the_same() -> None:
    assert pick_worker(pool_of((4, False), (1, False), (2, False))).url == "w1"


def test_a_pool_without_workers_is_an_error() -> None:
    with pytest.raises(ValueError, match="pool p has no workers"):
        pick_worker(pool_of())
