"""The smoothing bench: its streams, its rules, and that what the SDK requires holds on it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from paceline.bench import javascript, smoothing, smoothing_page
from paceline.bench.optimum import score
from paceline.bench.pacing_rules import RULES
from paceline.bench.smoothing_aims import smoother_for_less, standing
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


def scored(stream, **waits_ms):
    """A score by name of a rule that holds every token of odd number so long."""
    held = {
        name: [at + (wait_ms if n % 2 else 0) for n, at in enumerate(stream.arrivals)]
        for name, wait_ms in waits_ms.items()
    }
    return {name: [score(stream.arrivals, at, end_ms=stream.end_ms)] for name, at in held.items()}


def test_who_is_smoother_for_no_more_delay_is_told() -> None:
    one = synthetic(5, pass_ms=400, mean_tokens=2.0, num_tokens=200, k=1)  # pairs, 400 ms apart
    by_rule = scored(one, ours=60, less=50, smoother=150, rougher=40)
    assert smoother_for_less(by_rule) == ()
    by_rule["ours"] = [replace(by_rule["ours"][0], mean_delay_ms=100.0)]
    assert smoother_for_less(by_rule) == ("smoother",)


def test_the_optimum_needs_what_it_needs_for_the_aim() -> None:
    """A pair every 400 ms fills one window of four, and two once its tokens are 100 ms apart."""
    one = synthetic(5, pass_ms=400, mean_tokens=2.0, num_tokens=200, k=1)
    by_rule = scored(one, ours=60, optimum=60) | {
        "pass-through": [score(one.arrivals, one.arrivals, end_ms=one.end_ms)]
    }
    told = standing(by_rule, [one])
    assert told.optimum_needs_ms is not None
    assert 50 <= told.optimum_needs_ms <= 210
    by_rule["pass-through"] = [replace(by_rule["pass-through"][0], rate_cv=0.0)]
    assert standing(by_rule, [one]).optimum_needs_ms is None


def test_a_readme_has_a_row_for_every_rule_and_says_what_is_not_known() -> None:
    one = synthetic(5, pass_ms=45, mean_tokens=2.5, num_tokens=60)
    by_rule = scored(one, ours=5, other=10, optimum=5)
    by_rule["pass-through"] = [score(one.arrivals, one.arrivals, end_ms=one.end_ms)]
    cost = {"us_per_token": {"ours": 5.0, "other": 1.0}, "gzip_bytes": {"ours": 4768}}
    page = smoothing_page.readme(
        {"made": by_rule}, cost, {"made": standing(by_rule, [one])}, ["made"]
    )
    tables = [part.splitlines() for part in page.split("\n\n") if part.startswith("|")]
    assert [len(table) - 2 for table in tables] == [len(by_rule), 2, 1]
    assert len({line.count("|") for line in tables[0]}) == 1
    assert "| ours | 5.0 | 4.8 |" in page
    assert "| other | 1.0 |  |" in page


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
    assert set(written["aims"]) == set(written["scores"])
    for rule, by_stream in scores.items():
        for one in by_stream.values():
            assert 0 <= one["equal_max_delay_ms"] <= one["max_delay_ms"] + 1e-6, rule
    if in_typescript:
        for name, ours in scores["ours"].items():
            assert scores[smoothing.OURS_TS][name] == pytest.approx(ours, abs=1e-6)
        assert len(scores) > 10
    else:
        assert os.environ.get("CI") != "true"
