"""`${VAR}` and `${VAR:-default}` in string values, after the YAML was parsed.

Only a whole value can be a variable, so what it holds is never part of a larger text and never read
as YAML: it is text, whatever it looks like. As in a shell, the default also stands in for an empty
variable. `$$` is a dollar sign, everywhere. Keys are not expanded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paceline.settings.problems import Path, Problems

_WHOLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}")


def expand(value: Any, environ: Mapping[str, str], problems: Problems, path: Path = ()) -> Any:
    """`value` with its variables replaced; an unset one becomes a problem at its path."""
    if isinstance(value, dict):
        return {key: expand(item, environ, problems, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(item, environ, problems, (*path, i)) for i, item in enumerate(value)]
    if isinstance(value, str) and "$" in value:
        return _expanded(value, environ, problems, path)
    return value


def _expanded(text: str, environ: Mapping[str, str], problems: Problems, path: Path) -> str:
    found = _WHOLE.fullmatch(text)
    if found is not None:
        return _looked_up(found, environ, problems, path)
    if "${" in text.replace("$$", ""):
        hint = 'only as a whole value, "${VAR}" or "${VAR:-default}"; "$$" is a dollar sign'
        problems.add(path, f"variables expand {hint}")
    return text.replace("$$", "$")


def _looked_up(
    found: re.Match[str], environ: Mapping[str, str], problems: Problems, path: Path
) -> str:
    name, default = found["name"], found["default"]
    problems.variables[path] = name
    value = environ.get(name)
    if default is not None and not value:
        return default.replace("$$", "$")
    if value is None:
        problems.add(path, f"the environment variable {name} is not set")
    elif not value.isprintable():
        problems.add(path, f"the environment variable {name} is not printable text on one line")
    else:
        return value
    return ""
