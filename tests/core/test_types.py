"""What decisions are made from, as values."""

import pytest
from msgspec import Struct

from paceline.core import types

VALUES = [
    kind
    for kind in vars(types).values()
    if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct
]


@pytest.mark.parametrize("kind", VALUES)
def test_nobody_can_change_one(kind: type[Struct]) -> None:
    assert kind.__struct_config__.frozen


def test_the_interpreter_says_so() -> None:
    turn = types.Turn(role="user", text="hello")
    with pytest.raises(AttributeError, match="immutable"):
        turn.text = "something else"  # type: ignore[misc]
