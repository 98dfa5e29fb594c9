from collections.abc import Callable, Mapping
from typing import Any

_Look = tuple[str, str, bool, frozenset[str]]

def configure(law: Callable[[str, bool], _Look], tables: Mapping[str, Any]) -> None:
    """Once, before the first look: the law, and what it knows (`core/compiled.py`)."""

def look(text: str, is_first: bool) -> _Look: ...
