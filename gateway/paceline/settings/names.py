"""The names that a file gives, for whatever refers to them: read from the data as it is, so that a
fault elsewhere does not hide an unknown name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from paceline.settings.problems import Path

EACH: Final = None
"""In a pattern for `find`: every item of a list."""


def find(data: Any, *pattern: str | None, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The paths and values in `data` that fit `pattern`, such as `("models", EACH, "name")`."""
    if not pattern:
        yield path, data
        return
    step, *rest = pattern
    if step is EACH and isinstance(data, list):
        for index, item in enumerate(data):
            yield from find(item, *rest, path=(*path, index))
    elif isinstance(data, dict) and isinstance(step, str) and step in data:
        yield from find(data[step], *rest, path=(*path, step))


def texts(data: Any, *pattern: str | None, path: Path = ()) -> list[tuple[Path, str]]:
    found = find(data, *pattern, path=path)
    return [(path, value) for path, value in found if isinstance(value, str)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """`models`: each name and alias to its model's place in the file; `pools`: each model's."""

    models: Mapping[str, int]
    aliases: tuple[tuple[str, ...], ...]
    pools: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...]

    def answering_to(self, name: str) -> tuple[str, ...]:
        """What a request may call the model when a rule says `name`."""
        aliases = self.aliases[self.models[name]]
        return (name,) if name in aliases else (name, *aliases)

    def pools_of(self, model: str | None) -> tuple[str, ...]:
        """The pools of the model that a request for `model` gets; None is the first model."""
        index = 0 if model is None else self.models[model]
        return self.pools[index] if self.pools else ()

    def first_name(self, index: int) -> str:
        """The name of the model at that place in the file, or an alias if it has none."""
        return next(name for name, place in self.models.items() if place == index)

    @property
    def all_pools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for pools in self.pools for name in pools))


def names_in(data: Any) -> Names:
    models: dict[str, int] = {}
    listed = [value for _, value in find(data, "models", EACH)]
    aliases = tuple(_values(model, "aliases", EACH) for model in listed)
    for index, model in enumerate(listed):
        for name in (*_values(model, "name"), *aliases[index]):
            models.setdefault(name, index)
    return Names(
        models=models,
        aliases=aliases,
        pools=tuple(_values(model, "pools", EACH, "name") for model in listed),
        keys=_values(data, "auth", "keys", EACH, "name"),
    )


def _values(data: Any, *pattern: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for _, value in texts(data, *pattern)))
