"""The language of a rule's `when` → the core's `Condition`s, all of which must hold.

    workload: edit                      is that
    workload: [edit, code]              is one of these
    workload: {not: chat}               is not that (nor any of a list)
    not: {workload: chat, stream: true} none of these holds
    copy_ratio: ">=0.6"                 a comparison, in quotes: >= <= > <
    max_tokens: 256                     of whole numbers also == (as a plain number is) and !=
    header: {x-tier: batch}             that header has that value (a list: one of them)
    header: {x-tier: true}              that header is there; false: it is not
    response_format: true               some format is asked for (false: none); or its name
    tools: true   stream: false         yes or no

`model` means the model by any of its names, unless it is an alias that is written: then that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, cast

from paceline.core.rules import FIELDS, Comparison, Condition
from paceline.core.types import Endpoint, Priority, Workload
from paceline.settings.fields import is_header_name
from paceline.settings.names import Names
from paceline.settings.problems import Path, Problems, did_you_mean

Wanted = str | bool | int | float | Comparison
RESPONSE_FORMATS = ("json_schema", "json_object", "grammar")


def conditions(
    when: Mapping[str, Any], path: Path, names: Names, problems: Problems
) -> tuple[Condition, ...]:
    """The conditions of one `when`; what is wrong goes to `problems` and is left out."""
    return tuple(_Reader(names, problems).block(when, path, negate=False))


class _Wrong(Exception):
    """What is wrong with one value; `shown` says whether the value helps to see it."""


@dataclass(frozen=True, slots=True)
class _Reader:
    names: Names
    problems: Problems

    def block(self, when: Mapping[str, Any], path: Path, *, negate: bool) -> Iterator[Condition]:
        for field, value in when.items():
            at = (*path, field)
            if field == "not":
                yield from self._not(value, at, negate)
            elif field == "header":
                yield from self._headers(value, at, negate)
            elif field in FIELDS:
                yield from self._condition(
                    Condition(field=field, any_of=(), negate=negate), value, at
                )
            else:
                self.problems.add(at, f"unknown field{did_you_mean(field, (*FIELDS, 'not'))}")

    def _not(self, value: Any, path: Path, negate: bool) -> Iterator[Condition]:
        if isinstance(value, dict) and value and not negate:
            yield from self.block(value, path, negate=True)
        else:
            self.problems.add(
                path, "must be a mapping of fields, of which none may hold; only once"
            )

    def _headers(self, value: Any, path: Path, negate: bool) -> Iterator[Condition]:
        if not isinstance(value, dict) or not value:
            self.problems.add(path, "must be a mapping such as {x-tier: batch}")
            return
        for name, wanted in value.items():
            at = (*path, name)
            if name == "not":
                yield from self._headers(wanted, at, not negate)
            elif is_header_name(name):
                header = Condition(field="header", header=name.lower(), any_of=(), negate=negate)
                yield from self._condition(header, wanted, at)
            else:
                self.problems.add(at, "is not a header's name")

    def _condition(self, blank: Condition, value: Any, path: Path) -> Iterator[Condition]:
        """`blank` with its `any_of` read from `value`, and turned round by `{not: …}` or false."""
        negate = blank.negate
        if isinstance(value, dict):
            if list(value) != ["not"]:
                self.problems.add(path, "must be a value, a list of values, or {not: …}")
                return
            value, path, negate = value["not"], (*path, "not"), not negate
        if blank.header is not None and value is False:
            value, negate = True, not negate
        wanted = tuple(self._wanted(blank, value, path))
        if wanted:
            yield _with(blank, wanted, negate)

    def _wanted(self, blank: Condition, value: Any, path: Path) -> Iterator[Wanted]:
        if not isinstance(value, list):
            yield from self._one(blank, value, path)
            return
        if not value:
            self.problems.add(path, "must name at least one value")
        for index, item in enumerate(value):
            if blank.header is not None and isinstance(item, bool):
                self.problems.add((*path, index), "true and false stand alone, not in a list")
            else:
                yield from self._one(blank, item, (*path, index))

    def _one(self, blank: Condition, value: Any, path: Path) -> Iterable[Wanted]:
        try:
            if blank.header is not None:
                return (_header_value(value),)
            if blank.field == "model":
                return self.names.answering_to(_choice("model", self.names.models)(value))
            if blank.field == "key":
                return (_choice("key", self.names.keys)(value),)
            return (_READERS[blank.field](value),)
        except _Wrong as error:
            self.problems.add(path, str(error).replace("{}", self.problems.show(path, value)))
            return ()


def _with(blank: Condition, wanted: tuple[Wanted, ...], negate: bool) -> Condition:
    return Condition(field=blank.field, header=blank.header, any_of=wanted, negate=negate)


def _choice(what: str, choices: Iterable[str]) -> Callable[[Any], str]:
    known = [str(choice) for choice in choices]

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise _Wrong(f"unknown {what} {{}}{did_you_mean(value, known)}")
        return value

    return read


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("must be true or false, not {}")
    return value


def _response_format(value: Any) -> Wanted:
    if isinstance(value, bool):
        return value
    return _choice("response_format", RESPONSE_FORMATS)(value)


def _header_value(value: Any) -> Wanted:
    if value is True or (isinstance(value, str) and value):
        return value
    raise _Wrong("must be the header's text in quotes, true (it is there) or false, not {}")


@dataclass(frozen=True, slots=True)
class _Number:
    """A number from 0 to `high`. Only a whole one is ever met exactly; a ratio is measured, and
    next to never the very number that was written."""

    high: float
    whole: bool

    def __call__(self, value: Any) -> Wanted:
        wanted = _comparison(value) if isinstance(value, str) else value
        number = wanted.value if isinstance(wanted, Comparison) else wanted
        if isinstance(number, bool) or not isinstance(number, int | float):
            what = "a whole number or a comparison" if self.whole else "a comparison"
            raise _Wrong(f'must be {what} such as "{self._example}", not {{}}')
        if not 0 <= number <= self.high or number == inf:
            upto = f" and at most {self.high:g}" if self.high < inf else ""
            raise _Wrong(f"must compare with at least 0{upto}, not {{}}")
        if _is_exact(wanted) and not (self.whole and number % 1 == 0):
            raise _Wrong(f'{{}} would have to be met exactly; write for example "{self._example}"')
        return cast(Wanted, wanted)

    @property
    def _example(self) -> str:
        return ">=1000" if self.whole else ">=0.5"


def _is_exact(wanted: Any) -> bool:
    return not isinstance(wanted, Comparison) or wanted.sign in ("==", "!=")


def _comparison(text: str) -> Comparison | None:
    try:
        return Comparison.parse(text)
    except ValueError:
        return None


_READERS: Mapping[str, Callable[[Any], Wanted]] = {
    "endpoint": _choice("endpoint", Endpoint),
    "workload": _choice("workload", Workload),
    "priority": _choice("priority", Priority),
    "response_format": _response_format,
    "tools": _yes_or_no,
    "stream": _yes_or_no,
    "copy_ratio": _Number(high=1, whole=False),
    "label_confidence": _Number(high=1, whole=False),
    "prompt_chars": _Number(high=inf, whole=True),
    "max_tokens": _Number(high=inf, whole=True),
}
