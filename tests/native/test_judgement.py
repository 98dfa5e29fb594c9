"""The compiled sums of the classifier are those of `core/judge.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core import judge as law
from paceline.core.classify import MODEL, SIZES
from paceline.core.types import Material

judgement = pytest.importorskip("paceline.native.judgement", reason="it was not built")

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
