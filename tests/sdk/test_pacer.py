"""The pacer: the vectors that every language passes, and what holds whatever arrives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from types import FrameType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline_client import PRESETS, Hint, Pacer, PacerOptions, Piece, Unit
from paceline_client.pacer import PacerStats
from vectors import pacer_cases

LANES = ("0.text", "0.reasoning", "1.text")
TICK_MS = 0.001


# ---- the vectors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pacer_cases.CASES)
def test_vector(name: str) -> None:
    case = pacer_cases.CASES[name]
    played = pacer_cases.play(case)
    assert [entry[1:] for entry in played] == [entry[1:] for entry in case["shown"]]
    times = [entry[0] for entry in case["shown"]]
    assert [entry[0] for entry in played] == pytest.approx(times, abs=0.01)


# ---- the laws ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    gap_ms: float
    text: str
    num_tokens: int | None
    lane: str
    part: bool


gaps_ms = st.sampled_from([0.0, 0.5, 3.0, 5.0, 20.0, 45.0, 120.0, 450.0, 2000.0])
texts = st.text(max_size=12) | st.sampled_from(
    [
        "Hello",
        " world",
        "👨‍",
        "👩‍👧",
        "🇩",
        "🇪 ",
        "\u0301",
        "```",
        "py\n",
        "\x1b[3",
        "1m",
        "中文字",
        " ",
    ]
)
arrivals = st.lists(
    st.builds(
        Arrival,
        gap_ms=gaps_ms,
        text=texts,
        num_tokens=st.none() | st.integers(0, 6),
        lane=st.sampled_from(LANES),
        part=st.sampled_from([False, False, False, True]),
    ),
    max_size=25,
)
options = st.builds(
    PacerOptions,
    max_delay_ms=st.sampled_from([0.0, 50.0, 400.0, 1000.0]),
    min_delay_ms=st.sampled_from([0.0, 100.0]),
    drain_ms=st.sampled_from([0.0, 150.0]),
    unit=st.sampled_from(Unit),
    enabled=st.sampled_from([True, True, True, False]),
)

Shown = list[tuple[float, Piece]]


def feed(pacer: Pacer, stream: list[Arrival], *, looks: bool = False) -> tuple[Shown, float]:
    """What was shown so far, and the time. With `looks`, it is asked for at every arrival."""
    shown: Shown = []
    now_ms = 0.0
    for number, arrival in enumerate(stream):
        now_ms += arrival.gap_ms
        if arrival.part:
            pacer.part(number, now_ms)
        else:
            tokens = arrival.num_tokens
            pacer.push(arrival.text, now_ms, lane=arrival.lane, num_tokens=tokens, cargo=number)
        if looks:
            shown += pacer.take_timed(now_ms)
    return shown, now_ms


def run(stream: list[Arrival], chosen: PacerOptions | None = None) -> tuple[Shown, float]:
    """All that is shown, and when the stream was finished."""
    pacer = Pacer(chosen)
    _, end_ms = feed(pacer, stream)
    pacer.finish(end_ms)
    return pacer.take_timed(inf), end_ms


def text_of(pieces: list[Piece], lane: str) -> str:
    return "".join(piece.text for piece in pieces if piece.lane == lane)


def sent(stream: list[Arrival], lane: str) -> str:
    return "".join(a.text for a in stream if a.lane == lane and not a.part)


@given(arrivals, options)
def test_text_out_is_text_in(stream: list[Arrival], chosen: PacerOptions) -> None:
    shown, _ = run(stream, chosen)
    for lane in LANES:
        assert text_of([piece for _, piece in shown], lane) == sent(stream, lane)


@given(arrivals, options)
def test_everything_keeps_its_order(stream: list[Arrival], chosen: PacerOptions) -> None:
    shown, _ = run(stream, chosen)
    cargoes = [piece.cargo for _, piece in shown]
    assert cargoes == sorted(cargoes)
    assert set(cargoes) == set(range(len(stream)))
    for number in range(len(stream)):
        own = [piece for _, piece in shown if piece.cargo == number]
        assert [piece.first for piece in own] == [True] + [False] * (len(own) - 1)
        assert [piece.last for piece in own] == [False] * (len(own) - 1) + [True]
        tokens = [piece.tokens for piece in own]
        assert all(before[1] == after[0] for before, after in pairwise(tokens))
        if not stream[number].part:
            assert (tokens[0][0], tokens[-1][1]) == (0, stream[number].num_tokens or 0)


@given(arrivals, options)
@example([Arrival(0, "Hi", 1, "0.text", False), Arrival(450, "x" * 60, 60, "0.text", False)] * 3,
         PacerOptions())  # fmt: skip
def test_nothing_is_early_nor_held_longer_than_allowed(
    stream: list[Arrival], chosen: PacerOptions
) -> None:
    shown, _ = run(stream, chosen)
    times = [at_ms for at_ms, _ in shown]
    assert times == sorted(times)
    for at_ms, piece in shown:
        assert -TICK_MS <= at_ms - piece.arrival_ms <= chosen.max_delay_ms + TICK_MS


@given(arrivals, options)
def test_all_is_shown_soon_after_the_finish(stream: list[Arrival], chosen: PacerOptions) -> None:
    shown, end_ms = run(stream, chosen)
    assert all(at_ms <= end_ms + chosen.drain_ms + TICK_MS for at_ms, _ in shown)


@given(arrivals, options)
def test_what_stands_before_a_part_is_hurried(stream: list[Arrival], chosen: PacerOptions) -> None:
    shown, _ = run(stream, chosen)
    for at_ms, piece in shown:
        if piece.lane == "":
            assert at_ms - piece.arrival_ms <= chosen.drain_ms + TICK_MS


@given(arrivals, options)
def test_the_first_unit_is_out_at_once(stream: list[Arrival], chosen: PacerOptions) -> None:
    pacer = Pacer(chosen)
    stream = [arrival for arrival in stream if arrival.text and not arrival.part]
    shown, _ = feed(pacer, stream[:1], looks=True)
    assert [piece.text for _, piece in shown][:1] != [""]
    assert len(shown) >= len(stream[:1])


@given(arrivals, options)
def test_when_it_is_asked_makes_no_difference(stream: list[Arrival], chosen: PacerOptions) -> None:
    pacer = Pacer(chosen)
    asked, end_ms = feed(pacer, stream, looks=True)
    pacer.finish(end_ms)
    while (due_ms := pacer.next_due_ms) is not None:
        asked += pacer.take_timed(due_ms)
    at_the_end, _ = run(stream, chosen)

    def plain(shown: Shown) -> list[tuple[float, str, str]]:
        return [(round(at_ms, 6), piece.lane, piece.text) for at_ms, piece in shown]

    assert plain(asked) == plain(at_the_end)


@given(arrivals, options)
def test_flush_and_abort_lose_nothing(stream: list[Arrival], chosen: PacerOptions) -> None:
    for leave in (Pacer.flush, Pacer.abort):
        pacer = Pacer(chosen)
        shown, now_ms = feed(pacer, stream, looks=True)
        pieces = [piece for _, piece in shown] + leave(pacer, now_ms)
        for lane in LANES:
            assert text_of(pieces, lane) == sent(stream, lane)
        assert pacer.next_due_ms is None
        assert pacer.take(now_ms + 1000) == []
        assert leave(pacer, now_ms + 1000) == []


FAMILY = "👨‍👩‍👧‍👦"
CLUSTERS = ["a", "é", " ", "\n", FAMILY, "👍🏽", "❤️", "🇩🇪", "की", "\x1b[31m", "字"]


@given(
    st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=20),
    st.lists(st.integers(1, 5), min_size=1),
    st.sampled_from(Unit),
)
def test_no_piece_ends_within_a_character(
    clusters: list[str], sizes: list[int], unit: Unit
) -> None:
    text = "x" + "".join(clusters)  # the first unit is never held
    edges, at = {0}, 0
    for cluster in ["x", *clusters]:
        at += len(cluster)
        edges.add(at)
    pacer, now_ms, start = Pacer(PacerOptions(unit=unit)), 0.0, 0
    pacer.push(text[:1], now_ms)
    start = 1
    while start < len(text):
        size = sizes[start % len(sizes)]
        now_ms += 5  # the longest character arrives within half the hold
        pacer.push(text[start : start + size], now_ms)
        start += size
    pacer.finish(now_ms)
    shown_to = 0
    for _, piece in pacer.take_timed(inf):
        shown_to += len(piece.text)
        assert shown_to in edges


def test_an_unfinished_character_waits_no_longer_than_the_hold() -> None:
    pacer = Pacer()
    pacer.push("Hi", 0, num_tokens=1)
    pacer.take(0)
    pacer.push("👨‍", 500, num_tokens=1)
    assert pacer.next_due_ms == 600
    assert [piece.text for piece in pacer.take(600)] == ["👨‍"]


def test_a_stream_that_cuts_accents_off_is_read_with_care() -> None:
    pacer = Pacer()
    for number, text in enumerate(["e", "\u0301", "te", "\u0301"]):
        pacer.push(text, number * 50.0, num_tokens=1)
    pacer.finish(150)
    assert [piece.text for piece in pacer.take(inf)] == ["e", "\u0301", "te\u0301"]


# ---- the shape of the output ---------------------------------------------------------------------


def bursts(pacer: Pacer, *, period_ms: float, size: int, number: int) -> list[float]:
    """Times of the units of a periodic stream."""
    for burst in range(number):
        pacer.push(" word" * size, burst * period_ms, num_tokens=size)
    pacer.finish((number - 1) * period_ms)
    return [at_ms for at_ms, _ in pacer.take_timed(inf)]


def test_periodic_bursts_become_even() -> None:
    times = bursts(Pacer(), period_ms=45, size=3, number=60)
    gaps = [after - before for before, after in pairwise(times[60:-30])]
    assert max(gaps) < 16.5
    assert min(gaps) > 13.5


def test_a_slow_stream_of_single_tokens_is_not_sped_up_nor_bunched() -> None:
    times = bursts(Pacer(), period_ms=125, size=1, number=40)
    gaps = [after - before for before, after in pairwise(times[:-3])]
    assert max(gaps) <= 125 * 1.5 + TICK_MS


def test_a_stall_does_not_teach_it_to_wait() -> None:
    pacer = Pacer()
    for burst in range(40):
        pacer.push(" a b c", burst * 45.0, num_tokens=3)
    before = pacer.stats.delay_target_ms
    for burst in range(40):
        pacer.push(" a b c", 40 * 45.0 + 1500 + burst * 45.0, num_tokens=3)
    assert pacer.stats.delay_target_ms <= before * 1.05


def test_a_hint_paces_the_first_burst() -> None:
    def second_at(hint: Hint | None) -> float:
        pacer = Pacer()
        if hint is not None:
            pacer.hint(hint)
        pacer.push(" a b c", 0, num_tokens=3)
        pacer.finish(1000)
        return pacer.take_timed(inf)[1][0]

    assert second_at(Hint(num_tokens=3, next_ms=90)) > second_at(None)


def test_switched_off_nothing_waits_and_nothing_is_cut() -> None:
    pacer = Pacer(PRESETS["off"])
    pacer.push("Hello 👨‍", 0, num_tokens=3)
    pacer.push("👩 world", 0, num_tokens=3)
    assert [piece.text for piece in pacer.take(0)] == ["Hello 👨‍", "👩 world"]


def test_words_are_shown_whole() -> None:
    pacer = Pacer(PacerOptions(unit=Unit.WORD))
    for number, text in enumerate(["One", " tw", "o three", " 中文", " end"]):
        pacer.push(text, number * 30.0)
    pacer.finish(120)
    assert [piece.text for piece in pacer.take(inf)] == [
        "One",
        " two",
        " three",
        " 中",
        "文",
        " end",
    ]


def test_base64_is_not_held_for_a_space() -> None:
    pacer = Pacer(PacerOptions(unit=Unit.WORD))
    pacer.push("QUJD" * 300, 0)
    assert pacer.next_due_ms == 0
    pacer.finish(10)
    assert all(at_ms <= 160 for at_ms, _ in pacer.take_timed(inf))


def test_log_probabilities_say_where_tokens_end() -> None:
    pacer = Pacer()
    pacer.push("x", 0, num_tokens=1)
    pacer.push("Hello, world", 45, num_tokens=3, token_texts=["Hello", ",", " world"])
    pacer.finish(45)
    shown = pacer.take(inf)[1:]
    assert [piece.text for piece in shown] == ["Hello", ",", " world"]
    assert [piece.tokens for piece in shown] == [(0, 1), (1, 2), (2, 3)]


def test_time_does_not_go_back() -> None:
    pacer = Pacer()
    pacer.push("a", 10)
    with pytest.raises(ValueError, match="time went back"):
        pacer.push("b", 9)


@pytest.mark.parametrize("wrong", [{"max_delay_ms": -1}, {"drain_ms": inf}, {"unit": "line"}])
def test_options_that_cannot_be_kept_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (messages differ by field)
        PacerOptions(**wrong)


def test_stats_say_what_was_added() -> None:
    pacer = Pacer()
    for burst in range(20):
        pacer.push(" a b c", burst * 45.0, num_tokens=3)
    stats = pacer.stats
    assert isinstance(stats, PacerStats)
    assert stats.units_per_burst == 3
    assert stats.gap_ms == pytest.approx(15, rel=0.05)
    assert 0 < stats.mean_added_delay_ms <= stats.max_added_delay_ms <= 400
    assert stats.num_chars + stats.waiting_chars == 20 * 6


def num_calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls: a cost that is the same on any machine, at any time."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def pace(text: str, num_chars: int, unit: Unit, delta_chars: int) -> None:
    """A long text without spaces through a pacer."""
    pacer, now_ms = Pacer(PacerOptions(unit=unit)), 0.0
    whole = text * (num_chars // len(text))
    for start in range(0, len(whole), delta_chars):
        now_ms += 5
        pacer.push(whole[start : start + delta_chars], now_ms)
        pacer.take(now_ms)
    pacer.finish(now_ms)
    pacer.take(inf)


@pytest.mark.parametrize("delta_chars", [3, 10_000], ids=["small-deltas", "one-delta"])
@pytest.mark.parametrize(
    "text", ["x", FAMILY, "e\u0301", "字"], ids=["ascii", "emoji", "marks", "han"]
)
@pytest.mark.parametrize("unit", list(Unit))
def test_work_grows_as_the_text_does(text: str, unit: Unit, delta_chars: int) -> None:
    few = num_calls(lambda: pace(text, 2_000, unit, delta_chars))
    many = num_calls(lambda: pace(text, 8_000, unit, delta_chars))
    assert many <= 4.3 * few


def call_tools(num_deltas: int) -> None:
    """The deltas of a tool call in one read, behind text that waits."""
    pacer = Pacer()
    pacer.push("word " * 100, 0)
    for number in range(num_deltas):
        pacer.part(number, 0)
    pacer.take(inf)


def test_work_grows_as_the_deltas_of_a_tool_call_do() -> None:
    few, many = (num_calls(lambda number=number: call_tools(number)) for number in (500, 2_000))
    assert many <= 4.3 * few


def test_tokens_that_make_one_character_are_that_characters():
    pacer = Pacer()
    pacer.push("a🇩🇪b", 0, num_tokens=4, token_texts=["a", "🇩", "🇪", "b"])
    pacer.finish(0)
    pieces = [(piece.text, piece.tokens) for piece in pacer.take(inf)]
    assert pieces == [("a", (0, 1)), ("🇩🇪", (1, 3)), ("b", (3, 4))]
