"""A file and an environment → `Settings`, or everything that is wrong with them at once.

    text ─► document ─► variables ─► schema + checks ─► values

`settings` is the only part of Paceline that reads YAML; the environment is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from paceline.errors import ConfigurationError
from paceline.settings.build import build
from paceline.settings.checks import check
from paceline.settings.document import MAX_BYTES, read
from paceline.settings.problems import Problems
from paceline.settings.translate import validate
from paceline.settings.values import Settings
from paceline.settings.variables import expand

SCENARIO_KEYS = {"shares", "label_pools"}
"""What tells a scenario of the simulator from a configuration."""


def load(path: str | Path, environ: Mapping[str, str]) -> Settings:
    """The settings in the file at `path`.

    Raises ConfigurationError with all problems in file order. When the file could not be read at
    all its `__cause__` is the OSError.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"{path}: cannot be read: {reason}") from error
    folder = Path(path).parent
    return parse(_decoded(content, str(path)), environ, name=str(path), folder=folder)


def parse(
    text: str, environ: Mapping[str, str], *, name: str = "config", folder: Path = Path()
) -> Settings:
    """The settings in `text`; `name` stands for the file in messages, and paths are relative to
    `folder`. Raises as `load` does."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise ConfigurationError(f"{name}:1: larger than {MAX_BYTES // 1024} KiB")
    problems = Problems(file=name)
    data = expand(read(text, problems), environ, problems)
    if isinstance(data, dict) and data.keys() >= SCENARIO_KEYS:
        raise ConfigurationError(f"{name}: describes a simulation: run it with `paceline sim`")
    sections = validate(data, problems)
    check(data, problems)
    problems.raise_if_any()
    if sections is None:
        raise AssertionError("the schema refused the file and said nothing")
    return build(sections, data, problems, folder)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content[: MAX_BYTES + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(content) > MAX_BYTES:
            return content.decode(errors="replace")  # cut within a character; refused for its size
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{name}:{line}: not UTF-8 text") from None
