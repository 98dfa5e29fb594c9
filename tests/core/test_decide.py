"""A request's whole path to one worker, with the reason for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.beliefs import Beliefs
from paceline.core.choose import Adaptive
from paceline.core.decide import decide
from paceline.core.features import measure
from paceline.core.rules import Action, Comparison, Condition, Rule
from paceline.core.types import (
    Caller,
    Decision,
    Endpoint,
    ModelSnapshot,
    PoolSnapshot,
    PoolVerdict,
    Reason,
    RequestFeatures,
    RuleVerdict,
    Speculation,
    WorkerSnapshot,
    Workload,
)
from paceline.core.views import view_of
from paceline.errors import NoCompatiblePool


def pool(name: str, *, drafts: bool, up: tuple[bool, ...] = (True, True)) -> PoolSnapshot:
    return PoolSnapshot(
        name=name,
        speculation=Speculation(method="ngram", num_speculative_tokens=4) if drafts else None,
        workers=tuple(
            WorkerSnapshot(url=f"http://{name}-{index}", up=is_up) for index, is_up in enumerate(up)
        ),
    )


DOWN = (False, False)
NGRAM, EAGLE3 = pool("ngram", drafts=True), pool("eagle3", drafts=True)
PLAIN = pool("plain", drafts=False)


def model(*pools: PoolSnapshot, default: str = "plain") -> ModelSnapshot:
    return ModelSnapshot(name="m", default_pool=default, pools=pools)


FLEET = model(NGRAM, EAGLE3, PLAIN)
EDIT = "Fix the typos and return the full text:\n\n```\nteh quick brown fox\n```"
EDITS = Rule(
    name="edits",
    when=(Condition(field="workload", any_of=("edit",)),),
    then=Action(prefer="ngram"),
)


def request(content: Any = "Why is the sky blue?", **body: Any) -> RequestFeatures:
    messages = [{"role": "user", "content": content}]
    return measure(view_of(Endpoint.CHAT_COMPLETIONS, {"model": "m", "messages": messages, **body}))


def always(**then: Any) -> Rule:
    return Rule(name="always", when=(), then=Action(**then))


def decided(
    features: RequestFeatures,
    *rules: Rule,
    fleet: ModelSnapshot = FLEET,
    **caller: Any,
) -> Decision:
    return decide(features, Caller(**caller), fleet, rules)


# ---- the usual ways ------------------------------------------------------------------------------


def test_without_rules_the_default_pool_takes_it() -> None:
    decision = decided(request())
    assert (decision.pool, decision.reason, decision.rule) == ("plain", Reason.DEFAULT, None)
    assert decision.worker == "http://plain-0"
    assert decision.model == "m"
    assert decision.pools == tuple(
        PoolVerdict(pool=name, refused=None) for name in ("ngram", "eagle3", "plain")
    )


def test_a_rule_sends_edits_where_lookup_drafts_well() -> None:
    decision = decided(request(EDIT), EDITS)
    assert decision.classification.workload is Workload.EDIT
    assert (decision.pool, decision.reason, decision.rule) == ("ngram", Reason.RULE, "edits")
    assert decision.rules == (RuleVerdict(rule="edits", obstacle=None),)


def test_a_rule_that_does_not_match_says_why() -> None:
    decision = decided(request(), EDITS)
    assert (decision.pool, decision.reason) == ("plain", Reason.DEFAULT)
    assert decision.rules[0].why_not == "workload is edit, but it is chat"


def test_the_only_pool_there_is_takes_it() -> None:
    decision = decided(request(), fleet=model(PLAIN))
    assert (decision.pool, decision.reason) == ("plain", Reason.ONLY)


def test_a_request_without_text_goes_to_the_default_pool() -> None:
    """Others' routers fail or fall to a default on content given as parts."""
    rules = [
        Rule(
            name=f"{workload}",
            when=(Condition(field="workload", any_of=(workload.value,)),),
            then=Action(pool="ngram"),
        )
        for workload in Workload
    ]
    picture = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    for features in (request(picture), request([]), request(None)):
        assert decided(features, *rules).reason is Reason.DEFAULT


def test_content_given_as_parts_is_routed_by_its_text() -> None:
    """Others' routers fail or fall to a default on content given as parts."""
    parts = [{"type": "text", "text": EDIT}, {"type": "image_url", "image_url": {}}]
    assert decided(request(parts), EDITS).pool == "ngram"


# ---- gates ---------------------------------------------------------------------------------------


def test_gates_leave_only_pools_that_may_take_it() -> None:
    decision = decided(request(min_p=0.1), EDITS)
    assert (decision.pool, decision.reason) == ("plain", Reason.ONLY)
    why = "min_p cannot be used with speculative decoding"
    assert decision.pools[0] == PoolVerdict(pool="ngram", refused=why)
    assert decision.pools[2] == PoolVerdict(pool="plain", refused=None)


def test_gates_beat_pins() -> None:
    decision = decided(request(EDIT, min_p=0.1), always(pool="ngram"))
    assert (decision.pool, decision.rule) == ("plain", None)
    assert decision.rules[0].why_not == "pool ngram may not take this request"


def test_with_the_default_pool_gated_the_first_that_may_takes_it() -> None:
    fleet = model(NGRAM, PLAIN, pool("spare", drafts=False), default="ngram")
    decision = decided(request(logit_bias={"1": 1}), fleet=fleet)
    assert (decision.pool, decision.reason) == ("plain", Reason.GATE)


def test_with_every_pool_gated_the_caller_is_told_why() -> None:
    with pytest.raises(NoCompatiblePool, match="no pool of model m can serve this request") as told:
        decided(request(min_p=0.1), fleet=model(NGRAM, EAGLE3, default="ngram"))
    assert told.value.status == 400
    assert told.value.code == "no_compatible_pool"
    assert "ngram: min_p cannot be used" in told.value.message


# ---- pools that are down -------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["pool", "prefer"])
def test_a_wanted_pool_that_is_down_spills_to_the_default(action: str) -> None:
    fleet = model(pool("ngram", drafts=True, up=DOWN), EAGLE3, PLAIN)
    decision = decided(request(), always(**{action: "ngram"}), fleet=fleet)
    assert (decision.pool, decision.reason, decision.rule) == ("plain", Reason.SPILL, "always")
    assert decision.pools[0].refused == "all its workers are down"


def test_a_default_pool_that_is_down_spills_to_the_first_that_is_up() -> None:
    fleet = model(NGRAM, EAGLE3, pool("plain", drafts=False, up=DOWN))
    decision = decided(request(), fleet=fleet)
    assert (decision.pool, decision.reason) == ("ngram", Reason.SPILL)


def test_nothing_spills_to_a_pool_that_may_not_take_it() -> None:
    fleet = model(NGRAM, EAGLE3, pool("plain", drafts=False, up=DOWN))
    decision = decided(request(min_p=0.1), fleet=fleet)
    assert (decision.pool, decision.reason) == ("plain", Reason.LAST_RESORT)


def test_nothing_spills_to_a_forbidden_pool() -> None:
    fleet = model(NGRAM, pool("eagle3", drafts=True, up=DOWN), pool("plain", drafts=False, up=DOWN))
    decision = decided(request(), always(forbid=("ngram",)), fleet=fleet)
    assert (decision.pool, decision.reason) == ("plain", Reason.LAST_RESORT)
    assert decision.pools[0].refused == "forbidden by rule always"


def test_a_pool_with_one_worker_up_is_up() -> None:
    fleet = model(pool("plain", drafts=False, up=(False, True)))
    assert decided(request(), fleet=fleet).worker == "http://plain-1"


# ---- rules and callers ---------------------------------------------------------------------------


def test_a_forbidden_default_leaves_the_others() -> None:
    decision = decided(request(), always(forbid=("plain",)))
    assert (decision.pool, decision.reason, decision.rule) == ("ngram", Reason.GATE, "always")


def test_all_but_one_forbidden_is_that_one() -> None:
    decision = decided(request(), always(forbid=("plain", "eagle3")))
    assert (decision.pool, decision.reason) == ("ngram", Reason.ONLY)


def test_a_rule_for_another_models_pool_is_passed_over() -> None:
    decision = decided(request(), always(pool="elsewhere"), EDITS)
    assert (decision.pool, decision.rule) == ("plain", None)


def test_a_clients_label_replaces_the_class_but_not_the_copy_ratio() -> None:
    guessed = decided(request(), EDITS)
    labelled = decided(request(), EDITS, workload=Workload.EDIT)
    assert (labelled.classification.workload, labelled.pool) == (Workload.EDIT, "ngram")
    assert labelled.classification.label_confidence == 1.0
    assert labelled.classification.copy_ratio == guessed.classification.copy_ratio
    assert labelled.classification.reasons == ("client-label", *guessed.classification.reasons)


def test_a_rule_may_ask_for_an_expected_copy_ratio() -> None:
    copies = Rule(
        name="copies",
        when=(Condition(field="copy_ratio", any_of=(Comparison.parse(">=0.6"),)),),
        then=Action(pool="ngram"),
    )
    assert decided(request(EDIT), copies).pool == "ngram"
    assert decided(request(), copies).pool == "plain"
    assert decided(request(), copies, workload=Workload.EDIT).pool == "plain"


def test_a_conversation_keeps_its_share_and_its_pool() -> None:
    split = always(weight={"ngram": 1, "plain": 3})
    pools = [decided(request(), split, conversation=f"{index}").pool for index in range(1000)]
    again = [decided(request(EDIT), split, conversation=f"{index}").pool for index in range(1000)]
    assert pools == again
    assert abs(Counter(pools)["ngram"] / 1000 - 0.25) < 0.05


def test_a_share_that_is_down_spills() -> None:
    fleet = model(pool("ngram", drafts=True, up=DOWN), PLAIN)
    decision = decided(request(), always(weight={"ngram": 1}), fleet=fleet)
    assert (decision.pool, decision.reason) == ("plain", Reason.SPILL)


def test_of_equal_workers_the_one_picked_longest_ago_is_next() -> None:
    workers = (WorkerSnapshot(url="a", last_picked=7), WorkerSnapshot(url="b", last_picked=3))
    fleet = model(PoolSnapshot(name="plain", speculation=None, workers=workers))
    assert decided(request(), fleet=fleet).worker == "b"


# ---- laws ----------------------------------------------------------------------------------------

names = ("a", "b", "c")
fleets = st.builds(
    lambda pools, default: model(*pools, default=names[default % len(pools)]),
    st.integers(1, 3).flatmap(
        lambda count: st.tuples(
            *(
                st.builds(
                    lambda drafts, up, name=name: pool(name, drafts=drafts, up=tuple(up)),
                    st.booleans(),
                    st.lists(st.booleans(), min_size=1, max_size=3),
                )
                for name in names[:count]
            )
        )
    ),
    st.integers(0, 2),
)
pool_names = st.sampled_from([*names, "elsewhere"])
actions = st.one_of(
    st.builds(lambda name: Action(pool=name), pool_names),
    st.builds(lambda name: Action(prefer=name), pool_names),
    st.builds(lambda some: Action(forbid=tuple(some)), st.sets(pool_names, min_size=1)),
    st.builds(
        lambda shares: Action(weight=shares),
        st.dictionaries(pool_names, st.floats(0.1, 9), min_size=1),
    ),
)
conditions = st.sampled_from(
    [
        (),
        (Condition(field="workload", any_of=("edit",)),),
        (Condition(field="stream", any_of=(True,)),),
    ]
)
rules = st.lists(
    st.builds(lambda when, then: Rule(name="r", when=when, then=then), conditions, actions),
    max_size=4,
)
features = st.sampled_from([request(), request(EDIT), request(min_p=0.1), request(None)])


@given(features=features, rules=rules, fleet=fleets, talk=st.text())
def test_every_decision_is_sound(
    features: RequestFeatures, rules: list[Rule], fleet: ModelSnapshot, talk: str
) -> None:
    gated = {each.name for each in fleet.pools if each.speculation and features.view.min_p}
    if len(gated) == len(fleet.pools):
        with pytest.raises(NoCompatiblePool):
            decided(features, *rules, fleet=fleet)
        return
    decision = decided(features, *rules, fleet=fleet, conversation=talk)
    asked = zip(rules, decision.rules, strict=False)
    won = next((rule for rule, verdict in asked if verdict.why_not is None), None)
    forbidden = set(won.then.forbid) if won else set()
    eligible = [each for each in fleet.pools if each.name not in gated | forbidden]
    chosen = fleet.pool(decision.pool)
    worker = next(each for each in chosen.workers if each.url == decision.worker)

    assert chosen in eligible
    assert worker.up == chosen.is_up == any(each.is_up for each in eligible)
    assert (decision.reason is Reason.LAST_RESORT) == (not worker.up)
    assert (decision.rule is None) == (won is None)
    assert [verdict.pool for verdict in decision.pools] == [each.name for each in fleet.pools]
    open_to_it = {verdict.pool for verdict in decision.pools if verdict.refused is None}
    assert open_to_it == {each.name for each in eligible if each.is_up}
    assert decision == decided(features, *rules, fleet=fleet, conversation=talk)


# --- by cost --------------------------------------------------------------------------------------

KNOWN = {"ngram": NGRAM.speculation, "eagle3": EAGLE3.speculation, "plain": None}


def adaptive(**more: Any) -> Adaptive:
    return Adaptive(expectations=Beliefs(pools=KNOWN), **more)


def by_cost(prompt: str, *rules: Rule, fleet: ModelSnapshot = FLEET, **body: Any) -> Decision:
    said = {"model": "m", "messages": [{"role": "user", "content": prompt}], **body}
    features = measure(view_of(Endpoint.CHAT_COMPLETIONS, said))
    return decide(features, Caller(), fleet, rules, adaptive())


def test_an_edit_goes_where_copying_drafts_well_and_says_so():
    decision = by_cost(EDIT)
    assert (decision.pool, decision.reason, decision.k) == ("ngram", Reason.COST, 4)


def test_a_pin_is_kept_whatever_it_costs_and_a_preference_is_weighed():
    pin = Rule(name="pin", when=(), then=Action(pool="plain"))
    decision = by_cost(EDIT, pin)
    assert (decision.pool, decision.reason, decision.rule) == ("plain", Reason.RULE, "pin")
    wish = Rule(name="wish", when=(), then=Action(prefer="plain"))
    assert by_cost(EDIT, wish).pool == "ngram"


def test_a_forbidden_pool_is_not_weighed():
    decision = by_cost(EDIT, Rule(name="no", when=(), then=Action(forbid=("ngram",))))
    assert decision.choice is not None
    assert {terms.pool for terms in decision.choice.weighed} == {"eagle3", "plain"}


def test_gates_come_before_costs():
    assert by_cost(EDIT, min_p=0.1, temperature=1.0).pool == "plain"


def test_a_pin_whose_workers_are_down_spills_to_the_cheapest():
    fleet = model(pool("ngram", drafts=True, up=DOWN), EAGLE3, PLAIN)
    pin = Rule(name="pin", when=(), then=Action(pool="ngram"))
    decision = by_cost(EDIT, pin, fleet=fleet)
    assert (decision.pool, decision.reason) == ("eagle3", Reason.SPILL)


def test_with_nobody_up_the_rules_and_the_default_are_all_there_is():
    fleet = model(*(pool(name, drafts=True, up=DOWN) for name in ("ngram", "eagle3", "plain")))
    decision = by_cost(EDIT, fleet=fleet)
    assert (decision.pool, decision.reason, decision.choice) == ("plain", Reason.LAST_RESORT, None)


def test_what_generates_nothing_is_not_a_matter_of_costs():
    view = view_of(Endpoint.EMBEDDINGS, {"model": "m", "input": "a"})
    decision = decide(measure(view), Caller(), FLEET, (), adaptive())
    assert (decision.pool, decision.reason, decision.k) == ("plain", Reason.DEFAULT, None)
