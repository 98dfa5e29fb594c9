"""The operator's rules: first match wins, gates beat pins, and every rule can say why not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.classify import classify
from paceline.core.features import measure
from paceline.core.rules import (
    FIELDS,
    Action,
    Comparison,
    Condition,
    Rule,
    RuleOutcome,
    apply_rules,
    facts,
)
from paceline.core.types import Caller, Endpoint, Priority
from paceline.core.views import view_of

POOLS = frozenset({"ngram", "eagle3", "plain"})
KNOWN: dict[str, Any] = {
    "model": "m",
    "endpoint": "chat_completions",
    "workload": "edit",
    "copy_ratio": 0.7,
    "label_confidence": 0.9,
    "key": "team-a",
    "tools": False,
    "response_format": None,
    "prompt_chars": 1200,
    "max_tokens": None,
    "stream": True,
    "priority": "interactive",
}


def rule(name: str, *when: Condition, **then: Any) -> Rule:
    return Rule(name=name, when=when, then=Action(**then))


def is_(field: str, *any_of: Any, negate: bool = False) -> Condition:
    return Condition(field=field, any_of=any_of, negate=negate)


def header(name: str, *any_of: Any, negate: bool = False) -> Condition:
    return Condition(field="header", header=name, any_of=any_of, negate=negate)


def compare(text: str) -> Comparison:
    return Comparison.parse(text)


def outcome(*rules: Rule, allowed: frozenset[str] = POOLS, **caller: Any) -> RuleOutcome:
    return apply_rules(rules, KNOWN, Caller(**caller), allowed)


def matches(*when: Condition, known: dict[str, Any] = KNOWN, **caller: Any) -> bool:
    tried = apply_rules([rule("r", *when, pool="plain")], known, Caller(**caller), POOLS)
    return tried.rule == "r"


# ---- conditions ----------------------------------------------------------------------------------


def test_a_rule_without_conditions_matches_everything() -> None:
    assert matches()


def test_all_conditions_must_hold() -> None:
    assert matches(is_("workload", "edit"), is_("stream", True))
    assert not matches(is_("workload", "edit"), is_("stream", False))


def test_of_a_list_any_value_will_do() -> None:
    assert matches(is_("workload", "code", "edit"))
    assert not matches(is_("workload", "code", "chat"))


def test_negation_turns_a_condition_round() -> None:
    assert matches(is_("workload", "code", "chat", negate=True))
    assert not matches(is_("workload", "edit", "chat", negate=True))


@given(
    condition=st.sampled_from(
        [
            is_("workload", "edit"),
            is_("workload", "code"),
            is_("max_tokens", compare("<10")),
            is_("copy_ratio", compare(">=0.6")),
            is_("response_format", True),
            header("x-a", "b"),
        ]
    ),
    headers=st.sampled_from([{}, {"x-a": "b"}, {"x-a": "c"}]),
)
def test_a_condition_and_its_negation_never_agree(condition: Condition, headers: dict) -> None:
    opposite = Condition(
        field=condition.field, any_of=condition.any_of, header=condition.header, negate=True
    )
    assert matches(condition, headers=headers) != matches(opposite, headers=headers)


@pytest.mark.parametrize(
    ("text", "number", "holds"),
    [
        (">=0.6", 0.6, True),
        (">=0.6", 0.59, False),
        ("<8000", 8000, False),
        ("< 8000", 7999, True),
        ("<=3", 3, True),
        (">3", 3, False),
        (" == 2 ", 2.0, True),
        ("!=2", 2, False),
        (">-1", 0, True),
        (">=0", None, False),
        ("!=2", None, False),
    ],
)
def test_comparison(text: str, number: float | None, holds: bool) -> None:
    assert compare(text).test()(number) is holds


@pytest.mark.parametrize(
    "text", ["", "0.6", "=0.6", "=>1", ">= 0.6x", "> 1 2", ">=.5", ">1e3", "~1"]
)
def test_what_is_no_comparison_says_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a comparison; write for example"):
        compare(text)


@given(sign=st.sampled_from([">=", "<=", ">", "<", "==", "!="]), value=st.integers(-999, 999))
def test_a_comparison_reads_back_as_it_is_written(sign: str, value: int) -> None:
    assert compare(str(compare(f"{sign}{value}"))) == Comparison(sign=sign, value=value)


def test_headers_are_compared_by_value_or_by_presence() -> None:
    assert matches(header("x-tier", "batch"), headers={"x-tier": "batch"})
    assert not matches(header("x-tier", "batch"), headers={"x-tier": "interactive"})
    assert not matches(header("x-tier", "batch"))
    assert matches(header("x-tier", True), headers={"x-tier": ""})
    assert not matches(header("x-tier", True))
    assert matches(header("x-tier", True, negate=True))


def test_response_format_may_be_asked_about_by_yes_and_no() -> None:
    json_schema = {**KNOWN, "response_format": "json_schema"}
    assert matches(is_("response_format", False))
    assert not matches(is_("response_format", True))
    assert matches(is_("response_format", True), known=json_schema)
    assert matches(is_("response_format", "json_schema"), known=json_schema)
    assert not matches(is_("response_format", False), known=json_schema)


def test_what_is_absent_equals_nothing() -> None:
    assert not matches(is_("max_tokens", 0))
    assert not matches(is_("max_tokens", compare(">=0")))
    assert matches(is_("max_tokens", compare(">=0"), negate=True))


# ---- facts ---------------------------------------------------------------------------------------


def facts_of(body: dict, **caller: Any) -> dict[str, Any]:
    features = measure(view_of(Endpoint.CHAT_COMPLETIONS, {"model": "m", **body}))
    return facts(features, classify(features), Caller(**caller))


def test_facts_answer_every_field_that_rules_may_name() -> None:
    known = facts_of({"messages": [{"role": "user", "content": "hi"}]})
    assert set(known) == set(FIELDS) - {"header"}


def test_facts_say_what_the_request_says() -> None:
    known = facts_of(
        {
            "messages": [{"role": "user", "content": "hello"}],
            "tools": [{}],
            "max_tokens": 7,
            "stream": True,
            "response_format": {"type": "json_object"},
        },
        key_name="team-a",
        priority=Priority.BATCH,
    )
    expected = {"tools": True, "max_tokens": 7, "stream": True, "response_format": "json_object"}
    expected |= {"key": "team-a", "priority": "batch", "prompt_chars": 5}
    assert known.items() >= expected.items()


def test_without_text_no_rule_about_the_workload_matches() -> None:
    """An image alone goes to the default pool."""
    image = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}
    known = facts_of(image)
    assert known["workload"] is None
    for workload in ("code", "chat", "edit"):
        assert not matches(is_("workload", workload), known=known)
    assert not matches(is_("copy_ratio", compare(">=0")), known=known)


# ---- which rule wins -----------------------------------------------------------------------------


def test_the_first_rule_that_matches_wins() -> None:
    won = outcome(
        rule("no", is_("workload", "chat"), pool="eagle3"),
        rule("first", is_("workload", "edit"), pool="ngram"),
        rule("second", pool="plain"),
    )
    assert (won.rule, won.pool) == ("first", "ngram")
    assert [(verdict.rule, verdict.why_not) for verdict in won.verdicts] == [
        ("no", "workload is chat, but it is edit"),
        ("first", None),
    ]


def test_without_a_match_every_rule_says_why_not() -> None:
    tried = outcome(
        rule("a", is_("max_tokens", compare("<100")), pool="plain"),
        rule("b", header("x-tier", "batch", "night"), pool="plain"),
        rule("c", is_("stream", True, negate=True), pool="plain"),
    )
    assert (tried.rule, tried.pool, tried.forbidden) == (None, None, frozenset())
    assert [verdict.why_not for verdict in tried.verdicts] == [
        "max_tokens is <100, but it is absent",
        "header x-tier is batch or night, but it is absent",
        "stream is not true, but it is true",
    ]


@pytest.mark.parametrize("action", ["pool", "prefer"])
def test_gates_beat_pins_and_the_next_rule_is_tried(action: str) -> None:
    won = outcome(
        rule("pin", **{action: "ngram"}),
        rule("next", pool="plain"),
        allowed=frozenset({"plain"}),
    )
    assert (won.rule, won.pool) == ("next", "plain")
    assert won.verdicts[0].why_not == "pool ngram may not take this request"


def test_forbidden_pools_are_named() -> None:
    won = outcome(rule("r", forbid=("ngram", "elsewhere")))
    assert (won.rule, won.pool) == ("r", None)
    assert won.forbidden >= {"ngram"}


def test_a_rule_that_would_forbid_every_pool_is_passed_over() -> None:
    won = outcome(rule("all", forbid=("ngram", "plain")), allowed=frozenset({"ngram", "plain"}))
    assert won.rule is None
    assert won.verdicts[0].why_not == "it would forbid every pool that may take this request"


@pytest.mark.parametrize(
    "then",
    [
        {},
        {"pool": "a", "prefer": "b"},
        {"forbid": ("a",), "weight": {"b": 1}},
        {"weight": {"a": 0, "b": 0}},
        {"weight": {"a": -1}},
    ],
)
def test_an_action_does_exactly_one_thing(then: dict) -> None:
    with pytest.raises(ValueError, match=r"exactly one of|more than 0"):
        Action(**then)


# ---- shares --------------------------------------------------------------------------------------


def drawn(conversation: str, allowed: frozenset[str] = POOLS, **shares: float) -> str | None:
    return outcome(rule("r", weight=shares), allowed=allowed, conversation=conversation).pool


@given(conversation=st.text(st.characters()), share=st.floats(0.01, 100))
def test_a_conversation_stays_where_it_is(conversation: str, share: float) -> None:
    first = drawn(conversation, ngram=share, plain=1.0)
    assert first in ("ngram", "plain")
    assert all(drawn(conversation, ngram=share, plain=1.0) == first for _ in range(3))


def test_any_text_may_name_a_conversation() -> None:
    assert drawn("a lone surrogate: \ud800", ngram=1, plain=1) in ("ngram", "plain")


def test_requests_without_a_conversation_are_split_one_by_one() -> None:
    half = rule("r", weight={"ngram": 1, "plain": 1})
    seen = Counter(
        outcome(half, conversation="", request_id=f"request {index}").pool for index in range(4000)
    )
    assert abs(seen["ngram"] / 4000 - 0.5) < 0.03


@pytest.mark.parametrize("scale", [1, 0.01, 30])
def test_shares_converge_over_conversations(scale: float) -> None:
    shares = {"ngram": 6 * scale, "eagle3": 3 * scale, "plain": 1 * scale}
    seen = Counter(drawn(f"conversation {index}", **shares) for index in range(4000))
    assert abs(seen["ngram"] / 4000 - 0.6) < 0.03
    assert abs(seen["eagle3"] / 4000 - 0.3) < 0.03
    assert abs(seen["plain"] / 4000 - 0.1) < 0.03


def test_shares_of_pools_that_may_not_take_it_fall_to_the_others() -> None:
    shares = {"ngram": 2, "eagle3": 1, "plain": 1}
    allowed = frozenset({"eagle3", "plain"})
    seen = Counter(drawn(f"{index}", allowed=allowed, **shares) for index in range(2000))
    assert set(seen) == allowed
    assert abs(seen["plain"] / 2000 - 0.5) < 0.05


def test_a_share_of_nothing_gets_nothing() -> None:
    assert {drawn(f"{index}", ngram=0, plain=1) for index in range(200)} == {"plain"}


def test_shares_without_a_pool_that_may_take_it_are_passed_over() -> None:
    tried = outcome(rule("r", weight={"ngram": 1, "gone": 3}), allowed=frozenset({"plain"}))
    assert tried.rule is None
    assert tried.verdicts[0].why_not == "none of its pools may take this request"


def test_a_share_of_nothing_is_none_to_fall_back_on() -> None:
    tried = outcome(rule("r", weight={"ngram": 1, "plain": 0}), allowed=frozenset({"plain"}))
    assert (tried.rule, tried.pool) == (None, None)


def test_growing_a_share_only_moves_conversations_towards_it() -> None:
    for index in range(500):
        before = drawn(f"{index}", ngram=0.2, plain=0.8)
        after = drawn(f"{index}", ngram=0.3, plain=0.7)
        assert after in (before, "ngram")


def test_two_rules_split_the_same_conversations_apart_from_each_other() -> None:
    both = Counter(
        (
            outcome(rule("one", weight={"ngram": 1, "plain": 1}), conversation=f"{index}").pool,
            outcome(rule("two", weight={"ngram": 1, "plain": 1}), conversation=f"{index}").pool,
        )
        for index in range(2000)
    )
    assert len(both) == 4
    assert all(abs(count / 2000 - 0.25) < 0.04 for count in both.values())
