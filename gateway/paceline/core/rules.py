"""The operator's rules, in order: the first that matches and can be carried out wins.

A rule that matches but asks for a pool that the gates refuse is passed over, and the next is tried.
Every rule can say why it did not win. `weight` splits conversations by a hash, so that a
conversation stays where it is for as long as the shares stay as they are; requests that belong to
none are split one by one.

What is left out: costs, which a preference changes and a pool that is named does without. In static
mode there are none, so `prefer` and `pool` come to the same.

`outcome_of` has a compiled twin, `native/rules.c` (`compiled.py` chooses); a change to what it goes
through is a change there.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from sys import intern
from typing import Any

from msgspec import Struct

from paceline.core.types import Caller, Classification, RequestFeatures, RuleVerdict

_COMPARISON = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*\Z")
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A test of a number, written as in the configuration: `">=0.6"`, `"<8000"`."""

    sign: str
    value: float

    @classmethod
    def parse(cls, text: str) -> Comparison:
        """Raises ValueError, saying what would be right."""
        found = _COMPARISON.match(text)
        if found is None:
            raise ValueError(f'"{text}" is not a comparison; write for example ">=0.6" or "<100"')
        return cls(sign=found[1], value=float(found[2]))

    def test(self) -> Callable[[float | None], bool]:
        """What tells whether it holds for a number."""
        compare, bound = _OPERATORS[self.sign], self.value
        return lambda number: number is not None and compare(number, bound)

    def __str__(self) -> str:
        return f"{self.sign}{self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One line of a rule's `when`: a field, and what it may be (any of `any_of`).

    `any_of` holds strings, booleans, numbers or `Comparison`s. For `field == "header"`, `header`
    is its lower-case name, and an `any_of` of `(True,)` means that it is there at all.
    `negate` turns the condition round.
    """

    field: str
    any_of: tuple[str | bool | int | float | Comparison, ...]
    header: str | None = None
    negate: bool = False
    matches: Callable[[Any], bool] = dataclass_field(init=False, repr=False, compare=False)
    """Whether a value is one of `any_of`; made once, since every request asks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", intern(self.field))  # so that the twin knows it at sight
        tests = [_test(wanted, self) for wanted in self.any_of]
        (matches,) = tests if len(tests) == 1 else [lambda value: any(t(value) for t in tests)]
        object.__setattr__(self, "matches", matches)

    def __str__(self) -> str:
        name = f"header {self.header}" if self.header else self.field
        wanted = " or ".join(map(_said, self.any_of))
        return f"{name} {'is not' if self.negate else 'is'} {wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A rule's `then`; exactly one member is set."""

    pool: str | None = None
    prefer: str | None = None
    forbid: tuple[str, ...] = ()
    weight: Mapping[str, float] = dataclass_field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [bool(self.pool), bool(self.prefer), bool(self.forbid), bool(self.weight)]
        if sum(given) != 1:
            raise ValueError("then needs exactly one of pool, prefer, forbid, weight")
        if self.weight and not sum(self.weight.values()) > 0:
            raise ValueError("weights must add up to more than 0")

    def __str__(self) -> str:
        if self.weight:
            return "weight " + ", ".join(f"{pool} {share:g}" for pool, share in self.weight.items())
        if self.forbid:
            return f"forbid {', '.join(self.forbid)}"
        return f"pool {self.pool}" if self.pool else f"prefer {self.prefer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    when: tuple[Condition, ...]
    then: Action

    def __str__(self) -> str:
        return f"{self.name}: {' and '.join(map(str, self.when)) or 'always'} → {self.then}"


class RuleOutcome(Struct, frozen=True, kw_only=True):
    """What the rules say: the pool that it must be, the one preferred, those that may not be used,
    and who said so."""

    rule: str | None = None
    pool: str | None = None
    preferred: str | None = None
    forbidden: frozenset[str] = frozenset()
    verdicts: tuple[RuleVerdict, ...] = ()


def outcome_of(
    rules: Sequence[Rule],
    features: RequestFeatures,
    classification: Classification,
    caller: Caller,
    allowed: frozenset[str],
) -> RuleOutcome:
    """What the rules say of a request, as `apply_rules`."""
    return apply_rules(rules, facts(features, classification, caller), caller, allowed)


def facts(
    features: RequestFeatures, classification: Classification, caller: Caller
) -> dict[str, Any]:
    """The values that conditions may name, by the names of the configuration.

    `model` is what the client asked for, an alias perhaps; the configuration's reader lets a
    model's own name stand for all of them.
    """
    view = features.view
    believed = classification.label_confidence > 0
    return {
        "model": view.model,
        "endpoint": view.endpoint,
        "workload": classification.workload if believed else None,
        "copy_ratio": classification.copy_ratio.expected if believed else None,
        "label_confidence": classification.label_confidence,
        "key": caller.key_name,
        "tools": view.num_tools > 0,
        "response_format": view.response_format,
        "prompt_chars": features.prompt_chars,
        "max_tokens": view.max_tokens,
        "stream": view.stream,
        "priority": caller.priority,
    }


FIELDS: tuple[str, ...] = (
    "model", "endpoint", "workload", "copy_ratio", "label_confidence", "header", "key", "tools",
    "response_format", "prompt_chars", "max_tokens", "stream", "priority",
)  # fmt: skip


def apply_rules(
    rules: Sequence[Rule],
    known: Mapping[str, Any],
    caller: Caller,
    allowed: frozenset[str],
) -> RuleOutcome:
    """What the first rule that matches and can be carried out says about the `allowed` pools.

    A rule written for one model may name pools that another does not have; for that other model it
    cannot be carried out, and the next is tried.
    """
    verdicts: list[RuleVerdict] = []
    for rule in rules:
        verdict = _mismatch(rule, known, caller)
        if verdict is None:
            verdict = RuleVerdict(rule=rule.name, obstacle=_obstacle(rule.then, allowed))
        verdicts.append(verdict)
        if verdict.obstacle is None:
            return RuleOutcome(
                rule=rule.name,
                pool=_chosen_pool(rule, caller, allowed),
                preferred=rule.then.prefer,
                forbidden=frozenset(rule.then.forbid),
                verdicts=tuple(verdicts),
            )
    return RuleOutcome(verdicts=tuple(verdicts))


class _Mismatch(RuleVerdict, frozen=True, kw_only=True):
    """A condition that did not hold, and what the request has in its place."""

    value: Any

    @property
    def why_not(self) -> str:
        return f"{self.obstacle}, but it is {_said(self.value)}"


def _mismatch(rule: Rule, known: Mapping[str, Any], caller: Caller) -> RuleVerdict | None:
    for condition in rule.when:
        if condition.header is None:
            value = known[condition.field]
        else:
            value = caller.headers.get(condition.header)
        if condition.matches(value) == condition.negate:
            return _Mismatch(rule=rule.name, obstacle=condition, value=value)
    return None


def _said(value: Any) -> str:
    """A value in an explanation, as the configuration would write it."""
    match value:
        case None:
            return "absent"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.3g}"
        case _:
            return str(value)


def _test(wanted: Any, condition: Condition) -> Callable[[Any], bool]:
    """Whether a value is the one that is `wanted`."""
    if isinstance(wanted, Comparison):
        return wanted.test()
    if wanted is True and (condition.header is not None or condition.field in _PRESENCE):
        return lambda value: value is not None
    if wanted is False and condition.field in _PRESENCE:
        return lambda value: value is None
    return lambda value: value is not None and bool(wanted == value)


_PRESENCE = frozenset({"response_format"})
"""Fields that may also be asked about by yes and no: is there one at all?"""


def _obstacle(then: Action, allowed: frozenset[str]) -> str | None:
    """Why a rule that matches cannot be carried out, or None."""
    target = then.pool or then.prefer
    if target is not None and target not in allowed:
        return f"pool {target} may not take this request"
    if then.weight and not _shares(then, allowed):
        return "none of its pools may take this request"
    if then.forbid and allowed <= frozenset(then.forbid):
        return "it would forbid every pool that may take this request"
    return None


def _chosen_pool(rule: Rule, caller: Caller, allowed: frozenset[str]) -> str | None:
    if rule.then.weight:
        return _draw(rule, caller, allowed)
    return rule.then.pool


def _shares(then: Action, allowed: frozenset[str]) -> list[tuple[str, float]]:
    return [(pool, share) for pool, share in then.weight.items() if pool in allowed and share > 0]


def _draw(rule: Rule, caller: Caller, allowed: frozenset[str]) -> str:
    """A pool by share, always the same one for one conversation and one rule."""
    shares = _shares(rule.then, allowed)
    which = caller.conversation or caller.request_id
    key = f"{rule.name}\0{which}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(key, digest_size=8).digest()
    point = int.from_bytes(digest, "big") / 2**64 * sum(share for _, share in shares)
    for pool, upto in _cumulative(shares):
        if point < upto:
            return pool
    return shares[-1][0]


def _cumulative(shares: Sequence[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    total = 0.0
    for pool, share in shares:
        total += share
        yield pool, total
