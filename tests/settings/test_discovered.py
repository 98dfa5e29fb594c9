"""Settings made from what workers say of themselves."""

import pytest

from paceline.core.rules import Action, Condition, Rule
from paceline.core.types import Speculation
from paceline.errors import ConfigurationError
from paceline.settings import (
    DiscoveredWorker,
    ModelSettings,
    PoolSettings,
    Settings,
    WorkerSettings,
    discovered_settings,
    worker_address,
)


def worker(port: int, tokens: int | None, model: str = "m") -> DiscoveredWorker:
    return DiscoveredWorker(url=f"http://a:{port}", model=model, num_speculative_tokens=tokens)


def pool(name: str, tokens: int | None, *ports: int) -> PoolSettings:
    spec = Speculation(method=None, num_speculative_tokens=tokens) if tokens else None
    return PoolSettings(
        name=name,
        speculation=spec,
        workers=tuple(WorkerSettings(url=f"http://a:{port}") for port in ports),
    )


def model(name: str, default_pool: str, *pools: PoolSettings) -> ModelSettings:
    return ModelSettings(
        name=name, aliases=(), upstream_name=name, default_pool=default_pool, pools=pools
    )


def prefer(workload: str, pool: str) -> Rule:
    return Rule(
        name=workload,
        when=(Condition(field="workload", any_of=(workload,)),),
        then=Action(prefer=pool),
    )


def test_one_worker_is_one_pool_without_rules() -> None:
    assert discovered_settings([worker(1, 5)]) == Settings(
        models=(model("m", "spec-k5", pool("spec-k5", 5, 1)),)
    )


def test_workers_alike_share_a_pool_and_work_that_drafts_well_speculates() -> None:
    found = discovered_settings([worker(1, 5), worker(2, None), worker(3, 5)])

    assert found == Settings(
        models=(model("m", "plain", pool("spec-k5", 5, 1, 3), pool("plain", None, 2)),),
        rules=(prefer("edit", "spec-k5"), prefer("code", "spec-k5")),
    )


def test_of_several_lengths_edits_prefer_the_longest_and_code_the_shortest() -> None:
    found = discovered_settings([worker(1, 3), worker(2, 10), worker(3, 5), worker(4, None)])

    assert found.rules == (prefer("edit", "spec-k10"), prefer("code", "spec-k3"))


def test_without_a_plain_worker_nothing_is_known_to_choose_by() -> None:
    found = discovered_settings([worker(1, 3), worker(2, 10)])

    assert found.models[0].default_pool == "spec-k3"
    assert found.rules == ()


def test_with_several_models_each_rule_is_for_one() -> None:
    found = discovered_settings(
        [worker(1, None), worker(2, None, "n"), worker(3, 4), worker(4, 2, "n"), worker(5, 9, "o")]
    )

    assert [(rule.name, rule.then.prefer) for rule in found.rules] == [
        ("edit-m", "spec-k4"),
        ("code-m", "spec-k4"),
        ("edit-n", "spec-k2"),
        ("code-n", "spec-k2"),
    ]
    assert found.rules[2].when == (
        Condition(field="model", any_of=("n",)),
        Condition(field="workload", any_of=("edit",)),
    )


def test_no_worker_and_a_repeated_one_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no workers"):
        discovered_settings([])
    with pytest.raises(ConfigurationError, match="worker named twice: http://a:1"):
        discovered_settings([worker(1, 5), worker(1, None)])


def test_an_address_is_brought_into_one_form_or_refused() -> None:
    assert worker_address("HTTP://Gpu-1:8000/") == "http://gpu-1:8000"
    assert worker_address("http://[FD00:0::1]:08000") == "http://[fd00::1]:8000"


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("10.0.0.1:8000", "must begin with http:// or https://"),
        ("", "must begin with http:// or https://"),
        ("http://gpu-1:99999", "must have a port from 1 to 65535 after the colon"),
        ("http://gpu-1:8000/v1", "must be http(s)://host[:port] without a path (the gateway adds"),
        ("http://fd00::1:8000", "must have one colon at most, before the port, and an IPv6 addre"),
        ("http://gpu 1", "must have a host name or address after ://"),
    ],
)
def test_a_wrong_address_is_repeated_with_what_is_wrong(typed: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        worker_address(typed)

    assert caught.value.message.startswith(f'--worker "{typed}": {problem}')


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as caught:
        worker_address("http://me:hu/sh@gpu-1:8000")

    assert caught.value.message.startswith('--worker "http://…@gpu-1:8000": must be http(s)://host')
