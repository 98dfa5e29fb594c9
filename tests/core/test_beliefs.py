"""What is believed of requests and pools, from the priors and from what requests came to."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from paceline.core.beliefs import Beliefs, Outcome
from paceline.core.choose import Adaptive, choose
from paceline.core.pool_belief import Slowness
from paceline.core.priors import NUM_BANDS, band_shares, prior_step_time, prior_survivals
from paceline.core.types import (
    Caller,
    Classification,
    CopyRatio,
    Endpoint,
    Material,
    PoolSnapshot,
    RequestFeatures,
    RequestView,
    Speculation,
    WorkerSnapshot,
    Workload,
)

NGRAM = Speculation(method="ngram", num_speculative_tokens=5)
EAGLE3 = Speculation(method="eagle3", num_speculative_tokens=3)
POOLS = {"ngram": NGRAM, "eagle3": EAGLE3, "plain": None}
COPIES = CopyRatio(quantiles=(0.5, 0.75, 0.85, 0.95, 0.98))
FREELY = band_shares(CopyRatio(quantiles=(0.0, 0.0, 0.0, 0.0, 0.0)))
COPIED, FREE = (1, 1, 1, 1, 1, 15), (4, 1, 0, 0, 0, 0)


def pool(name: str) -> PoolSnapshot:
    workers = (WorkerSnapshot(url=f"http://{name}"),)
    return PoolSnapshot(name=name, speculation=POOLS[name], workers=workers)


def features(max_tokens: int | None = None, prompt_chars: int = 2000) -> RequestFeatures:
    view = RequestView(
        endpoint=Endpoint.CHAT_COMPLETIONS, model="m", stream=True, max_tokens=max_tokens
    )
    return RequestFeatures(
        view=view, material=Material.NONE, material_chars=0, prompt_chars=prompt_chars
    )


def edit(copy_ratio: CopyRatio = COPIES) -> Classification:
    return Classification(workload=Workload.EDIT, label_confidence=0.9, copy_ratio=copy_ratio)


def tau(beliefs: Beliefs, name: str, k: int, template: int = 0) -> float:
    """Tokens a pass that an edit is expected to get."""
    outlook = beliefs.outlook(features(), edit(), Caller(template=template))
    return 1 / beliefs.draftings(outlook)[name].mean_inverses[k]


def on_ngram(accepted: tuple[int, ...], passes: int, **more: object) -> Outcome:
    num_accepted = sum(i * count for i, count in enumerate(accepted))
    return Outcome(
        pool="ngram",
        worker="http://ngram",
        workload=Workload.EDIT,
        believed=band_shares(COPIES),
        k=5,
        output_tokens=passes + 1 + num_accepted,
        accepted=accepted,
        drafted_tokens=5 * sum(accepted),
        **more,  # type: ignore[arg-type]
    )


def test_a_new_model_is_believed_to_draft_as_published():
    beliefs = Beliefs(pools=POOLS)
    assert tau(beliefs, "ngram", 5) == pytest.approx(2.95, abs=0.1)
    assert tau(beliefs, "eagle3", 3) == pytest.approx(2.85, abs=0.1)
    assert tau(beliefs, "plain", 0) == 1.0
    assert tau(beliefs, "eagle3", 1) < tau(beliefs, "eagle3", 3)


def test_every_pool_has_a_tau_for_each_k_in_each_case():
    beliefs = Beliefs(pools=POOLS)
    outlook = beliefs.outlook(features(), edit(), Caller())
    for name, limit in (("ngram", 5), ("eagle3", 3), ("plain", 0)):
        cases = beliefs.draftings(outlook)[name]
        assert sum(cases.shares) == pytest.approx(1.0)
        assert [len(row) for row in cases.inverse_taus] == [NUM_BANDS] * (limit + 1)


def test_edits_that_stop_copying_are_soon_expected_not_to():
    beliefs = Beliefs(pools=POOLS)
    for now_s in range(30):
        beliefs.observe(on_ngram(COPIED, 22), float(now_s))
    copying = tau(beliefs, "ngram", 5)
    for now_s in range(30, 70):
        beliefs.observe(on_ngram(FREE, 100), float(now_s))
    stopped = tau(beliefs, "ngram", 5)
    assert copying > 3.0
    assert stopped < 2.0
    for now_s in range(70, 130):
        beliefs.observe(on_ngram(COPIED, 22), float(now_s))
    assert tau(beliefs, "ngram", 5) > 2.5


def test_a_template_that_never_copies_does_not_speak_for_the_others():
    beliefs = Beliefs(pools=POOLS)
    for now_s in range(90):
        accepted, passes, template = (FREE, 100, 1) if now_s % 3 == 0 else (COPIED, 22, 2)
        beliefs.observe(on_ngram(accepted, passes, template=template), float(now_s))
    assert tau(beliefs, "ngram", 5, 1) < 2.0 < 3.0 < tau(beliefs, "ngram", 5, 2)


def test_code_that_drafts_well_on_a_head_is_not_taken_for_copying():
    beliefs = Beliefs(pools=POOLS)
    little = CopyRatio(quantiles=(0.0, 0.05, 0.1, 0.1, 0.15))
    code = Classification(workload=Workload.CODE, label_confidence=0.9, copy_ratio=little)
    for now_s in range(60):
        outcome = Outcome(
            pool="eagle3",
            worker="http://eagle3",
            workload=Workload.CODE,
            believed=band_shares(little),
            k=3,
            output_tokens=121,
            accepted=(3, 3, 4, 30),
        )
        beliefs.observe(outcome, float(now_s))
    outlook = beliefs.outlook(features(), code, Caller())
    assert 1 / beliefs.draftings(outlook)["eagle3"].mean_inverses[3] > 3.2
    assert 1 / beliefs.draftings(outlook)["ngram"].mean_inverses[5] < 1.35


def test_a_known_copy_ratio_teaches_from_any_pool():
    beliefs = Beliefs(pools=POOLS)
    for now_s in range(60):
        outcome = Outcome(
            pool="plain", worker="http://plain", workload=Workload.EDIT,
            believed=band_shares(COPIES), k=0, output_tokens=100, copy_ratio=0.1,
        )  # fmt: skip
        beliefs.observe(outcome, float(now_s))
    assert tau(beliefs, "ngram", 5) < 1.5


def test_looping_outputs_are_counted_and_not_learned_from():
    beliefs, untouched = Beliefs(pools=POOLS), Beliefs(pools=POOLS)
    beliefs.observe(on_ngram(COPIED, 22, loops=True), 0.0)
    assert (beliefs.num_observed, beliefs.num_looping) == (1, 1)
    assert tau(beliefs, "ngram", 5) == tau(untouched, "ngram", 5)


def test_the_speed_of_one_pool_is_believed_of_the_others_until_they_are_seen():
    beliefs = Beliefs(pools=POOLS)
    shape = prior_step_time(None, 0)
    for now_s in range(20):
        outcome = Outcome(
            pool="plain", worker="http://plain", workload=Workload.CHAT, believed=FREELY,
            k=0, prompt_tokens=100, output_tokens=101, decode_s=100 * 4 * shape.seconds(1, 1, 150),
        )  # fmt: skip
        beliefs.observe(outcome, float(now_s))
    ngram = beliefs.step_times("ngram")["http://ngram"]
    assert ngram.fixed_s == pytest.approx(4 * prior_step_time("ngram", 5).fixed_s, rel=0.05)


def test_a_worker_that_slows_down_is_told_from_its_pool():
    beliefs = Beliefs(pools=POOLS)
    shape = prior_step_time("eagle3", 3)
    rng = random.Random(2)
    for now_s in range(200):
        worker = f"http://{now_s % 4}"
        slow = 2.0 if worker == "http://3" and now_s > 100 else 1.0
        running = rng.randint(1, 30)
        seconds = slow * shape.seconds(running, 4 * running, 600) * rng.lognormvariate(0, 0.1)
        outcome = Outcome(
            pool="eagle3", worker=worker, workload=Workload.CHAT, believed=FREELY, k=3,
            prompt_tokens=450, output_tokens=301, accepted=(50, 20, 20, 60), running=running,
            scheduled=4.0 * running, decode_s=150 * seconds,
        )  # fmt: skip
        beliefs.observe(outcome, float(now_s))
    steps = beliefs.step_times("eagle3")
    fast, slow = (steps[f"http://{i}"].seconds(10, 40, 600) for i in (0, 3))
    assert slow / fast == pytest.approx(2.0, rel=0.25)
    for now_s in range(2000, 30_000, 1000):  # it is asked no more, and may be well again
        beliefs.observe(replace(outcome, worker="http://1"), float(now_s))
    steps = beliefs.step_times("eagle3")
    assert steps["http://3"].seconds(10, 40, 600) < 1.02 * steps["http://2"].seconds(10, 40, 600)


def test_one_request_that_stood_still_makes_no_slow_worker():
    slow = Slowness(half_life_s=1800.0)
    slow.observe(1.0, 0.0)
    slow.observe(50.0, 1.0)
    assert slow.factor(1.0) < 1.2
    for now_s in range(2, 40):
        slow.observe(6.0, float(now_s))
    assert slow.factor(40.0) == pytest.approx(6.0, rel=0.1)


@pytest.mark.parametrize("noise", [1.0, 1.2, 1.5, 2.0, 8.0])
def test_one_bad_moment_of_a_pool_does_not_keep_all_others_away(noise):
    """Edits that do not copy, without exploration: they leave the lookup for the plain pool, and
    stay there though the first of them found it slower than it is."""
    names = ("ngram", "plain")
    beliefs = Beliefs(pools={name: POOLS[name] for name in names})
    pass_s, first, where = {"ngram": 0.032, "plain": 0.027}, {"plain": noise}, []
    for now_s in range(0, 90, 2):
        outlook = beliefs.outlook(features(max_tokens=64), edit(), Caller())
        choice, _ = choose(tuple(map(pool, names)), outlook, Adaptive(beliefs), "plain")
        name = choice.chosen.pool
        where.append(name)
        counts = (63, 0, 0, 0, 0, 0) if name == "ngram" else None
        outcome = Outcome(
            pool=name, worker=f"http://{name}", workload=Workload.EDIT,
            believed=band_shares(COPIES), k=0 if counts is None else 5, prompt_tokens=250,
            output_tokens=64, accepted=counts, decode_s=63 * pass_s[name] * first.pop(name, 1.0),
        )  # fmt: skip
        beliefs.observe(outcome, float(now_s))
    assert where == ["ngram"] * where.index("plain") + ["plain"] * where.count("plain")
    assert where.count("plain") > 10


def test_output_is_expected_as_seen_and_never_beyond_what_was_asked_for():
    beliefs = Beliefs(pools=POOLS)
    for now_s in range(100):
        outcome = Outcome(
            pool="plain", worker="w", workload=Workload.EDIT, believed=FREELY, k=0,
            prompt_chars=3000, prompt_tokens=1000, output_tokens=700,
        )  # fmt: skip
        beliefs.observe(outcome, float(now_s))
    outlook = beliefs.outlook(features(prompt_chars=3000), edit(), Caller())
    assert outlook.output_tokens == pytest.approx(700, rel=0.05)
    assert outlook.prompt_tokens == pytest.approx(1000, rel=0.1)
    assert beliefs.outlook(features(max_tokens=16), edit(), Caller()).output_tokens == 16


def test_answers_cut_short_say_nothing_of_their_length():
    beliefs = Beliefs(pools=POOLS)
    for now_s in range(100):
        outcome = Outcome(
            pool="plain", worker="w", workload=Workload.EDIT, believed=FREELY, k=0,
            output_tokens=8, max_tokens=8,
        )  # fmt: skip
        beliefs.observe(outcome, float(now_s))
    assert beliefs.outlook(features(), edit(), Caller()).output_tokens == 300


def test_a_pool_that_is_gone_and_an_answer_without_counts_do_no_harm():
    beliefs = Beliefs(pools=POOLS)
    beliefs.observe(
        Outcome(pool="gone", worker="w", workload=Workload.CHAT, believed=FREELY, k=2), 0.0
    )
    assert beliefs.num_observed == 1


def test_priors_fall_and_copying_drafts_better_in_every_method():
    for method in ("ngram", "suffix", "eagle3", "mtp", "draft_model", None, "medusa"):
        bands = prior_survivals(method, 8)
        assert len(bands) == NUM_BANDS
        for survivals in bands:
            assert list(survivals) == sorted(survivals, reverse=True)
        totals = [sum(survivals) for survivals in bands]
        assert totals == sorted(totals)


def test_published_tokens_per_pass_come_out_of_the_priors():
    ngram, eagle3 = prior_survivals("ngram", 5), prior_survivals("eagle3", 3)
    for band, (at_5, at_3) in enumerate(
        [(1.20, 2.16), (1.41, 2.34), (1.79, 2.57), (2.32, 2.76), (2.70, 2.84), (3.41, 3.01),
         (4.23, 3.02)]
    ):  # fmt: skip
        assert 1 + sum(ngram[band]) == pytest.approx(at_5, rel=0.01)
        assert 1 + sum(eagle3[band]) == pytest.approx(at_3, rel=0.01)


def places(value: Any, *so_far: Any) -> Iterator[tuple[Any, ...]]:
    """The way to everything within a JSON value."""
    within = value if isinstance(value, dict) else range(len(value) if type(value) is list else 0)
    for at in within:
        yield (*so_far, at)
        yield from places(value[at], *so_far, at)


@pytest.mark.parametrize("wrong", [None, 0, -1, 1e300, "x", [], {}, 2**63])
def test_a_state_that_was_spoiled_is_refused_or_does_no_harm(wrong):
    kept = orjson.loads(orjson.dumps(Beliefs(pools=POOLS).state()))
    for *way, last in places(kept):
        spoiled = within = copy.deepcopy(kept)
        for at in way:
            within = within[at]
        within[last] = wrong
        beliefs = Beliefs(pools=POOLS)
        try:
            beliefs.restore(spoiled)
        except (ValueError, KeyError, TypeError):
            continue
        for _ in range(2):
            outlook = beliefs.outlook(features(), edit(), Caller())
            for name in POOLS:
                taus = beliefs.draftings(outlook)[name].mean_inverses
                seconds = beliefs.pool_step_time(name).seconds(4, 12, outlook.context)
                assert all(0 < inverse <= 1.0001 for inverse in taus), (way, last)
                assert 0 < seconds * outlook.output_tokens < 1e9, (way, last)
            beliefs.observe(on_ngram(COPIED, 20, decode_s=0.3, prompt_tokens=9), 100.0)
