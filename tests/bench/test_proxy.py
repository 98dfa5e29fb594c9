"""The proxy bench's pure parts: schedule, figures, what counts, what is sent and answered."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest

from paceline.bench import results
from paceline.bench.proxy import canned, page
from paceline.bench.proxy.__main__ import main
from paceline.bench.proxy.bodies import MIN_BYTES, chat_body
from paceline.bench.proxy.cells import (
    CELLS,
    DIRECT,
    OURS,
    REQUEST_8,
    REQUEST_64,
    STREAM,
    Cell,
    IdleMemory,
    Measurement,
)
from paceline.bench.proxy.events import NUM_EVENTS, STAMP, StreamEvents
from paceline.bench.proxy.figures import Results, cpu_us, headline
from paceline.bench.proxy.limits import stream_counts
from paceline.bench.proxy.load import Sample
from paceline.bench.proxy.quantiles import Spread, quantile
from paceline.bench.proxy.runner import Plan
from paceline.bench.proxy.schedule import OpenLoop

SAMPLE = Sample(
    window_s=2.0, offered=1000, completed=1000, events=1000, failed=0, waiting=0,
    proxy_cpu_s=0.4, mock_cpu_s=0.1, client_cpu_s=0.1, machine_cpu_s=1.0, proxy_rss_bytes=2**26,
    latency_p50_s=0.001, latency_p99_s=0.002, ttft_p50_s=0.001, ttft_p99_s=0.002,
    event_delay_p50_s=0.001, event_delay_p99_s=0.002, event_gap_p99_s=0.011,
)  # fmt: skip


def measured(cell: Cell, target: str, *, repeat: int = 0, **seen: float) -> Measurement:
    sample = replace(SAMPLE, **seen)
    return Measurement(cell=cell, target=target, repeat=repeat, rate=500, sample=sample)


# --- the schedule ---------------------------------------------------------------------------------


def test_the_loop_is_open_what_is_late_does_not_move_what_follows() -> None:
    schedule = OpenLoop(start_s=100.0, rate=10.0)
    assert list(schedule.take_due(100.0)) == [100.0]
    stalled = list(schedule.take_due(100.55))  # nobody looked for half a second
    assert stalled == pytest.approx([100.1, 100.2, 100.3, 100.4, 100.5])
    assert schedule.next_due_s == pytest.approx(100.6)
    assert list(schedule.take_due(100.59)) == []


def test_a_rate_is_kept_over_any_time_whenever_it_is_looked_at() -> None:
    schedule = OpenLoop(start_s=0.0, rate=333.0)
    looked_at = [number * 0.0017 for number in range(6000)]
    due = [due_s for now_s in looked_at for due_s in schedule.take_due(now_s)]
    assert len(due) == math.floor(looked_at[-1] * 333.0) + 1
    assert schedule.num_taken == len(due)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        OpenLoop(start_s=0.0, rate=0.0)


# --- statistics -----------------------------------------------------------------------------------


def test_quantiles_are_values_that_were_seen() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert quantile(values, 0.5) == 3.0
    assert quantile(values, 0.99) == 5.0
    assert quantile(values, 0.2) == 1.0
    assert quantile([], 0.5) is None
    with pytest.raises(ValueError, match="share"):
        quantile(values, 0.0)


def test_a_spread_has_its_ends() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(median=2.0, least=1.0, most=3.0, number=3)
    assert Spread.of([]) is None


# --- when a measurement counts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ({"mock_cpu_s": 1.41}, "the mock used 7[01]% of a core"),
        ({"client_cpu_s": 1.41}, "the client used"),
        ({"proxy_cpu_s": 1.01}, "the proxy used"),
        ({"failed": 1}, "1 answers failed"),
        ({"waiting": 60}, "60 requests waited"),
        ({"completed": 0}, "nothing was answered"),
    ],
)
def test_a_cell_that_measures_something_else_is_invalid(seen: dict[str, float], why: str) -> None:
    one = measured(REQUEST_8, OURS, **seen)
    assert one.invalid is not None
    assert re.search(why, one.invalid)


def test_a_cell_within_its_bounds_is_valid() -> None:
    one = measured(REQUEST_8, OURS, mock_cpu_s=1.39, client_cpu_s=1.39, proxy_cpu_s=0.99)
    assert one.invalid is None


def test_cpu_is_per_request_or_per_event() -> None:
    assert measured(REQUEST_8, OURS, completed=800).cpu_us == pytest.approx(500)
    assert measured(STREAM, OURS, events=4000).cpu_us == pytest.approx(100)
    assert measured(STREAM, DIRECT).cpu_us is None


def test_streams_have_connections_enough_for_those_that_run_at_a_time() -> None:
    assert STREAM.connections_at(61.5) >= 2 * 40
    assert REQUEST_8.connections_at(61.5) == 8


# --- figures --------------------------------------------------------------------------------------


def all_cells() -> list[Measurement]:
    """Ours at 600, 500 and 400 µs, the peer at half of it each time, litellm at 20 times."""
    found = []
    for repeat, cpu_s in enumerate((0.6, 0.5, 0.4)):
        for cell in (REQUEST_8, REQUEST_64, STREAM):
            times = {"ttft_p50_s": 0.001 + repeat * 1e-3}
            found += [
                measured(cell, DIRECT, repeat=repeat, proxy_cpu_s=0.0, **times),
                measured(cell, "vllm-router", repeat=repeat, proxy_cpu_s=cpu_s / 2, **times),
                measured(cell, OURS, repeat=repeat, proxy_cpu_s=cpu_s,
                         ttft_p50_s=0.0015 + repeat * 1e-3),
                measured(cell, "litellm", repeat=repeat, proxy_cpu_s=cpu_s, completed=50),
            ]  # fmt: skip
    return found


MEMORY = IdleMemory(target=OURS, readings=((1000, 50 * 2**20), (3000, 90 * 2**20)))


def test_the_headline_comes_from_pairs_of_one_repeat() -> None:
    assert headline(Results(all_cells(), [MEMORY])) == {
        "cpu_request_ratio_8": 2.0,
        "cpu_request_ratio_64": 2.0,
        "cpu_event_ratio": 2.0,
        "litellm_cpu_request_ratio_64": 20.0,
        "added_ttft_p50_ms": 0.5,
        "kib_per_idle_stream": 20.5,
    }


def test_what_is_not_valid_is_in_no_figure() -> None:
    spoilt = [
        replace(one, sample=replace(one.sample, proxy_cpu_s=0.9, mock_cpu_s=1.9))
        if (one.repeat, one.target, one.cell) == (1, OURS, REQUEST_8)
        else one
        for one in all_cells()
    ]
    results_ = Results(spoilt, [])
    ratio = results_.ratio(cpu_us, REQUEST_8, OURS, "vllm-router")
    assert ratio == Spread(median=2.0, least=2.0, most=2.0, number=2)
    assert len(results_.measurements) == len(spoilt)
    alone = [one for one in spoilt if one.repeat == 1]
    assert headline(Results(alone, []))["cpu_request_ratio_8"] is None


def test_without_a_peer_its_figures_are_not_there_and_the_others_are() -> None:
    without = [one for one in all_cells() if one.target in (DIRECT, OURS)]
    figures = headline(Results(without, []))
    assert figures["cpu_request_ratio_8"] is None
    assert figures["added_ttft_p50_ms"] == pytest.approx(0.5)
    assert figures["kib_per_idle_stream"] is None


def test_the_page_has_ratios_first_and_says_what_is_missing() -> None:
    spoilt = [*all_cells(), measured(REQUEST_8, OURS, repeat=3, failed=7)]
    found = Results(spoilt, [MEMORY])
    report = page.Report(
        results=found,
        cells=(REQUEST_8, REQUEST_64, STREAM),
        targets=[DIRECT, OURS, "vllm-router", "litellm"],
        headline=headline(found),
        rates={f"{OURS} 512": 500.0},
        missing={"smg": "cannot be installed"},
        conditions={"machine": "2 cores"},
    )
    text = page.markdown(report)
    assert "| request-8-0.5K, per request | 2.00 (2.00 to 2.00) | 20.00 (20.00 to 20.00) |" in text
    assert text.index("ratios within a repeat") < text.index("µs: median")
    assert "| smg | all | cannot be installed |" in text
    assert "| ours | request-8-0.5K, repeat 4 | 7 answers failed |" in text
    assert "- machine: 2 cores" in text


def test_a_slow_peer_takes_part_in_its_cells_alone() -> None:
    plan = Plan(
        cells=CELLS, repeats=5, window_s=2, slow_cells=(REQUEST_64,), slow_repeats=2,
        idle_counts=(),
    )  # fmt: skip
    assert plan.takes_part(OURS, CELLS[-1], 4)
    assert plan.takes_part("litellm", REQUEST_64, 1)
    assert not plan.takes_part("litellm", REQUEST_64, 2)
    assert not plan.takes_part("litellm", REQUEST_8, 0)


def test_as_many_idle_streams_as_files_allow() -> None:
    assert stream_counts([1000, 2000, 4000, 8000], 20_000) == [1000, 2000, 4000, 8000]
    assert stream_counts([1000, 2000, 4000, 8000], 4096) == [1000]


def test_an_unknown_peer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--peers", "vllm-router,nginx"])
    assert "nginx is not known" in capsys.readouterr().err


def test_results_need_a_headline(tmp_path) -> None:
    with pytest.raises(ValueError, match="headline"):
        results.write("x", {"rows": []}, "page", folder=tmp_path)
    results.write("x", {"headline": {"a": 1}}, "page", folder=tmp_path / "new", suffix="md")
    assert json.loads((tmp_path / "new" / "x.json").read_text())["headline"] == {"a": 1}
    assert (tmp_path / "new" / "x.md").read_text() == "page\n"


# --- what is sent and answered --------------------------------------------------------------------


@pytest.mark.parametrize("num_bytes", [MIN_BYTES, 512, 32 * 1024, 256 * 1024])
@pytest.mark.parametrize("number", [0, 4])
def test_a_body_is_json_of_the_size_to_the_byte(num_bytes: int, number: int) -> None:
    body = chat_body(num_bytes, number, stream=True)
    assert len(body) == num_bytes
    assert json.loads(body)["stream"] is True


def test_bodies_differ() -> None:
    assert len({chat_body(512, number, stream=False) for number in range(20)}) == 20


def test_a_body_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        chat_body(100, 0, stream=False)


def test_events_are_chunks_of_vllms_size_that_carry_their_time() -> None:
    events = StreamEvents(7)
    for index in range(NUM_EVENTS):
        size, _, rest = events.chunk(index, 123_456_789).partition(b"\r\n")
        assert len(rest) == int(size, 16) + 2
        event = json.loads(rest.removeprefix(b"data: ").strip())
        assert 200 <= int(size, 16) <= 280
        assert int(STAMP.search(rest)[1]) == 123_456_789
        finish = event["choices"][0]["finish_reason"]
        assert (finish == "stop") == (index == NUM_EVENTS - 1)
    usage = events.usage().partition(b"\r\n")[2].removeprefix(b"data: ")
    assert json.loads(usage)["choices"] == []


def test_an_answer_has_about_600_bytes() -> None:
    assert 500 <= len(canned.completion()) <= 800
