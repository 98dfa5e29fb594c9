"""Scenario files (`configs/workloads/*.yaml`) → `sim.scenario.Scenario`, strictly.

The YAML is read as configurations are: duplicate keys, tags and aliases are errors, unknown keys
are named with their line and the nearest right one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from paceline.core.types import Workload
from paceline.errors import ConfigurationError
from paceline.settings.document import read
from paceline.settings.problems import Problems, did_you_mean
from paceline.sim.hardware import HARDWARE, MODELS
from paceline.sim.scenario import (
    Arrivals,
    Fault,
    Objective,
    Rhythm,
    Scenario,
    SimulatedPool,
)

_IN_A_WHEEL = Path(__file__).parent / "workloads"
"""Where hatch_build.py lays them; the repository, and what runs from it, has them elsewhere."""
FOLDER = (
    _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else Path(__file__).parents[3] / "configs" / "workloads"
)

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Shares(_Section):
    code: Share
    chat: Share
    edit: Share


class _Lengths(_Section):
    code: Positive
    chat: Positive
    edit: Positive


class _LabelPools(_Section):
    code: str
    chat: str
    edit: str


class _Pool(_Section):
    name: str
    method: str | None = None
    k: Annotated[int, Field(ge=0)] = 0
    workers: Count
    max_num_seqs: Count = 256


class _Arrivals(_Section):
    rhythm: Rhythm = Rhythm.POISSON
    burstiness: Positive = 1.0
    trace_s: list[float] = Field(default_factory=list)


class _Objective(_Section):
    ttft_s: Positive
    tpot_factor: Positive


class _Fault(_Section):
    at_s: Positive
    slow_worker: Annotated[int, Field(ge=0)] | None = None
    slow_factor: Positive = 1.0
    lose_metrics: bool = False
    stop_copying: Workload | None = None


class _File(_Section):
    name: str
    shares: _Shares
    pools: Annotated[list[_Pool], Field(min_length=1)]
    label_pools: _LabelPools
    mean_output_tokens: _Lengths
    max_tokens: Count
    follow_ups: Share
    templated: Share
    applications: Count
    arrivals: _Arrivals = _Arrivals()
    objective: _Objective
    hardware: str
    model: str
    duration_s: Positive
    warm_up: Share
    drain_s: Positive
    faults: list[_Fault] = Field(default_factory=list)
    rates: list[Positive] = Field(default_factory=list)
    seeds: Annotated[list[int], Field(min_length=1)]


def load(path: str | Path) -> Scenario:
    """The scenario in a file; a bare name is looked for in `configs/workloads`.

    Raises ConfigurationError with everything that is wrong with it.
    """
    given = Path(path)
    if not given.exists() and given.parent == Path() and (FOLDER / f"{given.stem}.yaml").exists():
        given = FOLDER / f"{given.stem}.yaml"
    try:
        text = given.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = did_you_mean(str(path), names())
        raise ConfigurationError(f"{path}: there is no such scenario{near}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    return parse(text, name=str(given))


def parse(text: str, *, name: str = "scenario") -> Scenario:
    """The scenario in `text`; `name` stands for the file in messages. Raises ConfigurationError."""
    problems = Problems(file=name)
    data = read(text, problems)
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            problems.add(one["loc"], _message(one))
        raise problems.error() from None
    for key, known in (("hardware", HARDWARE), ("model", MODELS)):
        if (value := getattr(file, key)) not in known:
            problems.add((key,), f"unknown {key}{did_you_mean(value, known)}")
    problems.raise_if_any()
    try:
        return _scenario(file)
    except ValueError as error:
        problems.add((), str(error))
        raise problems.error() from None


def names() -> list[str]:
    """The scenarios that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def _scenario(file: _File) -> Scenario:
    return Scenario(
        name=file.name,
        shares=_by_workload(file.shares),
        pools=tuple(_pool(pool) for pool in file.pools),
        label_pools=_by_workload(file.label_pools),
        mean_output_tokens=_by_workload(file.mean_output_tokens),
        max_tokens=file.max_tokens,
        follow_ups=file.follow_ups,
        templated=file.templated,
        applications=file.applications,
        arrivals=Arrivals(
            rhythm=file.arrivals.rhythm,
            burstiness=file.arrivals.burstiness,
            trace_s=tuple(file.arrivals.trace_s),
        ),
        objective=Objective(ttft_s=file.objective.ttft_s, tpot_factor=file.objective.tpot_factor),
        hardware=HARDWARE[file.hardware],
        model=MODELS[file.model],
        duration_s=file.duration_s,
        warm_up=file.warm_up,
        drain_s=file.drain_s,
        faults=tuple(Fault(**fault.model_dump()) for fault in file.faults),
        rates=tuple(file.rates),
        seeds=tuple(file.seeds),
    )


def _pool(pool: _Pool) -> SimulatedPool:
    return SimulatedPool(
        name=pool.name,
        method=pool.method,
        k=pool.k,
        num_workers=pool.workers,
        max_num_seqs=pool.max_num_seqs,
    )


def _by_workload(section: BaseModel) -> Mapping[Workload, Any]:
    return {workload: getattr(section, workload.value) for workload in Workload}


def _message(error: ErrorDetails) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key{did_you_mean(error['loc'][-1], _keys_at(error['loc'][:-1]))}"
        case "missing":
            return "required, but missing"
        case _:
            return error["msg"][0].lower() + error["msg"][1:]


def _keys_at(path: Sequence[str | int]) -> tuple[str, ...]:
    """The keys of the section at a path."""
    sections: dict[str, type[BaseModel]] = {
        "shares": _Shares,
        "pools": _Pool,
        "label_pools": _LabelPools,
        "mean_output_tokens": _Lengths,
        "arrivals": _Arrivals,
        "objective": _Objective,
        "faults": _Fault,
    }
    section = sections.get(str(path[0]), _File) if path else _File
    return tuple(section.model_fields)
