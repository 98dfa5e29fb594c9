"""One run: a scenario, a policy, a rate and a seed in; what its users saw out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.sim.adaptive import ADAPTIVE, Regret
from paceline.sim.cost import pass_costs
from paceline.sim.fleet import Fleet, Job
from paceline.sim.policies import BLIND, STATIC, Policy
from paceline.sim.scenario import Scenario
from paceline.sim.workload import Request, requests

SLO_SCALES = (1.0, 2.0, 3.0)
POLICIES: dict[str, Policy] = {**STATIC, **BLIND, **ADAPTIVE}
"""Every policy by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run. Judged are requests that came after the warm-up.

    `goodput` is good requests per second and `attainment` their share, at the scenario's objective;
    `attainment_at` at multiples of it. `mean_e2e_s` is of those that finished, None if none did.
    `total_tokens_per_s` counts answers' tokens in the judged part of the run, whoever's they are.
    `wasted_verify_tokens` were drafted, verified and thrown away, per output token. `switches` are
    changes of pool within a conversation, per conversation that could have changed. `regret` is the
    true cost of the pool chosen over that of the best pool, less 1, on average over a sample; None
    where there is one pool alone.
    """

    num_requests: int
    num_finished: int
    goodput: float
    attainment: float
    attainment_at: tuple[float, ...]
    mean_e2e_s: float | None
    mean_ttft_s: float | None
    mean_tpot_s: float | None
    total_tokens_per_s: float
    wasted_verify_tokens: float
    switches: float
    pool_shares: dict[str, float]
    mean_running: float
    regret: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result; every job, and the fleet as it was left, for those who want to see more."""

    result: RunResult
    jobs: Sequence[Job]
    fleet: Fleet


def run(
    scenario: Scenario,
    policy: Policy,
    rate_per_s: float,
    seed: int,
    arrivals: Sequence[Request] | None = None,
) -> Run:
    """Simulate; `arrivals` are `workload.requests` of the same rate and seed, if they are at hand.

    Everything is drawn from the seed: the same call gives the same result.
    """
    arrivals = requests(scenario, rate_per_s, seed) if arrivals is None else arrivals
    fleet = Fleet(scenario, policy.pools_of(scenario))
    chooser = policy.chooser(scenario, seed)
    regret = Regret(fleet, scenario)

    def choose(fleet: Fleet, request: Request, now_s: float) -> tuple[int, int]:
        worker, k = chooser.choose(fleet, request, now_s)
        if request.index % Regret.EVERY == 0 and len(fleet.pools) > 1:
            regret.judge(fleet, request, worker)
        return worker, k

    jobs = fleet.run(arrivals, choose, chooser.ended)
    return Run(result=judged(scenario, fleet, jobs, regret.mean), jobs=jobs, fleet=fleet)


def judged(
    scenario: Scenario, fleet: Fleet, jobs: Sequence[Job], regret: float | None = None
) -> RunResult:
    """The figures of a run's jobs, which are in order of arrival."""
    from_s = scenario.warm_up * scenario.duration_s
    counted = [job for job in jobs if job.request.arrival_s >= from_s]
    ended = [job for job in counted if job.finish_s is not None]
    objective = scenario.objective
    plain_s = pass_costs(scenario.hardware, scenario.model).decode_s(1)
    ttft = [ttft_s(job) for job in ended]
    tpot = [tpot_s(job) for job in ended]
    good = [
        sum(
            one <= scale * objective.ttft_s and other <= scale * objective.tpot_factor * plain_s
            for one, other in zip(ttft, tpot, strict=True)
        )
        for scale in SLO_SCALES
    ]
    seconds = scenario.duration_s - from_s
    of_pool: dict[str, int] = defaultdict(int)
    for job in counted:
        of_pool[fleet.workers[job.worker].pool.name] += 1
    tokens = sum(job.request.num_output_tokens for job in ended)
    share = 1.0 / len(counted) if counted else 0.0
    return RunResult(
        num_requests=len(counted),
        num_finished=len(ended),
        goodput=good[0] / seconds,
        attainment=good[0] * share,
        attainment_at=tuple(count * share for count in good),
        mean_e2e_s=_mean([(job.finish_s or 0.0) - job.request.arrival_s for job in ended]),
        mean_ttft_s=_mean(ttft),
        mean_tpot_s=_mean(tpot),
        total_tokens_per_s=sum(tokens_by_second(jobs, from_s, scenario.duration_s)) / seconds,
        wasted_verify_tokens=sum(job.num_drafted - job.num_accepted for job in ended)
        / max(1, tokens),
        switches=switches_per_conversation(fleet, jobs),
        pool_shares={name: count * share for name, count in of_pool.items()},
        mean_running=_mean([job.running for job in ended]) or 0.0,
        regret=regret,
    )


def ttft_s(job: Job) -> float:
    """Seconds from arrival to the first token of a job that has one."""
    assert job.first_s is not None
    return job.first_s - job.request.arrival_s


def tpot_s(job: Job) -> float:
    """Seconds per output token after the first, of a finished job."""
    assert job.first_s is not None
    assert job.finish_s is not None
    return (job.finish_s - job.first_s) / max(1, job.request.num_output_tokens - 1)


def tokens_by_second(jobs: Sequence[Job], from_s: float, to_s: float) -> list[float]:
    """Output tokens in each second of [from_s, to_s), answers spread evenly over their time."""
    seconds = [0.0] * max(0, round(to_s - from_s))
    for job in jobs:
        if job.first_s is None or job.finish_s is None:
            continue
        rate = (job.request.num_output_tokens - 1) / max(1e-9, job.finish_s - job.first_s)
        begin, end = job.first_s - from_s, job.finish_s - from_s
        if 0 <= begin < len(seconds):
            seconds[int(begin)] += 1.0
        at = max(0.0, begin)
        while at < min(end, len(seconds)):
            until = min(end, int(at) + 1.0)
            seconds[int(at)] += rate * (until - at)
            at = until
    return seconds


def switches_per_conversation(fleet: Fleet, jobs: Sequence[Job]) -> float:
    """Changes of pool from one turn to the next, per conversation of two turns or more."""
    last: dict[str, str] = {}
    longer: set[str] = set()
    switches = 0
    for job in jobs:
        name, conversation = fleet.workers[job.worker].pool.name, job.request.conversation
        if conversation in last:
            longer.add(conversation)
            switches += last[conversation] != name
        last[conversation] = name
    return switches / len(longer) if longer else 0.0


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
