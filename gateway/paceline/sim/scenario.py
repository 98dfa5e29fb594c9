"""What a simulation is about, as frozen values: fleet, work, arrivals, what goes wrong, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paceline.core.types import Workload
from paceline.sim.hardware import H100, LLAMA_31_8B, Hardware, Model
from paceline.sim.truth import BURSTS, MAX_K


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPool:
    """`num_workers` alike; `method` None does not speculate, else drafts up to `k` tokens."""

    name: str
    method: str | None = None
    k: int = 0
    num_workers: int = 1
    max_num_seqs: int = 256

    def __post_init__(self) -> None:
        if self.num_workers < 1 or self.max_num_seqs < 1:
            raise ValueError(f"pool {self.name} needs a worker and a place in it")
        if (self.method is None) != (self.k == 0) or not 0 <= self.k <= MAX_K:
            raise ValueError(f"pool {self.name}: {self.method} with k = {self.k} is not simulated")
        if self.method is not None and self.method not in BURSTS:
            raise ValueError(f"pool {self.name}: nothing is known of drafting by {self.method!r}")


class Rhythm(StrEnum):
    """How arrivals follow one another."""

    POISSON = "poisson"
    GAMMA = "gamma"
    TRACE = "trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """`burstiness` is of gamma, `trace_s` (ascending seconds) of trace."""

    rhythm: Rhythm = Rhythm.POISSON
    burstiness: float = 1.0
    trace_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that changes at `at_s`.

    `slow_worker` runs `slow_factor` times as slow from then on; with `lose_metrics` no worker's
    load is known any more; with `stop_copying` requests of that workload copy no more than 0.05.
    """

    at_s: float
    slow_worker: int | None = None
    slow_factor: float = 1.0
    lose_metrics: bool = False
    stop_copying: Workload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A good request: first token within `ttft_s`, then `tpot_factor` times the seconds that a
    plain worker takes for a token when it has one sequence."""

    ttft_s: float = 0.5
    tpot_factor: float = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything but policy, rate and seed.

    `shares` are shares of output tokens. `mean_output_tokens` scales the lengths of the table of
    requests, `max_tokens` cuts them. Requests come for `duration_s`, the first `warm_up` of which
    is not judged; `drain_s` later whatever is not finished counts as failed. `follow_ups` is the
    share of requests that continue a conversation. `templated` is the share of conversations held
    with an application that does one class of work, of which there are `applications` for each; the
    others come from frontends for everything, whose template says nothing. `label_pools` is where
    label routing sends each class.
    """

    name: str
    shares: Mapping[Workload, float]
    pools: tuple[SimulatedPool, ...]
    label_pools: Mapping[Workload, str]
    mean_output_tokens: Mapping[Workload, float] = field(
        default_factory=lambda: {Workload.CODE: 400, Workload.CHAT: 340, Workload.EDIT: 500}
    )
    max_tokens: int = 2048
    follow_ups: float = 0.5
    templated: float = 0.5
    applications: int = 3
    arrivals: Arrivals = Arrivals()
    duration_s: float = 300.0
    warm_up: float = 0.15
    drain_s: float = 60.0
    objective: Objective = Objective()
    hardware: Hardware = H100
    model: Model = LLAMA_31_8B
    max_num_batched_tokens: int = 8192
    faults: tuple[Fault, ...] = ()
    rates: tuple[float, ...] = ()
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"{self.name}: pools need names of their own: {names}")
        if set(self.shares) != set(Workload) or abs(sum(self.shares.values()) - 1.0) > 1e-6:
            raise ValueError(f"{self.name}: shares must be of all classes and add up to 1")
        if missing := set(self.label_pools.values()) - set(names):
            raise ValueError(f"{self.name}: label_pools names no pool: {sorted(missing)}")
        workers = range(sum(pool.num_workers for pool in self.pools))
        for fault in self.faults:
            if fault.slow_worker is not None and fault.slow_worker not in workers:
                raise ValueError(f"{self.name}: there is no worker {fault.slow_worker}")

    @property
    def default_pool(self) -> str:
        """Where a gateway sends what nothing speaks for: the pool for chat."""
        return self.label_pools[Workload.CHAT]
