"""A decision in words and numbers, small enough for a response header, and whole for operators."""

from __future__ import annotations

from typing import Any

from paceline.core.types import Choice, Classification, Decision, Reason, Terms


def explain(decision: Decision) -> dict[str, Any]:
    """The decision as plain JSON values; keys in the order in which the decision was made.

    `pools` and `rules` say, for each that was not used, why not. Where costs were asked, `k`,
    `cost_s` by pool, `expected_tokens_per_s` and the runner-up follow.
    """
    return {
        **explain_classification(decision.classification),
        "model": decision.model,
        "pool": decision.pool,
        "worker": decision.worker,
        "reason": decision.reason.value,
        "rule": decision.rule,
        "pools": {verdict.pool: verdict.refused or "allowed" for verdict in decision.pools},
        "rules": {verdict.rule: verdict.why_not or "matched" for verdict in decision.rules},
        **(_choice_in_short(decision.choice) if decision.choice is not None else {}),
    }


def explain_whole(decision: Decision) -> dict[str, Any]:
    """As `explain`, with every term of every pool's cost and a sentence that says why."""
    return explain(decision) | {"why": why(decision)} | explain_choice(decision.choice)


def explain_choice(choice: Choice | None) -> dict[str, Any]:
    """`terms` of the best offer of each pool, and of the one taken where it was another."""
    if choice is None:
        return {}
    said = {terms.pool: explain_terms(terms) for terms in choice.weighed}
    if choice.chosen not in choice.weighed:
        said[choice.chosen.pool] = explain_terms(choice.chosen)
    return {"terms": said}


def explain_classification(classification: Classification) -> dict[str, Any]:
    """What a request was taken for. Only a client's own label is certain: none is rounded to 1."""
    confidence = classification.label_confidence
    return {
        "workload": classification.workload.value,
        "label_confidence": round(confidence if confidence == 1.0 else min(confidence, 0.999), 3),
        "copy_ratio": round(classification.copy_ratio.expected, 3),
        "because": list(classification.reasons),
    }


def explain_terms(terms: Terms) -> dict[str, Any]:
    """One pool's best offer: what its cost is made of, in seconds, and what that follows from."""
    # Written out, and each part worked out once: this is done for every pool of a logged request.
    wait_s, decode_s, others_s = terms.wait_s, terms.decode_s, terms.others_s
    cost_s = (wait_s + terms.prefill_s + decode_s + others_s) * terms.preference
    said: dict[str, Any] = {
        "worker": terms.worker,
        "k": terms.k,
        "cost_s": round(cost_s, 6),
        "wait_s": round(wait_s, 6),
        "prefill_s": round(terms.prefill_s, 6),
        "decode_s": round(decode_s, 6),
        "others_s": round(others_s, 6),
        "preference": terms.preference,
        "tokens_per_pass": round(terms.tokens_per_pass, 3),
        "pass_s": round(terms.pass_s, 6),
        "pass_before_s": round(terms.pass_before_s, 6),
        "running": round(terms.running, 1),
        "output_tokens": round(terms.output_tokens),
        "expected_tokens_per_s": round(terms.tokens_per_s, 1),
    }
    if terms.extrapolates:
        said["extrapolates"] = "no pass with so many tokens was seen so far"
    return said


def why(decision: Decision) -> str:
    """One sentence for an operator."""
    choice = decision.choice
    if choice is None or decision.reason in _WITHOUT_COSTS:
        return f"{decision.pool}: {_SENTENCES[decision.reason].format(rule=decision.rule)}"
    chosen, other = choice.chosen, choice.runner_up
    sentence = f"{chosen.pool} with k = {chosen.k}: {_SENTENCES[decision.reason]}"
    if other is None:
        return f"{sentence}; there is no other pool to compare with"
    compared = f"{chosen.cost_s:.3g} s against {other.cost_s:.3g} s at {other.pool}"
    said = (
        f"{sentence}; {compared} ({chosen.tokens_per_pass:.2f} and {other.tokens_per_pass:.2f} "
        f"tokens a pass, {chosen.running:.0f} and {other.running:.0f} running)"
    )
    for terms in choice.weighed:
        if terms.preference < 1.0 and terms.pool != chosen.pool:
            said += f", although rule {decision.rule} prefers {terms.pool}"
    return said


_SENTENCES = {
    Reason.RULE: "rule {rule} names or prefers it",
    Reason.DEFAULT: "no rule spoke, and it is the default",
    Reason.ONLY: "nothing else may take this request",
    Reason.GATE: "the default pool may not take this request",
    Reason.SPILL: "every worker of the pool wanted is down",
    Reason.LAST_RESORT: "no worker is up, and one is tried all the same",
    Reason.COST: "least expected cost",
    Reason.STAY: "its conversation is there, and nowhere else is enough cheaper",
    Reason.UNSURE: "the cheapest on average is not so in enough of the cases this request may be",
    Reason.EXPLORE: "tried to learn how it drafts, at little more than the least cost",
}
_WITHOUT_COSTS = frozenset(
    [Reason.RULE, Reason.DEFAULT, Reason.ONLY, Reason.GATE, Reason.SPILL, Reason.LAST_RESORT]
)


def how_sure(confidence: float) -> str:
    """In whole percents; 100 % is only what is certain."""
    return f"{confidence if confidence == 1.0 else min(confidence, 0.99):.0%}"


def _choice_in_short(choice: Choice) -> dict[str, Any]:
    other = choice.runner_up
    return {
        "k": choice.chosen.k,
        "cost_s": {terms.pool: round(terms.cost_s, 6) for terms in choice.weighed}
        | {choice.chosen.pool: round(choice.chosen.cost_s, 6)},
        "expected_tokens_per_s": round(choice.chosen.tokens_per_s, 1),
        "choice_confidence": None if choice.confidence is None else round(choice.confidence, 2),
        "runner_up": None if other is None else other.pool,
    }
