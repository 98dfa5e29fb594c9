"""`@value_class`: the class of a value that nobody changes, cheap to make.

mypy refuses every assignment to a field, as it does for a frozen dataclass; the interpreter does
not. Its own refusal costs a call per field each time that a value is made, which came to a ninth of
all the instructions of a request (some 90 fields in 20 values).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def value_class(cls: type[_T]) -> type[_T]:
    """A dataclass with slots, keyword arguments, `==` and a hash; its fields are for reading."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
