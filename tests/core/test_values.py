"""What `@value_class` makes of a class. That nobody assigns to a field is mypy's to see."""

from __future__ import annotations

import pytest

from paceline.core.types import Turn


def test_values_are_compared_and_hashed_by_their_fields() -> None:
    one, same, other = (Turn(role="user", text=text) for text in ("hello", "hello", "goodbye"))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_values_have_their_fields_and_no_others() -> None:
    turn = Turn(role="user", text="hello")
    with pytest.raises(AttributeError):
        turn.mood = "good"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Turn("user", "hello")  # type: ignore[misc]
