"""The classifier's bench: its figures, its training prompts, what it times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from paceline.bench import classify as bench
from paceline.bench.bodies import SIZES_KIB, bodies
from paceline.bench.classify_scores import Prediction, at_least, copy_order, scores_of
from paceline.bench.instructions import ASKED
from paceline.bench.labelled import OWN, base_of, labelled, own, read_rows
from paceline.bench.own_prompts import own_prompts
from paceline.core.classify import classify
from paceline.core.look import look
from paceline.core.types import Classification, CopyRatio, Workload


def copies(value: float) -> CopyRatio:
    return CopyRatio(quantiles=(value,) * 5)


def predicted(
    said: Workload, *acceptable: str, sure: float = 1.0, expected: float = 0.0, true: float = 0.0
) -> Prediction:
    row = {"request": {}, "acceptable": acceptable, "copy_ratio": true}
    found = Classification(workload=said, label_confidence=sure, copy_ratio=copies(expected))
    return Prediction(row=labelled(row, "here"), classification=found)


CODE, CHAT, EDIT = Workload.CODE, Workload.CHAT, Workload.EDIT


def test_perfect_predictions_have_perfect_scores() -> None:
    scores = scores_of(
        [
            predicted(CODE, "code", expected=0.1, true=0.0),
            predicted(CHAT, "chat", expected=0.2, true=0.1),
            predicted(EDIT, "edit", expected=0.8, true=0.7),
            predicted(EDIT, "edit", expected=0.9, true=0.9),
        ]
    )
    assert scores["accuracy"] == scores["macro_f1"] == 1.0
    assert scores["ece"] == 0.0
    assert scores["copy_ratio_spearman"] == scores["copy_ratio_spearman_edit"] == pytest.approx(1)
    assert scores["brier_055"] < 0.01


def test_any_acceptable_class_is_right_and_f1_leaves_the_ambiguous_out() -> None:
    scores = scores_of(
        [
            predicted(CODE, "code"),
            predicted(CHAT, "chat"),
            predicted(CHAT, "edit"),
            predicted(EDIT, "edit", "chat"),
        ]
    )
    assert scores["accuracy"] == 0.75
    assert scores["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_calibration_error_is_confidence_less_accuracy() -> None:
    rows = [predicted(CODE, "code" if at < 6 else "chat", sure=0.85) for at in range(10)]
    assert scores_of(rows)["ece"] == pytest.approx(0.25)


def test_equal_values_share_a_rank() -> None:
    rows = [
        predicted(EDIT, "edit", expected=expected, true=true)
        for expected, true in [(0.5, 0.1), (0.5, 0.2), (0.9, 0.3)]
    ]
    assert copy_order(rows) == pytest.approx(3**0.5 / 2)


@pytest.mark.parametrize(
    ("quantiles", "expected"),
    [
        ((0.0,) * 5, 0.1 * 0.45),
        ((1.0,) * 5, 1 - 0.1 * 0.55),
        ((0.1, 0.3, 0.55, 0.8, 0.9), 0.5),
        ((0.35, 0.75, 0.8, 0.9, 0.95), 0.8),
    ],
)
def test_probability_of_a_high_copy_ratio(quantiles: Any, expected: float) -> None:
    assert at_least(CopyRatio(quantiles=quantiles), 0.55) == pytest.approx(expected)


def test_sources_made_of_one_data_set_are_one_fold() -> None:
    assert base_of("a/octopack (CommitPackFT) in agent format") == base_of("b (CommitPackFT)")
    assert base_of("x/self-instruct t0_train (PAWS)") == base_of("x/self-instruct")
    assert base_of("a") != base_of("b")


def test_training_prompts_are_the_same_each_time_and_of_every_class() -> None:
    rows = own_prompts()
    assert rows == own_prompts()
    assert rows != own_prompts(seed=8)
    counts = {workload.value: 0 for workload in Workload}
    for row in rows:
        for acceptable in row["acceptable"]:
            counts[acceptable] += 1
    assert min(counts.values()) > 300


def test_nothing_that_is_trained_on_is_in_the_test_prompts() -> None:
    """Beyond a word or two, such as "hello" and "thanks"."""
    instructions = {line.lower().rstrip(".!") for asked in ASKED for line in asked.instructions}
    users = [turn.text for row in own() for turn in row.features.view.turns if turn.role == "user"]
    asks = [before for before, _, _, _ in (look(text, True) for text in users)]
    both = [ask for ask in asks if len(ask) > 40 and ask.lower().rstrip(".!") in instructions]
    assert len(asks) > 200
    assert both == []


def test_bodies_are_of_the_sizes_they_are_named_for() -> None:
    for size_kib in SIZES_KIB:
        for name, body in bodies(size_kib).items():
            num_bytes = len(orjson.dumps(body))
            assert 0.7 * size_kib * 1024 <= num_bytes <= 1.8 * size_kib * 1024 + 700, name


def test_without_gathered_prompts_the_bench_says_so_and_scores_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "REPEATS", 1)
    code = bench.main(["--prompts", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "out")])
    report = json.loads((tmp_path / "out" / "classify.json").read_text())
    assert code == 0
    assert "are not at hand" in capsys.readouterr().out
    assert "not at hand" in (tmp_path / "out" / "classify.txt").read_text()
    assert set(report["headline"]) == {
        "accuracy", "macro_f1", "ece", "copy_ratio_spearman", "brier_055", "p50_us", "p99_us",
    }  # fmt: skip
    assert report["headline"]["accuracy"] > 0.9


def test_a_model_can_be_fitted_and_written(tmp_path: Path) -> None:
    """To the test prompts, for want of others: that it learns, not how well."""
    pytest.importorskip("sklearn", reason="the extra `bench` is not installed")
    training = pytest.importorskip("paceline.bench.classify_training")
    rows = [
        labelled({**row, "licence": "ours"}, f"set {at % 6}")
        for at, row in enumerate(read_rows(OWN))
    ]
    fitted = training.fit(rows, [])
    predictions = [
        Prediction(row=row, classification=classify(row.features, fitted.model)) for row in rows
    ]
    assert scores_of(predictions)["accuracy"] > 0.95
    path = tmp_path / "weights.py"
    training.write(fitted, rows, 0, path, "- none")
    written: dict[str, Any] = {}
    exec(path.read_text(), written)
    assert written["WEIGHTS"] == fitted.weights
    assert written["COPYING"] == fitted.copying
