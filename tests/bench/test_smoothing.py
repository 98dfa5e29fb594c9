"""The smoothing bench: its streams, its rules, and that what the SDK requires holds on it."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from paceline.bench import javascript, smoothing
from paceline.bench.pacing_rules import RULES
from paceline.bench.streams import recorded, synthetic

TRACES = Path(__file__).parents[1] / "data" / "traces"


def test_a_recording_has_every_token_and_the_median_pass_it_is_scaled_to() -> None:
    stream = recorded(TRACES / "ngram-k4.edit-1.jsonl.gz")
    assert len(stream.arrivals) == 160
    assert stream.scaled_to(45).median_pass_ms() == pytest.approx(45)
    assert stream.scaled_to(45).text == stream.text


def test_synthetic_streams_are_the_same_for_a_seed_and_have_the_mean_they_should() -> None:
    stream = synthetic(7, pass_ms=45, mean_tokens=2.5, num_tokens=6000)
    assert stream == synthetic(7, pass_ms=45, mean_tokens=2.5, num_tokens=6000)
    assert 6000 / len(stream.bursts) == pytest.approx(2.5, rel=0.05)
    assert stream.median_pass_ms() == pytest.approx(45, rel=0.05)


def test_stalls_come_on_top() -> None:
    stream = synthetic(7, pass_ms=45, mean_tokens=2.5)
    stalled = stream.with_stalls(0.02, 1)
    late = [b.at_ms - a.at_ms for a, b in zip(stream.bursts, stalled.bursts, strict=True)]
    added = {round(after - before, 6) for before, after in pairwise(late)} - {0.0}
    assert added
    assert all(600 <= stall <= 1200 for stall in added)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_shows_every_token_in_order_and_none_before_it_is_there(name: str) -> None:
    stream = synthetic(3, pass_ms=45, mean_tokens=2.5, num_tokens=200)
    shown = RULES[name](stream)
    assert len(shown) == 200
    assert shown == sorted(shown)
    assert all(at >= arrival for at, arrival in zip(shown, stream.arrivals, strict=True))


def test_it_writes_its_figures_and_every_promise_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoothing, "LENGTHS", (1_000, 2_000))
    monkeypatch.setattr(smoothing, "NUM_SEEDS", 2)
    assert smoothing.main(["--traces", str(TRACES), "--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "smoothing.json").read_text())
    in_typescript = {"us_per_token_js", "core_gzip_bytes"} if javascript.ready() else set()
    assert set(written["headline"]) == in_typescript | {
        "rho_spec", "rho_stall", "mean_added_delay_ms_spec45", "max_end_lag_ms", "us_per_token_py",
    }  # fmt: skip
    assert written["headline"]["rho_spec"] <= 1.15
    assert "rho_spec" in (tmp_path / "smoothing.txt").read_text()
    scores = written["scores"]["spec45"]
    assert set(scores) >= set(RULES)
    assert len(scores["ours"]) == 9
    if in_typescript:
        for name, ours in scores["ours"].items():
            assert scores[smoothing.OURS_TS][name] == pytest.approx(ours, abs=1e-6)
        assert len(scores) > 10
    else:
        assert os.environ.get("CI") != "true"
