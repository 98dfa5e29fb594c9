"""What the laws no longer have, a twin refuses when it is loaded, and not by a crash later."""

from __future__ import annotations

from importlib.util import find_spec, module_from_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from paceline.core import (
    caller,
    choose,
    compiled,
    copying,
    offers,
    only_model,
    rules,
    signals,
    types,
    views_chat,
)
from paceline.core.classify import CLASSES, MODEL, SIZES
from paceline.core.features import measure_law

if not compiled.IS_COMPILED:
    pytest.skip("they were not built", allow_module_level=True)

NUMBERS = {
    "min_material_chars": 4, "short_material_chars": 160, "system_chars": 1000,
    "short_answer_tokens": 64,
}  # fmt: skip
CLASSES_OF_IT = (types.RequestFeatures, types.RequestView, types.Classification, tuple)
GIVEN: dict[str, tuple[str, tuple[Any, ...]]] = {
    "bodies": ("configure", (views_chat, only_model)),
    "caller": ("configure", (caller, types)),
    "costs": ("configure", (offers, choose, types)),
    "rules": ("configure", (rules, types)),
    "features": ("configure", (measure_law, compiled.look, signals.system_signals, types, NUMBERS)),
    "judgement": (
        "configure_classes",
        (
            print, MODEL, tuple(types.Material), SIZES, CLASSES, copying.mixture, copying.STEPS,
            *CLASSES_OF_IT,
        ),
    ),
}  # fmt: skip
HAVE_ATTRIBUTES = (ModuleType, type(MODEL), type(MODEL.copying))


def configured(twin: str, given: tuple[Any, ...]) -> None:
    spec = find_spec(f"paceline.native.{twin}")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    getattr(module, GIVEN[twin][0])(*given)


def attributes(of: Any) -> dict[str, Any]:
    return {name: getattr(of, name) for name in dir(of) if not name.startswith("__")}


class Spy:
    """Has what another has, and notes what of it was asked for."""

    def __init__(self, of: Any) -> None:
        self.of, self.asked = of, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self.of, name)


@pytest.mark.parametrize("twin", GIVEN)
def test_each_attribute_is_missed(twin: str) -> None:
    given = GIVEN[twin][1]
    for place, law in enumerate(given):
        if not isinstance(law, HAVE_ATTRIBUTES):
            continue
        spy = Spy(law)
        configured(twin, (*given[:place], spy, *given[place + 1 :]))
        assert spy.asked
        for name in spy.asked:
            rest = SimpleNamespace(**{k: v for k, v in attributes(law).items() if k != name})
            with pytest.raises(AttributeError, match=name):
                configured(twin, (*given[:place], rest, *given[place + 1 :]))


@pytest.mark.parametrize("material", ["none", "code", "sentence", "text"])
def test_each_material_is_missed(material: str) -> None:
    def without(name: str) -> str:
        if name == material:
            raise ValueError(f"no {name}")
        return name

    law, look, of_system, _, numbers = GIVEN["features"][1]
    lacking = SimpleNamespace(**attributes(types) | {"Material": without})
    with pytest.raises(ValueError, match=material):
        configured("features", (law, look, of_system, lacking, numbers))
