"""`make bench-smoothing`: how smooth, at which delay, at which cost; ours beside the usual rules.

Both SDKs' pacers, and the rules of others as `sdk/js/bench` has them: the AI SDK's and
assistant-ui's are their own code, the rest are written anew from what is known of them, at their
defaults, for comparison in kind.

On the hold-out half of the streams (`paceline.bench.streams`), at the engine layer: when each token
is handed out, no screen involved. The optimum beside it knows all arrivals beforehand and spends
the same greatest delay and end lag. Fails if what the SDK requires does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from paceline.bench import javascript, smoothing_page
from paceline.bench.javascript import Measured
from paceline.bench.optimum import Score, score
from paceline.bench.pacing_rules import RULES, ours
from paceline.bench.results import RESULTS, screen, write_results
from paceline.bench.smoothing_aims import Standing, standing
from paceline.bench.streams import SPECULATING, RecordedStream, recordings, synthetic
from paceline_client import Pacer, PacerOptions

MAX_END_LAG_MS = 150.0
MAX_RHO_SPEC = 1.15
ROUNDING_MS = 1e-3
NUM_SEEDS = 10
LENGTHS = (25_000, 50_000, 100_000)
IN_THE_README = ("spec45", "spec120", "synthetic45", "stall")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamClass:
    """Streams that are told of together, never pooled with others."""

    name: str
    about: str
    streams: tuple[RecordedStream, ...]


def stream_classes(traces: Path, *, number: int, first_seed: int) -> list[StreamClass]:
    """The classes of the table: from recordings `*-number`, and seeds from `first_seed` on."""
    speculating = recordings(traces, number, SPECULATING)
    plain = recordings(traces, number, ("plain",))
    seeds = range(first_seed, first_seed + NUM_SEEDS)

    def made(name: str, about: str, streams: list[RecordedStream]) -> StreamClass:
        return StreamClass(name=name, about=about, streams=tuple(streams))

    spec45 = [synthetic(seed, pass_ms=45, mean_tokens=2.5) for seed in seeds]
    return [
        made("spec45", "recorded, speculating, 45 ms passes",
             [s.scaled_to(45) for s in speculating]),
        made("spec120", "recorded, speculating, 120 ms passes",
             [s.scaled_to(120) for s in speculating]),
        made("plain45", "recorded, plain, 45 ms passes", [s.scaled_to(45) for s in plain]),
        made("synthetic45", "45 ms passes of 2.5 tokens", spec45),
        made("stall", "the same, 2 % stalls of 0.6-1.2 s",
             [s.with_stalls(0.02, seed) for s, seed in zip(spec45, seeds, strict=True)]),
        made("synthetic120", "120 ms passes of 4.5 tokens",
             [synthetic(seed, pass_ms=120, mean_tokens=4.5, k=7) for seed in seeds]),
    ]  # fmt: skip


Scores = dict[str, dict[str, list[Score]]]

OURS_TS = "ours, TypeScript"


def score_all(classes: list[StreamClass], measured: Measured | None = None) -> Scores:
    """class → rule → a score for each stream; with what was measured in TypeScript."""
    scores: Scores = {}
    for one in classes:
        times = {name: [rule(s) for s in one.streams] for name, rule in RULES.items()}
        for name, of_rule in (measured.times[one.name] if measured else {}).items():
            times[OURS_TS if name == "ours" else name] = of_rule
        scores[one.name] = {
            name: [
                score(s.arrivals, shown, end_ms=s.end_ms)
                for s, shown in zip(one.streams, of_rule, strict=True)
            ]
            for name, of_rule in times.items()
        }
    return scores


def cpu_us_per_token(stream: RecordedStream, *, repeats: int = 30) -> float:
    """CPU time of pacing one token, in µs; the least of as many runs as in TypeScript."""

    def once() -> float:
        began_s = time.process_time()
        ours(stream)
        return time.process_time() - began_s

    return min(once() for _ in range(repeats)) * 1e6 / len(stream.arrivals)


def cpu_us_per_char(text: str, num_chars: int, *, delta_chars: int = 4) -> float:
    """CPU time of pacing one character of a long text without spaces, in µs."""
    whole = text * (num_chars // len(text))
    pacer, now_ms = Pacer(PacerOptions()), 0.0
    began_s = time.process_time()
    for start in range(0, len(whole), delta_chars):
        now_ms += 5.0
        pacer.push(whole[start : start + delta_chars], now_ms)
        pacer.take(now_ms)
    pacer.finish(now_ms)
    pacer.take(now_ms + MAX_END_LAG_MS + 1)
    return (time.process_time() - began_s) * 1e6 / len(whole)


TIMED = synthetic(1, pass_ms=45, mean_tokens=2.5)


def costs(measured: Measured | None = None) -> dict[str, Any]:
    """CPU per token, and per character for ever longer texts (linear if it stays the same); bytes.

    Bytes are what a page must load, minified and gzipped, for the rules whose own code is there.
    """
    texts = {"letters": "x", "emoji": "👨‍👩‍👧‍👦"}
    us_per_char = {
        f"{name}, Python": {str(length): cpu_us_per_char(text, length) for length in LENGTHS}
        for name, text in texts.items()
    }
    us_per_token = {"ours": cpu_us_per_token(TIMED)}
    if not measured:
        return {"us_per_token": us_per_token, "us_per_char": us_per_char, "gzip_bytes": {}}
    for name, us in measured.us_per_token.items():
        us_per_token[OURS_TS if name == "ours" else name] = us
    for name, by_length in measured.us_per_char.items():
        us_per_char[f"{name}, TypeScript"] = dict(by_length)
    return {
        "us_per_token": us_per_token,
        "us_per_char": us_per_char,
        "gzip_bytes": {
            OURS_TS if name == "ours" else name: size for name, size in measured.gzip_bytes.items()
        },
    }


def headline(scores: Scores, cost: dict[str, Any]) -> dict[str, float]:
    """The figures that are kept from run to run."""
    spec = scores["spec45"]["ours"] + scores["spec120"]["ours"]
    us_per_token = cost["us_per_token"]
    figures = {
        "rho_spec": round(median(one.rho for one in spec), 4),
        "rho_stall": round(median(one.rho for one in scores["stall"]["ours"]), 4),
        "mean_added_delay_ms_spec45": round(
            median(one.mean_delay_ms for one in scores["spec45"]["ours"]), 2
        ),
        "max_end_lag_ms": round(max(one.end_lag_ms for _, one in of_ours(scores)), 3),
        "us_per_token_py": round(us_per_token["ours"], 2),
    }
    if OURS_TS in us_per_token:
        figures["us_per_token_js"] = round(us_per_token[OURS_TS], 2)
        figures["core_gzip_bytes"] = cost["gzip_bytes"][OURS_TS]
    return figures


def of_ours(scores: Scores) -> list[tuple[str, Score]]:
    """(class, score) of every stream, in both languages."""
    return [
        (name, one)
        for name, by_rule in scores.items()
        for rule in ("ours", OURS_TS)
        for one in by_rule.get(rule, ())
    ]


def broken_promises(scores: Scores, figures: dict[str, float]) -> list[str]:
    """What must hold and does not. That the text is equal, the rules have seen to themselves."""
    found = []
    bound_ms = PacerOptions().max_delay_ms + ROUNDING_MS
    for name, one in of_ours(scores):
        if one.first_ms > ROUNDING_MS:
            found.append(f"{name}: the first token waited {one.first_ms:.3f} ms")
        if one.end_lag_ms > MAX_END_LAG_MS + ROUNDING_MS:
            found.append(f"{name}: the end lagged {one.end_lag_ms:.3f} ms")
        if one.max_delay_ms > bound_ms:
            found.append(f"{name}: a token was delayed {one.max_delay_ms:.3f} ms")
    if figures["rho_spec"] > MAX_RHO_SPEC:
        found.append(f"rho_spec is {figures['rho_spec']}, over {MAX_RHO_SPEC}")
    return found


def report(
    classes: list[StreamClass],
    scores: Scores,
    cost: dict[str, Any],
    standings: dict[str, Standing],
) -> dict[str, Any]:
    """What is written to `smoothing.json`."""
    return {
        "headline": headline(scores, cost),
        "classes": {one.name: one.about for one in classes},
        "scores": {
            name: {
                rule: {s.name: asdict(got) for s, got in zip(one.streams, of_rule, strict=True)}
                for rule, of_rule in scores[name].items()
            }
            for one in classes
            for name in [one.name]
        },
        "cost": cost,
        "aims": {name: asdict(one) for name, one in standings.items()},
    }


def main(argv: list[str] | None = None) -> int:
    """0, or 1 if a requirement is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=Path("tests/data/traces"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--tuning", action="store_true", help="on the streams to tune on, and write nothing"
    )
    parser.add_argument("--markdown", action="store_true", help="the README's tables as well")
    args = parser.parse_args(argv)
    number, first_seed = (1, 1) if args.tuning else (2, 1000)
    classes = stream_classes(args.traces, number=number, first_seed=first_seed)
    measured = None
    if javascript.ready():
        measured = javascript.measure({one.name: one.streams for one in classes}, TIMED)
    scores, cost = score_all(classes, measured), costs(measured)
    standings = {one.name: standing(scores[one.name], one.streams) for one in classes}
    figures, console = headline(scores, cost), screen()
    page = partial(
        smoothing_page.draw, scores=scores, cost=cost, standings=standings, figures=figures
    )
    page(console)
    for missing in _not_measured(measured):
        console.print(f"NOT MEASURED, {missing}")
    if args.markdown:
        sys.stdout.write(smoothing_page.readme(scores, cost, standings, IN_THE_README) + "\n")
    if not args.tuning:
        write_results(args.out, "smoothing", report(classes, scores, cost, standings), page)
    broken = broken_promises(scores, figures)
    for promise in broken:
        console.print(f"NOT MET: {promise}")
    return 1 if broken else 0


def _not_measured(measured: Measured | None) -> list[str]:
    if not measured:
        return [
            "for want of the SDK's packages (make setup installs them; it needs Node 20): "
            "our TypeScript pacer, the rules of others"
        ]
    if "assistant-ui" not in measured.gzip_bytes:
        return ["for want of its package: assistant-ui's own code; a rule written anew stands in"]
    return []


if __name__ == "__main__":
    sys.exit(main())
