"""The whole explanation of one decision by cost, figure by figure.

Golden: the fleet, the beliefs and the request are fixed, and every figure is compared. The sums are
those of `choose.py`, worked by hand where a comment says so.
"""

from __future__ import annotations

import pytest

from paceline.core.beliefs import Beliefs
from paceline.core.choose import Adaptive
from paceline.core.decide import route
from paceline.core.explain import explain_whole
from paceline.core.rules import Action, Condition, Rule
from paceline.core.types import (
    Caller,
    Classification,
    CopyRatio,
    Endpoint,
    Material,
    ModelSnapshot,
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
BUSY = {"ngram": (8, 5), "eagle3": (16, 3), "plain": (4, 0)}
MODEL = ModelSnapshot(
    name="m",
    default_pool="eagle3",
    pools=tuple(
        PoolSnapshot(
            name=name,
            speculation=how,
            workers=(
                WorkerSnapshot(
                    url=f"http://{name}:8000",
                    in_flight=BUSY[name][0],
                    drafting=float(BUSY[name][0] * BUSY[name][1]),
                    per_request_k=True,
                ),
            ),
        )
        for name, how in POOLS.items()
    ),
)
RULE = Rule(
    name="edits",
    when=(Condition(field="workload", any_of=("edit",)),),
    then=Action(prefer="ngram"),
)
EDIT = Classification(
    workload=Workload.EDIT,
    label_confidence=0.973,
    copy_ratio=CopyRatio(quantiles=(0.3, 0.65, 0.85, 0.92, 0.97)),
    evidence=("asks to fix", "wants the whole of it"),
)
REQUEST = RequestFeatures(
    view=RequestView(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", stream=True, max_tokens=200),
    material=Material.TEXT,
    material_chars=1500,
    prompt_chars=1600,
)


def test_every_figure_of_a_decision():
    adaptive = Adaptive(expectations=Beliefs(pools=POOLS))
    said = explain_whole(route(REQUEST, EDIT, Caller(), MODEL, (RULE,), adaptive))

    assert (
        said
        == {
            "workload": "edit",
            "label_confidence": 0.973,
            "copy_ratio": 0.738,
            "because": ["asks to fix", "wants the whole of it"],
            "model": "m",
            "pool": "ngram",
            "worker": "http://ngram:8000",
            "reason": "cost",
            "rule": "edits",
            "pools": {"ngram": "allowed", "eagle3": "allowed", "plain": "allowed"},
            "rules": {"edits": "matched"},
        }
        | said
    )
    terms = said["terms"]["ngram"]
    # 8 beside it draft 5 tokens each: 8 * 6 + 1 + 5 tokens, and 9 contexts of 500 + 125 tokens.
    pass_s = 8.05e-3 + 54 * 21e-6 + 9 * 625 * 39e-9
    before_s = 8.05e-3 + 48 * 21e-6 + 8 * 625 * 39e-9
    assert terms["pass_s"] == pytest.approx(pass_s, abs=1e-6)
    assert terms["pass_before_s"] == pytest.approx(before_s, abs=1e-6)
    assert terms["prefill_s"] == pytest.approx(pass_s + 400 * 21e-6, abs=1e-6)
    decode_s = 200 * pass_s / terms["tokens_per_pass"]
    assert terms["decode_s"] == pytest.approx(decode_s, rel=1e-3)
    assert terms["others_s"] == pytest.approx(decode_s * 8 * (1 - before_s / pass_s), rel=1e-3)
    assert said["cost_s"] == {pool: each["cost_s"] for pool, each in said["terms"].items()}
    assert {key: said[key] for key in ("k", "runner_up", "choice_confidence")} == {
        "k": 5,
        "runner_up": "eagle3",
        "choice_confidence": 0.79,
    }
    assert {
        pool: (each["k"], each["running"], each["cost_s"], each["tokens_per_pass"])
        for pool, each in said["terms"].items()
    } == GOLDEN
    assert said["why"] == WHY


GOLDEN = {
    "ngram": (5, 8.0, 0.674383, 2.571),
    "eagle3": (3, 16.0, 1.054985, 2.791),
    "plain": (0, 4.0, 1.517402, 1.0),
}
WHY = (
    "ngram with k = 5: least expected cost; 0.674 s against 1.05 s at eagle3 "
    "(2.57 and 2.79 tokens a pass, 8 and 16 running)"
)
