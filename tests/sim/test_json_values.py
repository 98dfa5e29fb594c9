"""JSON that fits a schema, judged by pydantic, which made the schema."""

from __future__ import annotations

import json
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from paceline.sim.json_values import MAX_DEPTH, fitting_value


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    name: Annotated[str, Field(min_length=30, max_length=40)]
    height: Annotated[float, Field(gt=0, lt=1)]


class Journey(BaseModel):
    places: Annotated[list[Place], Field(min_length=2)]
    best: Place
    colour: Colour
    mode: Literal["train", "ship"]
    until: date | None
    note: str | None = None
    either: int | str
    pair: tuple[int, str]
    when: datetime
    key: UUID
    free: dict[str, int]
    by_twelve: Annotated[int, Field(ge=5, multiple_of=12)]
    small: Annotated[int, Field(lt=-3)]


def test_a_model_of_models_is_filled():
    value = fitting_value(Journey.model_json_schema())
    journey = Journey.model_validate(json.loads(json.dumps(value)))
    assert len(journey.places) == 2
    assert journey.by_twelve == 12
    assert "note" not in value


@given(
    low=st.integers(-1000, 1000),
    room=st.integers(0, 50),
    kind=st.sampled_from([int, float]),
)
def test_numbers_keep_their_bounds(low: int, room: int, kind: Any):
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, Field(ge=low, le=low + room)])
    adapter.validate_python(fitting_value(adapter.json_schema()))


@given(low=st.integers(0, 200), room=st.integers(0, 20))
def test_texts_and_lists_keep_their_lengths(low: int, room: int):
    for kind in (str, list[bool]):
        bounds = Field(min_length=low, max_length=low + room)
        adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, bounds])
        adapter.validate_python(fitting_value(adapter.json_schema()))


def test_parts_of_all_of_are_put_together():
    schema = {
        "allOf": [
            {"properties": {"a": {"type": "boolean"}}, "required": ["a"]},
            {"properties": {"b": {"const": 7}}, "required": ["b"]},
        ]
    }
    assert fitting_value(schema) == {"a": True, "b": 7}


def test_a_schema_without_end_ends():
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    value, depth = fitting_value(schema), 0
    while value is not None:
        value, depth = value["next"], depth + 1
    assert depth == MAX_DEPTH + 1
    assert fitting_value({"$ref": "#"}) is not None


ODD: tuple[Any, ...] = (
    *(None, 3, True, {}, {"type": 3}, {"type": []}, {"enum": []}, {"anyOf": [3]}, {"$ref": "x"}),
    *({"required": [1]}, {"required": 3}, {"properties": 3}, {"type": "array", "items": [3]}),
    *({"type": "array", "minItems": 10**9}, {"type": "string", "minLength": 10**9}),
    *({"allOf": [{"required": 3}, {"properties": 3}]}, {"allOf": 3}, {"format": []}),
    *({"type": "integer", "multipleOf": 0}, {"minimum": "x", "type": "number"}),
    {"type": "array", "minItems": 99, "items": {"$ref": "#"}},
)


@pytest.mark.parametrize("schema", ODD)
def test_odd_schemas_have_some_value(schema: Any):
    assert len(json.dumps(fitting_value(schema))) < 50_000
