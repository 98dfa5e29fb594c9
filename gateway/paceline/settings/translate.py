"""Data → the schema's sections; what the schema refuses → problems in our words."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from paceline.settings.fields import offered
from paceline.settings.problems import Path, Problems, did_you_mean, nearest
from paceline.settings.schema import FileSection
from paceline.settings.speculation import REMOVED_KEYS

_MUST = {
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "string_type": "must be text",
    "string_unicode": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "none_required": "must be null",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "must": "{text}",
}

_SUCH_AS = {
    "models": "{name: …, pools: […]}",
    "pools": '{name: plain, workers: [{url: "http://…"}]}',
    "workers": '{url: "http://…"}',
    "keys": '{name: team-a, key: "${TEAM_A_KEY}"}',
    "speculation": "{method: ngram, num_speculative_tokens: 5}",
    "rules": "{when: {workload: edit}, then: {prefer: …}}",
    "tests": "{request: {…}, expect: {pool: …}}",
}
"""What a mapping looks like, by the key that holds it or the list of such."""


def validate(data: Any, problems: Problems) -> FileSection | None:
    """The sections, or None with every fault of shape in `problems`."""
    try:
        return FileSection.model_validate(data)
    except ValidationError as error:
        _report(error.errors(include_url=False), problems)
        return None


def _report(errors: list[ErrorDetails], problems: Problems) -> None:
    """A key that is missing because it is misspelt is reported as misspelt, once."""
    misspelt = {_meant(error["loc"]) for error in errors if error["type"] == "extra_forbidden"}
    for error in errors:
        path = error["loc"]
        if error["type"] != "missing" or path not in misspelt:
            problems.add(path, _message(error, path, problems))


def _message(error: ErrorDetails, path: Path, problems: Problems) -> str:
    context: Mapping[str, Any] = error.get("ctx", {})
    kind = error["type"]
    if kind in _MUST:
        hint = "; put it in quotes" if _is_unquoted(error) else ""
        must = _MUST[kind].format(**context) + _such_as(kind, path)
        return f"{must}, not {problems.show(path, error['input'])}{hint}"
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "choice":
        shown = problems.show(path, error["input"])
        return (
            f"unknown {context['what']} {shown}{did_you_mean(error['input'], context['choices'])}"
        )
    return {
        "refused": str(context.get("text")),
        "missing": "required, but missing",
        "too_short": "must have at least one entry",
    }.get(kind, "is not valid")


def _such_as(kind: str, path: Path) -> str:
    holder = next((step for step in reversed(path) if isinstance(step, str)), "")
    example = _SUCH_AS.get(holder)
    if example is None or kind not in ("model_type", "list_type"):
        return ""
    return f" such as {f'[{example}]' if kind == 'list_type' else example}"


def _is_unquoted(error: ErrorDetails) -> bool:
    return error["type"] == "string_type" and isinstance(error["input"], int | float)


def _unknown_key(path: Path) -> str:
    removed = REMOVED_KEYS.get(str(path[-1])) if path[-2:-1] == ("speculation",) else None
    return removed or f"unknown key{did_you_mean(path[-1], _keys_beside(path))}"


def _meant(path: Path) -> Path:
    """The path of the key that an unknown key was probably meant to be."""
    near = nearest(path[-1], _keys_beside(path))
    return (*path[:-1], near) if near else ()


def _keys_beside(path: Path) -> tuple[str, ...]:
    """The keys that can be used where `path` ends."""
    section: type[BaseModel] = FileSection
    for step in path[:-1]:
        if isinstance(step, str):
            section = _section_in(section.model_fields[step].annotation) or section
    return offered(section)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The section inside `list[Section]`, `Section | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_section_in(argument) for argument in typing.get_args(annotation))
    return next((section for section in inner if section is not None), None)
