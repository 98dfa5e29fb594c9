"""Workers go when they should, come back when they should, and never for what others did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.health import Health, HealthLaw, Standing

LAW = HealthLaw()


def failing(health: Health, times: int, now_s: float = 0.0) -> None:
    for _ in range(times):
        health.request_began()
        health.request_failed(now_s)


def test_three_failed_probes_in_a_row_take_it_down_and_a_good_one_brings_it_back():
    health = Health()
    health.probe_failed()
    health.probe_failed()
    health.probe_succeeded(0)
    health.probe_failed()
    health.probe_failed()
    assert health.standing(0) is Standing.UP
    health.probe_failed()
    assert health.standing(0) is Standing.DOWN
    health.probe_succeeded(1)
    assert health.standing(1) is Standing.UP


def test_one_refused_connection_is_enough_until_the_next_good_probe():
    health = Health()
    health.unreachable()
    assert health.standing(1000) is Standing.DOWN
    health.probe_succeeded(1000)
    assert health.standing(1000) is Standing.UP


def test_five_failed_requests_open_the_breaker_for_five_seconds_and_then_one_may_try():
    health = Health()
    failing(health, 4)
    assert health.standing(0) is Standing.UP
    failing(health, 1)
    assert health.standing(4.9) is Standing.DOWN
    assert health.standing(5.0) is Standing.TRIAL
    health.request_began()
    assert health.standing(5.0) is Standing.DOWN


def test_probes_do_not_close_a_breaker():
    health = Health()
    failing(health, 5)
    health.probe_succeeded(1)
    assert health.standing(1) is Standing.DOWN


def test_a_good_trial_closes_it_and_a_bad_one_doubles_the_wait_up_to_a_minute():
    health = Health()
    failing(health, 5)
    now_s, waits = 0.0, []
    for _ in range(6):
        begun_s = now_s
        while health.standing(now_s) is not Standing.TRIAL:
            now_s += 0.5
        waits.append(now_s - begun_s)
        health.request_began()
        health.request_failed(now_s)
    assert waits == [5, 10, 20, 40, 60, 60]
    now_s += 60
    health.request_began()
    health.request_succeeded(now_s)
    assert health.standing(now_s) is Standing.UP
    failing(health, 5, now_s)
    assert health.standing(now_s + 5) is Standing.TRIAL


def test_a_trial_that_says_nothing_leaves_room_for_another():
    health = Health()
    failing(health, 5)
    health.request_began()
    health.request_said_nothing()
    assert health.standing(5) is Standing.TRIAL


def test_failures_of_requests_begun_before_the_breaker_opened_do_not_prolong_it():
    health = Health()
    failing(health, 5)
    health.request_failed(4)
    assert health.standing(5) is Standing.TRIAL


@given(st.lists(st.sampled_from(["began", "nothing", "probe", "succeeded"]), max_size=60))
def test_what_is_no_failure_never_takes_a_worker_down(steps: list[str]):
    health = Health()
    for now_s, step in enumerate(steps):
        match step:
            case "began":
                health.request_began()
            case "nothing":
                health.request_said_nothing()
            case "probe":
                health.probe_succeeded(now_s)
            case "succeeded":
                health.request_succeeded(now_s)
        assert health.standing(now_s) is Standing.UP
        assert health.share(now_s) == 1.0


@pytest.mark.parametrize("comes_back", ["probe", "trial"])
def test_who_comes_back_starts_slowly(comes_back: str):
    health = Health()
    if comes_back == "probe":
        health.unreachable()
        health.probe_succeeded(100)
    else:
        failing(health, 5)
        health.request_began()
        health.request_succeeded(100)
    shares = [health.share(100 + passed_s) for passed_s in (0, 0.5, 5, 9, 10, 11)]
    assert shares == [LAW.least_share, LAW.least_share, 0.5, 0.9, 1.0, 1.0]


def test_it_knows_until_when_nothing_changes_by_itself():
    health = Health()
    assert health.steady_until_s(0) == float("inf")
    failing(health, 5)
    assert health.steady_until_s(1) == 5
    assert health.steady_until_s(6) == float("inf")
    health.request_began()
    health.request_succeeded(7)
    assert health.steady_until_s(8) == 8
    health.share(18)
    assert health.steady_until_s(18) == float("inf")
