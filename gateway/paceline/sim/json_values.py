"""A small JSON value that fits a schema: the arguments of a tool call, or a structured answer.

The same for the same schema. Of JSON Schema it knows types, required properties, `enum`, `const`,
`default`, bounds of numbers, lengths of strings and arrays, `anyOf`, `oneOf`, `allOf`, local
references and the common formats. Left out: `pattern`, `not`, conditions, and properties that are
not required. What cannot be satisfied is answered as well as it goes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 16  # of nested schemas; a schema that requires itself has no finite value
MAX_VALUES = 2000  # in all, and of characters in a text: what comes after that is null
_WORDS = ("river", "harbour", "bread", "lantern", "orchard", "winter", "copper", "meadow")
_FORMATS = {
    "date": "2026-11-29",
    "time": "12:00:00Z",
    "date-time": "2026-11-29T12:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_SEVERAL = ("anyOf", "oneOf")


def fitting_value(schema: object) -> Any:
    """A value for the schema; a schema that is no object gets an object with one string."""
    if not isinstance(schema, Mapping):
        return {"answer": _WORDS[0]}
    return _Schema(schema).value(schema, name="answer", depth=0)


class _Schema:
    """One root schema, which its references point into."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_VALUES

    def value(self, schema: Any, *, name: str, depth: int) -> Any:
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._left < 0:
            return None
        schema = self._resolved(schema)
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        if isinstance(options := schema.get("enum"), list) and options:
            return options[0]
        for key in _SEVERAL:
            if isinstance(branches := schema.get(key), list) and branches:
                return self.value(branches[0], name=name, depth=depth + 1)
        match _type_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer":
                return _integer(schema)
            case "number":
                return _number(schema)
            case "boolean":
                return True
            case "null":
                return None
        return _string(schema, name)

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        """As few items as may be, but one if that is allowed; those of a tuple by their places."""
        placed = schema.get("prefixItems")
        placed = placed if isinstance(placed, list) else []
        most = _whole(schema, "maxItems", MAX_VALUES)
        count = min(max(_whole(schema, "minItems", 1), 0), most, self._left)
        rest = schema.get("items", {"type": "string"})
        items = [placed[i] if i < len(placed) else rest for i in range(max(0, count))]
        return [self.value(item, name=name, depth=depth + 1) for item in items]

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Required properties, in the order in which the schema describes them."""
        described = schema.get("properties")
        properties = described if isinstance(described, Mapping) else {}
        required = schema.get("required")
        wanted = required if isinstance(required, list) else []
        wanted = [key for key in wanted if isinstance(key, str)]
        ordered = [key for key in properties if key in wanted]
        ordered += [key for key in wanted if key not in properties]
        return {
            key: self.value(properties.get(key, {}), name=key, depth=depth + 1) for key in ordered
        }

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without references, and with the parts of `allOf` put together."""
        for _ in range(MAX_DEPTH):
            if isinstance(reference := schema.get("$ref"), str):
                schema = {**self._at(reference), **_without(schema, "$ref")}
            elif isinstance(parts := schema.get("allOf"), list):
                schema = _merged([_without(schema, "allOf"), *parts])
            else:
                return schema
        return {}

    def _at(self, reference: str) -> Mapping[str, Any]:
        """What a local reference such as `#/$defs/Place` points to; nothing for others."""
        found: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            if step:
                key = step.replace("~1", "/").replace("~0", "~")
                found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}


def _without(schema: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != key}


def _merged(parts: list[Any]) -> dict[str, Any]:
    """One schema of several: all their properties, whatever any of them requires."""
    schemas = [part for part in parts if isinstance(part, Mapping)]
    whole = {key: value for schema in schemas for key, value in schema.items()}
    described = [each["properties"] for each in schemas if _is(each, "properties", Mapping)]
    required = [each["required"] for each in schemas if _is(each, "required", list)]
    if described:
        whole["properties"] = {key: value for each in described for key, value in each.items()}
    if required:
        whole["required"] = [key for each in required for key in each]
    return whole


def _is(schema: Mapping[str, Any], key: str, kind: type) -> bool:
    return isinstance(schema.get(key), kind)


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema or "required" in schema else "string"


def _whole(schema: Mapping[str, Any], key: str, default: int) -> int:
    value = schema.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _bounds(schema: Mapping[str, Any], step: float) -> tuple[float, float]:
    """The least and the most that a number may be; exclusive bounds moved inwards by a step."""

    def bound(key: str) -> float | None:
        value = schema.get(key)
        return None if isinstance(value, bool) or not isinstance(value, (int, float)) else value

    low, high = bound("minimum"), bound("maximum")
    if low is None and (above := bound("exclusiveMinimum")) is not None:
        low = above + step
    if high is None and (below := bound("exclusiveMaximum")) is not None:
        high = below - step
    return -math.inf if low is None else low, math.inf if high is None else high


def _integer(schema: Mapping[str, Any]) -> int:
    low, high = _bounds(schema, 1)
    step = max(1, _whole(schema, "multipleOf", 1))
    least = low if math.isfinite(low) else min(step, high)
    value = math.ceil(least / step) * step
    return value if value <= high else math.floor(high)


def _number(schema: Mapping[str, Any]) -> float:
    low, high = _bounds(schema, 0.5)
    value = min(max(1.5, low), high)
    step = schema.get("multipleOf")
    if isinstance(step, (int, float)) and step > 0:
        value = math.ceil(low / step) * step if math.isfinite(low) else step
    return float(value)


def _string(schema: Mapping[str, Any], name: str) -> str:
    if (text := _FORMATS.get(str(schema.get("format")))) is not None:
        return text
    text = _WORDS[sum(name.encode("utf-8", "replace")) % len(_WORDS)]
    least = min(_whole(schema, "minLength", 0), MAX_VALUES)
    while len(text) < least:
        text += " " + _WORDS[len(text) % len(_WORDS)]
    most = _whole(schema, "maxLength", len(text))
    # A cut inside the padding must not leave it too short again, so it is cut at the most allowed.
    return text[: max(most, 0)]
