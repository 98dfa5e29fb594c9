"""Seconds of a pass, fitted to what requests took."""

from __future__ import annotations

import random

import pytest

from paceline.core.cost import DraftCosts, PassCosts
from paceline.core.priors import DRAFTING_S, prior_step_time
from paceline.core.step_time import StepTime, StepTimeFit
from paceline.sim.cost import pass_costs
from paceline.sim.hardware import H100, LLAMA_31_8B

SHAPE = prior_step_time("eagle3", 3)
TRUE = StepTime(fixed_s=0.012, token_s=60e-6, kv_token_s=80e-9)


def fed(num: int, *, noise: float = 0.1, seed: int = 1, most: int = 40) -> StepTimeFit:
    rng, fit = random.Random(seed), StepTimeFit(SHAPE)
    for _ in range(num):
        running, context = rng.randint(1, most), rng.uniform(300, 1500)
        seconds = TRUE.seconds(running, running * 4, context) * rng.lognormvariate(0, noise)
        fit.observe(running, running * 4, context, seconds)
    return fit


def test_before_anything_was_seen_the_shape_is_believed_at_any_scale():
    fit = StepTimeFit(SHAPE)
    assert fit.step_time() == SHAPE
    assert fit.step_time(elsewhere=3.0).fixed_s == pytest.approx(3 * SHAPE.fixed_s)
    assert fit.residual is None


def test_one_observation_tells_the_scale():
    fit = StepTimeFit(SHAPE)
    fit.observe(1.0, 4.0, 500.0, 20 * SHAPE.seconds(1.0, 4.0, 500.0))
    assert fit.step_time().seconds(1.0, 4.0, 500.0) == pytest.approx(
        20 * SHAPE.seconds(1.0, 4.0, 500.0), rel=0.01
    )
    assert StepTimeFit.scale([fit]) == pytest.approx(20)


def test_what_was_seen_little_or_long_ago_is_believed_as_far_as_it_fits_what_was_seen_elsewhere():
    little, much = StepTimeFit(SHAPE, 100.0), StepTimeFit(SHAPE, 100.0)
    for fit, times in (little, 1), (much, 200):
        for _ in range(times):
            fit.observe(1.0, 4.0, 500.0, 2 * SHAPE.seconds(1.0, 4.0, 500.0), now_s=1000.0)

    def slower(fit: StepTimeFit, now_s: float) -> float:
        found = fit.step_time(now_s, elsewhere=1.0)
        return found.seconds(1.0, 4.0, 500.0) / SHAPE.seconds(1.0, 4.0, 500.0)

    assert slower(little, 1000.0) == pytest.approx(2 ** (1 / 5), rel=0.01)
    assert slower(much, 1000.0) == pytest.approx(2.0, rel=0.05)
    assert slower(much, 1e6) == pytest.approx(1.0, rel=0.01)
    assert much.step_time(1e6).fixed_s == pytest.approx(2 * SHAPE.fixed_s, rel=0.02)
    much.observe(1.0, 4.0, 500.0, SHAPE.seconds(1.0, 4.0, 500.0), now_s=1e6)  # the only one left
    assert much.num_observed == pytest.approx(1.0)
    assert much.step_time(1e6).fixed_s == pytest.approx(SHAPE.fixed_s, rel=0.02)


def test_it_finds_terms_that_the_shape_has_wrong():
    fit = fed(400)
    for running in (1, 10, 40):
        expected = TRUE.seconds(running, 4 * running, 800)
        assert fit.step_time().seconds(running, 4 * running, 800) == pytest.approx(
            expected, rel=0.03
        )
    assert fit.residual == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("before", [1, 5, 100])
@pytest.mark.parametrize("seconds", [1e-4, 1e-6, 1e-18])
def test_an_answer_that_came_all_at_once_is_soon_forgotten(before, seconds):
    fit = fed(before)
    fit.observe(10.0, 40.0, 800.0, seconds)
    rng = random.Random(2)
    for _ in range(150):
        running = rng.randint(1, 40)
        fit.observe(running, running * 4, 800.0, TRUE.seconds(running, running * 4, 800.0))
    assert fit.step_time().seconds(10, 40, 800) == pytest.approx(TRUE.seconds(10, 40, 800), rel=0.3)


def test_a_device_much_faster_than_the_shape_is_found_all_the_same():
    fit = StepTimeFit(SHAPE)
    for _ in range(12):
        fit.observe(1.0, 4.0, 500.0, SHAPE.seconds(1.0, 4.0, 500.0) / 100)
    assert fit.step_time().seconds(1.0, 4.0, 500.0) == pytest.approx(
        SHAPE.seconds(1.0, 4.0, 500.0) / 100, rel=0.1
    )


def test_a_few_absurd_times_do_not_carry_it_away():
    fit = fed(100)
    for _ in range(5):
        fit.observe(10.0, 40.0, 800.0, 3.0)
    assert fit.step_time().seconds(10, 40, 800) == pytest.approx(TRUE.seconds(10, 40, 800), rel=0.1)


def test_loads_that_nobody_saw_are_marked():
    step = fed(50, most=10).step_time()
    assert 40 < step.known_to <= 60


def test_no_term_is_negative():
    fit = StepTimeFit(SHAPE)
    for running in range(1, 40):  # the busier the faster, which no engine is
        fit.observe(float(running), 4.0 * running, 800.0, 0.1 / running)
    step = fit.step_time()
    assert min(step.fixed_s, step.token_s, step.kv_token_s) > 0


def test_what_is_no_pass_is_refused():
    with pytest.raises(ValueError, match="not a pass"):
        StepTimeFit(SHAPE).observe(1.0, 4.0, 500.0, 0.0)


def test_it_comes_back_from_plain_values():
    fit, again = fed(30), StepTimeFit(SHAPE)
    again.restore(**fit.state())
    assert again.step_time() == fit.step_time()
    with pytest.raises(ValueError, match="three terms"):
        again.restore(**{**fit.state(), "sums": [1.0]})
    with pytest.raises(ValueError, match="some time"):
        again.restore(**{**fit.state(), "updated_s": float("nan")})
    kept_earlier = {name: value for name, value in fit.state().items() if name != "updated_s"}
    again.restore(**kept_earlier)
    assert again.step_time() == fit.step_time()


@pytest.mark.parametrize("k", [0, 1, 3, 5])
def test_the_linear_form_is_the_sum_of_the_costs(k):
    costs = PassCosts(draft=DraftCosts(pass_s=0.9e-3, step_s=0.9e-3))
    step = StepTime.of(costs, k)
    for running in (1, 8, 64):
        expected = costs.decode_s(running, k, 800.0)
        assert step.seconds(running, running * (1 + k), 800.0) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("method", sorted(DRAFTING_S))
def test_the_priors_for_drafting_are_those_of_the_simulated_device(method):
    costs = pass_costs(H100, LLAMA_31_8B, method=method)
    for k in (1, 3, 5):
        prior = prior_step_time(method, k).seconds(1, 1 + k, 800)
        assert prior == pytest.approx(costs.decode_s(1, k, 800.0), rel=0.08)
