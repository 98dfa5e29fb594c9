"""The compiled classifier is that of `core/classify.py`, its sums are those of `core/judge.py`."""

from __future__ import annotations

import gc
from importlib.util import find_spec, module_from_spec
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.bench.labelled import own
from paceline.core import classify as classifying
from paceline.core import compiled, copying
from paceline.core import judge as law
from paceline.core.classify import CLASSES, MODEL, SIZES, Model, classify, classify_law
from paceline.core.types import (
    Classification,
    CopyRatio,
    Endpoint,
    Material,
    RequestFeatures,
    RequestView,
)

judgement = pytest.importorskip("paceline.native.judgement", reason="it was not built")
assert compiled.IS_COMPILED  # which lets the law give itself

signals = st.frozensets(
    st.sampled_from(sorted(MODEL.weights[Material.NONE])) | st.just("no such signal"), max_size=30
)
bands = st.integers(0, len(SIZES))


@given(signals, st.sampled_from(Material), bands)
def test_the_sums_are_the_laws(seen: frozenset[str], material: Material, band: int) -> None:
    weights, bias = MODEL.weights[material], MODEL.bias[material][band]
    asked = seen, weights, bias, band, MODEL.copying.share
    logs, adds, odds = judgement.judge(*asked)
    expected_logs, expected_adds, expected_odds = law.judge(*asked)
    assert (logs, adds) == (expected_logs, expected_adds)
    assert odds == pytest.approx(expected_odds, rel=1e-12, abs=1e-12)  # `sum` rounds by version


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), bands)
def test_so_they_are_for_weights_of_any_size(
    code: float, chat: float, edit: float, band: int
) -> None:
    asked = frozenset(["s"]), {"s": (code, chat, edit, 0.1, "")}, (0.0, 0.0, 0.0, 0.0, ""), band
    found = judgement.judge(*asked, MODEL.copying.share)
    expected = law.judge(*asked, MODEL.copying.share)
    assert found[:2] == expected[:2]
    assert found[2] == pytest.approx(expected[2], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ((frozenset(), {}, (0.0,), 0, MODEL.copying.share), ValueError),
        ((frozenset(["s"]), {"s": 1.0}, (0.0,) * 4 + ("",), 0, MODEL.copying.share), TypeError),
        ((None, {}, (0.0,) * 4 + ("",), 0, MODEL.copying.share), TypeError),
        ((frozenset(), {}, (0.0,) * 4 + ("",), "0", MODEL.copying.share), TypeError),
    ],
)
def test_nonsense_is_refused_as_the_law_refuses_it(
    asked: tuple[object, ...], error: type[Exception]
) -> None:
    for judge in (law.judge, judgement.judge):
        with pytest.raises(error):
            judge(*asked)


# ---- the classes ---------------------------------------------------------------------------------

VIEW = RequestView(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", stream=False)
FEATURES = RequestFeatures(
    view=VIEW,
    material=Material.CODE,
    material_chars=700,
    prompt_chars=800,
    signals=frozenset(["asks:fix", "mentions:fix", "ask-length:1"]),
)
OTHER = Model(weights=MODEL.weights, bias=MODEL.bias, copying=MODEL.copying)

sizes = st.integers(-1, 20_000) | st.sampled_from([*SIZES, *(size + 1 for size in SIZES), 10**30])
measured = st.builds(
    RequestFeatures,
    view=st.just(VIEW) | st.just(replace(VIEW, has_text=False)),
    material=st.sampled_from(Material),
    material_chars=sizes,
    prompt_chars=st.just(0),
    signals=signals,
)


def assert_are_alike(found: Classification, expected: Classification) -> None:
    assert found == expected
    assert found.workload is expected.workload
    assert found.copy_ratio is expected.copy_ratio  # both ask for the one that is kept
    assert found.reasons == expected.reasons


@given(measured)
def test_a_request_is_classified_as_by_the_law(features: RequestFeatures) -> None:
    assert_are_alike(judgement.classify(features), classify_law(features))


@given(measured)
def test_so_it_is_where_signals_have_names_of_their_own(features: RequestFeatures) -> None:
    """Which are equal to the model's, and others than those."""
    named = frozenset("".join([*name]) for name in features.signals)
    features = replace(features, signals=named)
    assert_are_alike(judgement.classify(features), classify_law(features))


def test_so_are_our_own_prompts() -> None:
    for row in own():
        assert_are_alike(judgement.classify(row.features), classify_law(row.features))


def test_so_it_is_by_a_model_given() -> None:
    expected = classify_law(FEATURES)
    for found in (
        judgement.classify(FEATURES, MODEL),
        judgement.classify(FEATURES, OTHER),
        judgement.classify(FEATURES, model=OTHER),
        judgement.classify(features=FEATURES),
    ):
        assert_are_alike(found, expected)


@pytest.mark.parametrize(
    "change",
    [
        {"material": None},
        {"material": "no such material"},
        {"material_chars": None},
        {"signals": None},
        {"signals": frozenset([()]), "material": 3},
        {"view": None},
    ],
)
def test_odd_features_are_refused_as_the_law_refuses_them(change: dict[str, Any]) -> None:
    features = replace(FEATURES, **change)
    for classified in (classify_law, classify):
        with pytest.raises((KeyError, TypeError, AttributeError)):
            classified(features)


@pytest.mark.parametrize("change", [{"material": "code"}, {"material_chars": 700.5}])
def test_odd_features_that_the_law_takes_are_taken(change: dict[str, Any]) -> None:
    features = replace(FEATURES, **change)
    assert_are_alike(judgement.classify(features), classify_law(features))


def test_what_is_no_request_is_refused() -> None:
    for asked in ((None,), (), (FEATURES, MODEL, 3), (FEATURES, None)):
        for classified in (classify_law, judgement.classify):
            with pytest.raises((TypeError, AttributeError)):
                classified(*asked)


def own_module(model: Model, *, sizes: tuple[int, ...] = SIZES, mixture: Any = None) -> Any:
    """A twin of its own, whose law refuses."""

    def no_law(*asked: Any) -> Any:
        raise AssertionError(f"handed to the law: {asked!r}")

    spec = find_spec("paceline.native.judgement")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(RuntimeError):
        module.classify(FEATURES)
    module.configure(law, copying.LEAST_LOG)
    module.configure_classes(
        no_law, model, tuple(Material), sizes, CLASSES, mixture or copying.mixture, copying.STEPS,
        RequestFeatures, RequestView, Classification, classifying._Evidence,
    )  # fmt: skip
    return module


def test_usual_requests_are_not_handed_to_the_law() -> None:
    module = own_module(MODEL)
    for row in own():
        if row.features.view.has_text:
            assert_are_alike(module.classify(row.features), classify_law(row.features))
    with pytest.raises(AssertionError):
        module.classify(replace(FEATURES, view=replace(VIEW, has_text=False)))


def model_with(*, share: float = 0.0, high: float = 0.5) -> Model:
    """A model that knows one signal, and whose odds are always the same."""
    weight = (0.0, 0.0, 0.0, 0.0, "")
    bands = range(len(SIZES) + 1)
    return Model(
        weights={material: {"s": weight} for material in Material},
        bias={material: [weight for _ in bands] for material in Material},
        copying=copying.CopyModel(
            share=(share, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            low_powers={material: [1.0 for _ in bands] for material in Material},
            high_means={material: [high for _ in bands] for material in Material},
        ),
    )


@given(st.integers(0, copying.STEPS), st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_steps_are_rounded_as_by_the_law(step: int, rest: float) -> None:
    high = (step + rest) / copying.STEPS
    odds = log(high / (1.0 - high)) if 0.0 < high < 1.0 else 0.0
    model = model_with(share=odds, high=high)
    asked: list[tuple[int, float, int]] = []

    def mixture(*steps: Any) -> CopyRatio:
        asked.append(steps)
        return copying.mixture(*steps)

    found = own_module(model, mixture=mixture).classify(FEATURES)
    assert_are_alike(found, classify_law(FEATURES, model))
    assert found.workload is CLASSES[0], "the first of equals"
    assert asked[0][2] == round(copying.STEPS * high)


def test_odds_beyond_numbers_are_the_laws() -> None:
    model = model_with(share=-1e6)
    with pytest.raises(OverflowError):
        classify_law(FEATURES, model)
    with pytest.raises(AssertionError):
        own_module(model).classify(FEATURES)


def test_a_model_of_another_shape_is_refused() -> None:
    known = model_with()
    odd = {material: {"s": known.bias[material][0]} for material in Material}
    odd[Material.TEXT] = {"t": known.bias[Material.TEXT][0]}
    for model in (
        Model(weights=odd, bias=known.bias, copying=known.copying),
        Model(weights={}, bias=known.bias, copying=known.copying),
        Model(
            weights={material: {"s": (0.0,)} for material in Material},  # type: ignore[dict-item]
            bias=known.bias,
            copying=known.copying,
        ),
    ):
        with pytest.raises((ValueError, KeyError)):
            own_module(model)
    for sizes in (SIZES[1:], tuple(range(40))):
        with pytest.raises(ValueError, match="not written for"):
            own_module(known, sizes=sizes)


def test_nothing_is_kept() -> None:
    gc.collect()
    before = len(gc.get_objects())
    for number in range(2000):
        judgement.classify(FEATURES)
        judgement.classify(FEATURES, OTHER)
        judgement.classify(replace(FEATURES, view=replace(VIEW, has_text=False)))
        judgement.judge(FEATURES.signals, *BARE)
        with pytest.raises(KeyError):
            judgement.classify(replace(FEATURES, material=f"no such material {number}"))
    for _ in range(30):
        own_module(model_with()).classify(FEATURES)
    gc.collect()
    assert len(gc.get_objects()) - before < 200


BARE = MODEL.weights[Material.CODE], MODEL.bias[Material.CODE][3], 3, MODEL.copying.share
