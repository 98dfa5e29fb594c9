"""A decision in words: valid JSON, small enough for a header, and with every reason in it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from paceline.core.classify import classify
from paceline.core.decide import decide
from paceline.core.explain import explain, explain_classification, how_sure
from paceline.core.features import measure
from paceline.core.rules import Action, Comparison, Condition, Rule
from paceline.core.types import (
    Caller,
    Classification,
    CopyRatio,
    Endpoint,
    ModelSnapshot,
    PoolSnapshot,
    Speculation,
    WorkerSnapshot,
    Workload,
)
from paceline.core.views import view_of

HEADER_BYTES = 2048
METHODS = ("ngram", "suffix", "eagle3", "mtp", "draft_model")


def pool(name: str, method: str | None) -> PoolSnapshot:
    drafts = Speculation(method=method, num_speculative_tokens=4) if method else None
    workers = tuple(WorkerSnapshot(url=f"http://{name}-{host}.internal:8000") for host in "ab")
    return PoolSnapshot(name=name, speculation=drafts, workers=workers)


MODEL = ModelSnapshot(
    name="meta-llama/Llama-3.1-8B-Instruct",
    default_pool="plain-h100",
    pools=(*(pool(f"{method}-h100", method) for method in METHODS), pool("plain-h100", None)),
)
RULES = tuple(
    Rule(
        name=f"team-{index}-goes-where-its-edits-draft-best",
        when=(
            Condition(field="header", header="x-team", any_of=(f"team-{index}",)),
            Condition(field="copy_ratio", any_of=(Comparison.parse(">=0.6"),)),
        ),
        then=Action(prefer="ngram-h100"),
    )
    for index in range(10)
)


def explained(text: str, *, min_p: float = 0.0, **caller: object) -> dict:
    body = {"model": MODEL.name, "messages": [{"role": "user", "content": text}], "min_p": min_p}
    features = measure(view_of(Endpoint.CHAT_COMPLETIONS, body))
    return explain(decide(features, Caller(**caller), MODEL, RULES))


def in_a_header(said: dict) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


def test_the_explanation_follows_the_decision() -> None:
    said = explained("Fix the typos:\n\nI has a apple", headers={"x-team": "team-3"})
    assert list(said) == [
        "workload", "label_confidence", "copy_ratio", "because",
        "model", "pool", "worker", "reason", "rule", "pools", "rules",
    ]  # fmt: skip
    assert said["pool"] in said["pools"]
    assert said["worker"].startswith("http://plain-h100-")
    assert said["rules"][RULES[3].name].startswith("copy_ratio is >=0.6, but it is 0.")
    assert said["rules"][RULES[4].name] == "header x-team is team-4, but it is team-3"


def test_every_pool_says_whether_it_might_have_been_used() -> None:
    said = explained("hi", min_p=0.1)
    why = "min_p cannot be used with speculative decoding"
    assert said["pools"] == {
        **{f"{method}-h100": why for method in METHODS},
        "plain-h100": "allowed",
    }
    assert said["reason"] == "only"


def test_the_rule_that_won_matched_and_no_later_one_was_asked() -> None:
    always = Rule(name="always", when=(), then=Action(pool="mtp-h100"))
    features = measure(view_of(Endpoint.CHAT_COMPLETIONS, {"model": "m"}))
    said = explain(decide(features, Caller(), MODEL, [RULES[0], always, RULES[1]]))
    assert (said["rule"], said["reason"], said["pool"]) == ("always", "rule", "mtp-h100")
    assert list(said["rules"]) == [RULES[0].name, "always"]
    assert said["rules"]["always"] == "matched"


def test_a_clients_label_is_given_as_the_first_reason() -> None:
    said = explained("hello", workload=Workload.EDIT)
    assert (said["workload"], said["label_confidence"]) == ("edit", 1.0)
    assert said["because"][0] == "client-label"


def test_only_what_is_certain_is_called_so() -> None:
    assert [how_sure(c) for c in (0.0, 0.97, 0.996, 0.9999, 1.0)] == [
        "0%", "97%", "99%", "99%", "100%",
    ]  # fmt: skip
    copies = CopyRatio(quantiles=(0.0,) * 5)
    nearly = Classification(workload=Workload.CODE, label_confidence=0.9999, copy_ratio=copies)
    assert explain_classification(nearly)["label_confidence"] == 0.999


visible = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)


@given(text=st.text(max_size=300), min_p=st.sampled_from([0.0, 0.1]), team=visible)
def test_an_explanation_fits_a_header(text: str, min_p: float, team: str) -> None:
    """Six pools, ten rules with long names, and a model with a long one."""
    said = explained(text, min_p=min_p, headers={"x-team": team})
    written = in_a_header(said)
    assert len(written) <= HEADER_BYTES
    assert json.loads(written) == said
    assert written.isascii()


def test_numbers_are_rounded_for_reading() -> None:
    said = explain_classification(
        classify(measure(view_of(Endpoint.COMPLETIONS, {"prompt": "def f(x):\n"})))
    )
    assert set(said) == {"workload", "label_confidence", "copy_ratio", "because"}
    assert said["label_confidence"] == round(said["label_confidence"], 3)
    assert said["copy_ratio"] == round(said["copy_ratio"], 3)
