"""Compatibility: what a speculating worker would refuse goes where nothing is drafted."""

from __future__ import annotations

import pytest

from paceline.core import gates
from paceline.core.types import Endpoint, PoolSnapshot, Speculation, WorkerSnapshot
from paceline.core.views import view_of

WORKERS = (WorkerSnapshot(url="http://w"),)
PLAIN = PoolSnapshot(name="plain", speculation=None, workers=WORKERS)
NGRAM = PoolSnapshot(
    name="ngram",
    speculation=Speculation(method="ngram", num_speculative_tokens=4),
    workers=WORKERS,
)
UNKNOWN_METHOD = PoolSnapshot(
    name="found",
    speculation=Speculation(method=None, num_speculative_tokens=3),
    workers=WORKERS,
)


def refusals(pool: PoolSnapshot, endpoint: Endpoint = Endpoint.CHAT_COMPLETIONS, **body):
    return gates.refusals(view_of(endpoint, {"model": "m", **body}), [pool]).get(pool.name)


SAMPLING = (Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS, Endpoint.RESPONSES)
"""Where vLLM reads min_p and logit_bias."""


@pytest.mark.parametrize("pool", [NGRAM, UNKNOWN_METHOD])
@pytest.mark.parametrize("endpoint", SAMPLING)
def test_min_p_and_logit_bias_are_refused_by_pools_that_speculate(
    pool: PoolSnapshot, endpoint: Endpoint
) -> None:
    assert refusals(pool, endpoint, min_p=0.1) == "min_p cannot be used with speculative decoding"
    assert "logit_bias" in refusals(pool, endpoint, logit_bias={"50256": -100})
    both = refusals(pool, endpoint, min_p=0.1, logit_bias={"50256": -100})
    assert both == "min_p and logit_bias cannot be used with speculative decoding"


@pytest.mark.parametrize("endpoint", sorted(set(Endpoint) - set(SAMPLING)))
def test_nothing_is_refused_where_they_are_not_read(endpoint: Endpoint) -> None:
    assert refusals(NGRAM, endpoint, min_p=0.1, logit_bias={"50256": -100}) is None


@pytest.mark.parametrize("value", [None, 0, 0.0, 1e-6, False])
def test_min_p_that_is_off_is_no_obstacle(value: object) -> None:
    assert refusals(NGRAM, min_p=value) is None


@pytest.mark.parametrize(("temperature", "is_refused"), [(0, False), (0.7, True), (None, True)])
def test_greedy_sampling_ignores_min_p_and_so_do_the_gates(
    temperature: float | None, is_refused: bool
) -> None:
    refused = refusals(NGRAM, min_p=0.1, temperature=temperature)
    assert (refused is not None) == is_refused
    assert refusals(NGRAM, logit_bias={"1": 2}, temperature=0) is not None


@pytest.mark.parametrize("value", [None, {}])
def test_logit_bias_without_entries_is_no_obstacle(value: object) -> None:
    assert refusals(NGRAM, logit_bias=value) is None


def test_a_plain_pool_takes_everything() -> None:
    assert refusals(PLAIN, min_p=0.1, logit_bias={"1": 2}, logprobs=True, n=4) is None


def test_other_sampling_parameters_are_no_obstacle() -> None:
    body = {"temperature": 0.7, "top_p": 0.9, "top_k": 4, "n": 2, "logprobs": True, "seed": 1}
    assert refusals(NGRAM, **body, tools=[{}], response_format={"type": "json_object"}) is None
