"""Prometheus text from workers: engines together, and unknown never taken for zero."""

from __future__ import annotations

import gzip
from math import isclose, isfinite
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from paceline.core.exposition import num_speculative_tokens, samples, worker_load
from paceline.core.types import WorkerLoad

TRACES = Path(__file__).parents[1] / "data" / "traces"
SERVERS = {"plain": None, "ngram-k4": 4, "suffix": 8, "draft-k3": 3}


def recorded(server: str) -> str:
    with gzip.open(TRACES / f"{server}.metrics.txt.gz", "rt", encoding="utf-8") as file:
        return file.read()


# ---- a real worker's text ------------------------------------------------------------------------


@pytest.mark.parametrize("server", SERVERS)
def test_recorded_metrics_read_as_prometheus_reads_them(server: str) -> None:
    text = recorded(server)
    ours = [(sample.name, dict(sample.labels), sample.value) for sample in samples(text)]
    theirs = [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("vllm:") and isfinite(sample.value)
    ]
    assert len(ours) > 100
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)


@pytest.mark.parametrize("server", SERVERS)
def test_recorded_worker_was_idle(server: str) -> None:
    assert worker_load(recorded(server)) == WorkerLoad(running=0, waiting=0, kv_cache_usage=0)


@pytest.mark.parametrize(("server", "k"), SERVERS.items())
def test_a_workers_k_is_told_by_its_metrics(server: str, k: int | None) -> None:
    assert num_speculative_tokens(recorded(server)) == k


def test_speculation_counters_are_picked_by_prefix() -> None:
    spec = list(samples(recorded("ngram-k4"), prefix="vllm:spec_decode_"))
    accepted = {
        sample.labels["position"]: sample.value
        for sample in spec
        if sample.name == "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    }
    assert accepted == {"0": 127.0, "1": 98.0, "2": 85.0, "3": 71.0}
    assert all(sample.name.startswith("vllm:spec_decode_") for sample in spec)


# ---- several engines, odd values, odd lines-------------------------------------------------------


def test_counts_are_added_up_over_engines() -> None:
    text = 'vllm:num_requests_waiting{engine="0"} 40\nvllm:num_requests_waiting{engine="1"} 0\n'
    assert worker_load(text).waiting == 40
    assert worker_load("\n".join(reversed(text.splitlines()))).waiting == 40


def test_ratios_are_averaged_over_engines() -> None:
    text = 'vllm:kv_cache_usage_perc{engine="0"} 0.9\nvllm:kv_cache_usage_perc{engine="1"} 0.1\n'
    assert worker_load(text).kv_cache_usage == 0.5


@pytest.mark.parametrize("name", ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"])
def test_kv_cache_usage_is_known_by_either_name(name: str) -> None:
    assert worker_load(f"{name} 0.25\n").kv_cache_usage == 0.25


def test_the_present_name_counts_where_both_are_there() -> None:
    text = "vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.25\n"
    assert worker_load(text).kv_cache_usage == 0.25


def test_the_old_name_counts_where_the_present_one_says_nothing() -> None:
    text = "vllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.25\n"
    assert worker_load(text).kv_cache_usage == 0.25


@pytest.mark.parametrize("text", ["", "\n", "# HELP x y\n", "other:num_requests_running 3\n"])
def test_what_is_missing_is_unknown(text: str) -> None:
    assert worker_load(text) == WorkerLoad(running=None, waiting=None, kv_cache_usage=None)


@pytest.mark.parametrize("value", ["NaN", "nan", "+Inf", "-Inf", "Infinity", "-1", "1.7e308"])
def test_what_is_no_number_is_unknown(value: str) -> None:
    text = f"vllm:num_requests_running {value}\nvllm:num_requests_waiting 2\n"
    assert worker_load(text) == WorkerLoad(running=None, waiting=2, kv_cache_usage=None)


def test_a_worker_is_unknown_where_one_of_its_engines_is() -> None:
    text = (
        'vllm:num_requests_running{engine="0"} NaN\nvllm:num_requests_running{engine="1"} 1\n'
        'vllm:kv_cache_usage_perc{engine="0"} 0.1\nvllm:kv_cache_usage_perc{engine="1"} NaN\n'
    )
    assert worker_load(text) == WorkerLoad()


@pytest.mark.parametrize(
    "bad",
    [
        "# TYPE vllm:num_requests_running unheard_of",
        "# TYPE",
        "#",
        "vllm:num_requests_running",
        "vllm:num_requests_running ",
        "vllm:num_requests_running three",
        'vllm:num_requests_running{engine="0 7',
        'vllm:num_requests_running{engine="0"',
        "vllm:num_requests_running{engine=0}7",
        "vllm: 7",
        "\x00\x01 vllm",
        "{} 7",
        "é",
    ],
)
def test_a_bad_line_is_skipped_and_the_rest_kept(bad: str) -> None:
    good = 'vllm:num_requests_running{engine="0"} 3'
    for lines in ([bad, good], [good, bad], [bad, good, bad]):
        assert worker_load("\n".join(lines)).running == 3


@pytest.mark.parametrize(
    "line",
    [
        "vllm:num_requests_running 3",
        "vllm:num_requests_running{} 3",
        "vllm:num_requests_running\t3.0",
        "vllm:num_requests_running 3e0 1795973102685",
        'vllm:num_requests_running{engine="0",} 3',
        'vllm:num_requests_running{engine="0",model_name="a b"} 3',
        'vllm:num_requests_running{model_name="}",engine="0"}   3',
        'vllm:num_requests_running{model_name="say \\"} 9\\" or \\\\"} 3',
        "vllm:num_requests_running 3\r",
    ],
)
def test_a_good_line_is_read_however_it_is_spelled(line: str) -> None:
    assert worker_load(f"{line}\n").running == 3


def test_names_that_only_begin_alike_are_told_apart() -> None:
    text = (
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 5\n'
        "vllm:num_requests_waiting 2\nvllm:num_requests_running_total 9\n"
    )
    assert worker_load(text) == WorkerLoad(waiting=2)


def test_only_names_that_begin_with_the_prefix_are_read() -> None:
    text = "other_vllm:x 1\n# vllm:x 2\nvllm:x 3\n"
    assert [(sample.name, sample.value) for sample in samples(text)] == [("vllm:x", 3.0)]


def test_an_engine_more_adds_no_draft_position() -> None:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    text = "".join(
        f'{name}{{engine="{engine}",position="{position}"}} 0.0\n'
        for engine in range(2)
        for position in range(3)
    )
    assert num_speculative_tokens(text) == 3


# ---- laws ----------------------------------------------------------------------------------------

counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=4)
labels = st.text(st.sampled_from('ab"\\\n{}, =#é\r\u2028'), max_size=8)


@given(running=counts, model=labels)
def test_what_prometheus_client_writes_is_read_back(running: list[int], model: str) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("vllm:num_requests_running", "help", ["engine", "model_name"], registry=registry)
    for engine, count in enumerate(running):
        gauge.labels(engine=str(engine), model_name=model).set(count)
    assert worker_load(generate_latest(registry).decode()).running == sum(running)


@given(usage=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_an_average_of_fractions_is_one(usage: list[float]) -> None:
    text = "\n".join(
        f'vllm:kv_cache_usage_perc{{engine="{engine}"}} {value!r}'
        for engine, value in enumerate(usage)
    )
    assert isclose(worker_load(text).kv_cache_usage, sum(usage) / len(usage))


@given(text=st.text() | st.text(st.sampled_from('x{}"\\=1. \n')).map("vllm:".__add__))
def test_no_text_makes_reading_fail(text: str) -> None:
    assert all(isfinite(sample.value) for sample in samples(text))
    worker_load(text)
    num_speculative_tokens(text)
