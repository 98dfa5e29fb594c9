"""What is wrong with a configuration file, collected so that one run says everything.

A problem belongs to a path into the document, such as `("models", 0, "name")`, and is printed as

    gateway.yaml:14: models[0].pools[1].workrs: unknown key; did you mean "workers"?

One problem is kept per path, the first: what is found later at the same place is its consequence.
Secrets are never printed, nor is text that came from an environment variable.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import ConfigurationError

Path = tuple[str | int, ...]

WRITE_NULL = "write null for a pool that does not speculate"

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_SHOWN_CHARS = 60
_LISTED = 12


@dataclass(slots=True)
class Problems:
    """The problems of one file; `lines` says where each path stands, `variables` which values came
    from the environment, and from which variable."""

    file: str
    lines: dict[Path, int] = field(default_factory=dict)
    variables: dict[Path, str] = field(default_factory=dict)
    _found: dict[Path, tuple[int, str]] = field(default_factory=dict)

    def add(self, path: Path, message: str, *, line: int | None = None) -> None:
        self._found.setdefault(path, (line or self.line(path), message))

    def line(self, path: Path) -> int:
        """The line of `path`, or of the nearest thing around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def has(self, path: Path) -> bool:
        return path in self._found

    def has_within(self, path: Path) -> bool:
        """Whether there is a problem at `path` or anywhere below it."""
        return any(found[: len(path)] == path for found in self._found)

    def show(self, path: Path, value: Any) -> str:
        """`value` as a message may print it: short, on one line, and never a secret."""
        if path in self.variables:
            return f"the text that ${{{self.variables[path]}}} holds"
        if isinstance(value, dict | list):
            return "a mapping" if isinstance(value, dict) else "a list"
        if _is_secret(path) or (isinstance(value, str) and "@" in value and "://" in value):
            return "the value given"
        return quoted(value)

    def in_file_order(self) -> tuple[str, ...]:
        place = {path: index for index, path in enumerate(self.lines)}
        ordered = sorted(
            self._found.items(), key=lambda item: (item[1][0], place.get(item[0], len(place)))
        )
        return tuple(self._text(path, line, message) for path, (line, message) in ordered)

    def raise_if_any(self) -> None:
        """Raises ConfigurationError with every problem found so far."""
        if self._found:
            raise self.error()

    def error(self) -> ConfigurationError:
        found = self.in_file_order()
        return ConfigurationError("\n".join(found), problems=found)

    def _text(self, path: Path, line: int, message: str) -> str:
        where = f"{dotted(path)}: " if path else ""
        return f"{self.file}:{line}: {where}{message}"


def dotted(path: Path) -> str:
    """A path as it is written in messages: `models[0].pools[1].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _BARE_KEY.match(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]"
    return text


def quoted(value: Any) -> str:
    """A scalar as JSON writes it; what a terminal would act on or hide is escaped."""
    text = json.dumps(value, ensure_ascii=not (isinstance(value, str) and value.isprintable()))
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def did_you_mean(value: object, choices: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest right one, else all, if few."""
    listed = list(choices)
    near = nearest(value, listed)
    if near is not None:
        return f'; did you mean "{near}"?'
    return f"; known: {', '.join(listed)}" if 0 < len(listed) <= _LISTED else ""


def nearest(value: object, choices: Iterable[str]) -> str | None:
    by_lower = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(str(value)[:100].lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def _is_secret(path: Path) -> bool:
    """Also what stands where keys belong, and is none by its shape: `keys: [sk-…]`."""
    if path and path[0] in ("auth", "admin"):
        return path[-1] not in ("name", "debug", "open", "host", "port", "writable")
    return "workers" in path and path[-1] == "key"
