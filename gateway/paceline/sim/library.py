"""The passages that the simulated model writes from, and the choice of the one a prompt asks for.

`passages/chat/*.md` are prose, `passages/code/*.md` programs with tests; all were written for this
project. A file starts with `name: value` lines (`keywords`, comma-separated; `language` of code;
`whole: yes` for a story, of which no paragraph can be left out), then come sections `## open`,
`## body`, `## tests`, `## close`. The paragraphs of `open` and `close` are alternatives.

The files are read once; after that everything here is a plain function.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from paceline.core.types import Workload

MAX_MATCHED_CHARS = 4000  # of a prompt that are searched for keywords
_LANGUAGE_BONUS = 2
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # Linked|List, LRU|Cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One topic. `body` is whole; `paragraphs` are its parts, for prose."""

    name: str
    keywords: tuple[str, ...]
    language: str
    whole: bool
    opens: tuple[str, ...]
    body: str
    tests: str
    closes: tuple[str, ...]

    @property
    def paragraphs(self) -> tuple[str, ...]:
        return _paragraphs(self.body)


@cache
def passages(workload: Workload) -> tuple[Passage, ...]:
    """All passages for chat or code, by name."""
    folder = resources.files("paceline.sim") / "passages" / workload.value
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return tuple(_parse(file.name[:-3], file.read_text(encoding="utf-8")) for file in files)


def best_match(
    workload: Workload, text: str, rng: random.Random, *, without: frozenset[str] = frozenset()
) -> tuple[Passage, bool]:
    """The passage whose keywords the text holds most of, and whether it held any at all.

    Ties, and texts that match nothing, are decided by `rng`. `without` names passages to leave out
    while there are others.
    """
    choices = [p for p in passages(workload) if p.name not in without] or passages(workload)
    text = text[:MAX_MATCHED_CHARS]
    text = f"{text} {_CAMEL.sub(' ', text)}"
    scores = [_score(passage, text) for passage in choices]
    if max(scores) <= 0:
        return rng.choice(_in_a_likely_language(choices, text)), False
    pairs = zip(scores, choices, strict=True)
    return rng.choice([passage for score, passage in pairs if score == max(scores)]), True


def _score(passage: Passage, text: str) -> int:
    """Two for every word of every keyword found, and a bonus or malus for the language."""
    found = sum(2 * len(k.split()) for k in passage.keywords if _pattern(k).search(text))
    asked = _languages_in(text)
    if not found or not asked or not passage.language:
        return found
    return found + (_LANGUAGE_BONUS if passage.language in asked else -_LANGUAGE_BONUS)


def _in_a_likely_language(choices: Sequence[Passage], text: str) -> Sequence[Passage]:
    """Those in a language that the text names, else those in Python, else (prose) all."""
    wanted = _languages_in(text) or {"python"}
    return [p for p in choices if p.language in wanted] or choices


def _languages_in(text: str) -> set[str]:
    return {name for name in _languages() if _pattern(name).search(text)}


@cache
def _pattern(keyword: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(keyword)}s?\b", re.IGNORECASE)


@cache
def _languages() -> frozenset[str]:
    return frozenset(passage.language for passage in passages(Workload.CODE))


def _parse(name: str, text: str) -> Passage:
    head, *rest = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines())
    sections = {key: body.strip() for key, body in zip(rest[::2], rest[1::2], strict=True)}
    return Passage(
        name=name,
        keywords=tuple(keyword.strip() for keyword in fields["keywords"].split(",")),
        language=fields.get("language", ""),
        whole=fields.get("whole") == "yes",
        opens=_alternatives(sections, "open"),
        body=sections["body"],
        tests=sections.get("tests", ""),
        closes=_alternatives(sections, "close"),
    )


def _alternatives(sections: Mapping[str, str], key: str) -> tuple[str, ...]:
    return _paragraphs(sections[key])


def _paragraphs(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("\n\n"))
