"""Scenario files: those that come with the project are right, and what is wrong is named."""

from __future__ import annotations

import pytest

from paceline.bench.scenarios import FOLDER, load, names, parse
from paceline.core.types import Workload
from paceline.errors import ConfigurationError

MIXED = (FOLDER / "mixed.yaml").read_text()


@pytest.mark.parametrize("name", names())
def test_every_scenario_of_the_project_loads(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    assert sum(pool.num_workers for pool in scenario.pools) == 8
    assert len(scenario.seeds) >= 3
    assert scenario.rates


def test_the_three_mixes_are_those_that_results_are_defined_on() -> None:
    shares = {
        name: [round(100 * load(name).shares[workload]) for workload in Workload]
        for name in ("mixed", "edits", "code")
    }
    assert shares == {"mixed": [45, 45, 10], "edits": [30, 30, 40], "code": [60, 35, 5]}
    for name in shares:
        scenario = load(name)
        assert (scenario.duration_s, scenario.warm_up) == (300.0, 0.15)
        assert (scenario.objective.ttft_s, scenario.objective.tpot_factor) == (0.5, 1.5)
        assert len(scenario.seeds) >= 5


def test_everything_wrong_is_named_with_its_line() -> None:
    text = MIXED.replace("drain_s", "drian_s").replace("ttft_s: 0.5", "ttft_s: -1")
    with pytest.raises(ConfigurationError) as caught:
        parse(text, name="m.yaml")
    found = "\n".join(caught.value.problems)
    assert 'drian_s: unknown key; did you mean "drain_s"?' in found
    assert "objective.ttft_s: input should be greater than 0" in found
    assert all(problem.startswith("m.yaml:") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("hardware: h100", "hardware: h1000", 'unknown hardware; did you mean "h100"?'),
        ("edit: ngram}", "edit: nope}", "label_pools names no pool"),
        ("edit: 0.1}", "edit: 0.2}", "add up to 1"),
        ("method: ngram, k: 10", "method: ngram, k: 99", "is not simulated"),
        ("name: mixed", "name: mixed\nname: twice", "duplicate key"),
    ],
)
def test_what_cannot_be_simulated_is_refused(old: str, new: str, said: str) -> None:
    assert old in MIXED
    with pytest.raises(ConfigurationError, match=said):
        parse(MIXED.replace(old, new))


def test_a_file_that_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(ConfigurationError, match="there is no such scenario; known: "):
        load("no-such-scenario")
