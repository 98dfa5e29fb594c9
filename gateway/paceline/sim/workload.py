"""Which requests come: what they truly are, and what the classifier believes of them.

Both are drawn together from `classified_rows.py`, pairs of belief and truth from real prompts, so
the classifier's real errors are in them. Answers are drawn with the prompt they belong to, scaled
to a scenario's mean lengths; an edit's prompt is scaled with its answer.

Left out: prompts that grow from turn to turn (and prefix caches, which would take the growth away
again), and lengths that depend on who answers.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from paceline.core.types import Classification, CopyRatio, Workload
from paceline.sim.arrivals import gamma_arrivals, poisson_arrivals, trace_arrivals
from paceline.sim.classified_rows import ROWS
from paceline.sim.scenario import Arrivals, Rhythm, Scenario

COPIES_NOTHING = 0.05
"""The copy ratio of a workload that has stopped copying."""
GENERAL = 1
"""The template of frontends for everything; those of applications are numbered after it."""
_CLASSES = {"c": Workload.CODE, "h": Workload.CHAT, "e": Workload.EDIT}
_OPEN_CONVERSATIONS = 64  # of each class that a follow-up may belong to


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedRow:
    """One real request: belief, truth, and sizes in word tokens."""

    believed: Classification
    workload: Workload
    copy_ratio: float
    num_prompt_tokens: int
    num_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to simulate. `template` is what requests of one application have in common. Lucks
    and draws are standard normal: how well a head and a lookup do on it, and how its number of
    passes comes out."""

    index: int
    arrival_s: float
    believed: Classification
    workload: Workload
    copy_ratio: float
    num_prompt_tokens: int
    num_output_tokens: int
    conversation: str
    template: int
    head_luck: float
    lookup_luck: float
    passes_draw: float


@cache
def rows() -> tuple[ClassifiedRow, ...]:
    """The table, read."""
    return tuple(_row(line) for line in ROWS.splitlines())


def _row(line: str) -> ClassifiedRow:
    said, confidence, *rest = line.split()
    a, b, c, d, e = map(float, rest[:5])
    return ClassifiedRow(
        believed=Classification(
            workload=_CLASSES[said],
            label_confidence=float(confidence),
            copy_ratio=CopyRatio(quantiles=(a, b, c, d, e)),
        ),
        workload=_CLASSES[rest[5]],
        copy_ratio=float(rest[6]),
        num_prompt_tokens=int(rest[7]),
        num_output_tokens=int(rest[8]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Prompt and output tokens of one row, in a scenario's lengths."""

    row: ClassifiedRow
    num_prompt_tokens: int
    num_output_tokens: int


def sized_rows(scenario: Scenario) -> Mapping[Workload, Sequence[Sizes]]:
    """The table by true class, scaled to the scenario's mean lengths and cut to its limit."""
    return {workload: _sized(workload, scenario) for workload in Workload}


def _sized(workload: Workload, scenario: Scenario) -> list[Sizes]:
    of_class = [row for row in rows() if row.workload is workload]
    mean = sum(row.num_output_tokens for row in of_class) / len(of_class)
    scale = scenario.mean_output_tokens[workload] / mean
    prompt_scale = scale if workload is Workload.EDIT else 1.0
    longest_prompt = scenario.max_num_batched_tokens
    return [
        Sizes(
            row=row,
            num_prompt_tokens=min(
                longest_prompt, max(1, round(row.num_prompt_tokens * prompt_scale))
            ),
            num_output_tokens=min(
                scenario.max_tokens, max(2, round(row.num_output_tokens * scale))
            ),
        )
        for row in of_class
    ]


def mean_output_tokens(scenario: Scenario) -> dict[Workload, float]:
    """Of each class, as drawn: scaled and cut."""
    return {
        workload: sum(one.num_output_tokens for one in sizes) / len(sizes)
        for workload, sizes in sized_rows(scenario).items()
    }


def arrival_times(
    arrivals: Arrivals, rate_per_s: float, duration_s: float, rng: random.Random
) -> list[float]:
    match arrivals.rhythm:
        case Rhythm.POISSON:
            return poisson_arrivals(rate_per_s, duration_s, rng)
        case Rhythm.GAMMA:
            return gamma_arrivals(rate_per_s, duration_s, rng, burstiness=arrivals.burstiness)
        case Rhythm.TRACE:
            return trace_arrivals(arrivals.trace_s, rate_per_s, duration_s, rng)


def requests(scenario: Scenario, rate_per_s: float, seed: int) -> list[Request]:
    """The requests of one run, in order of arrival: the same for every policy.

    Classes are drawn so that their shares of output tokens are the scenario's.
    """
    sizes = sized_rows(scenario)
    means = mean_output_tokens(scenario)
    classes = list(Workload)
    weights = list(accumulate(scenario.shares[one] / means[one] for one in classes))
    stops = {fault.stop_copying: fault.at_s for fault in scenario.faults if fault.stop_copying}
    rng = random.Random(f"arrivals {seed}")
    times = arrival_times(scenario.arrivals, rate_per_s, scenario.duration_s, rng)
    rng = random.Random(f"requests {seed}")
    open_ones = {one: deque[tuple[str, int]](maxlen=_OPEN_CONVERSATIONS) for one in classes}
    found = []
    for index, arrival_s in enumerate(times):
        workload = rng.choices(classes, cum_weights=weights)[0]
        one = rng.choice(sizes[workload])
        copy_ratio = one.row.copy_ratio
        if arrival_s >= stops.get(workload, arrival_s + 1.0):
            copy_ratio = min(copy_ratio, COPIES_NOTHING)
        conversation, template = _conversation(index, workload, open_ones, scenario, rng)
        found.append(
            Request(
                index=index,
                arrival_s=arrival_s,
                believed=one.row.believed,
                workload=workload,
                copy_ratio=copy_ratio,
                num_prompt_tokens=one.num_prompt_tokens,
                num_output_tokens=one.num_output_tokens,
                conversation=conversation,
                template=template,
                head_luck=rng.gauss(0.0, 1.0),
                lookup_luck=rng.gauss(0.0, 1.0),
                passes_draw=rng.gauss(0.0, 1.0),
            )
        )
    return found


def _conversation(
    index: int,
    workload: Workload,
    open_ones: Mapping[Workload, deque[tuple[str, int]]],
    scenario: Scenario,
    rng: random.Random,
) -> tuple[str, int]:
    """An earlier conversation of the same class, or a new one; and the template it is held with."""
    recent = open_ones[workload]
    if recent and rng.random() < scenario.follow_ups:
        return recent[rng.randrange(len(recent))]
    template = GENERAL
    if rng.random() < scenario.templated:
        first = GENERAL + 1 + list(Workload).index(workload) * scenario.applications
        template = first + rng.randrange(scenario.applications)
    recent.append((f"c{index}", template))
    return recent[-1]
