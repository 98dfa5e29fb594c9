"""`paceline chat`: talk to any OpenAI-compatible address; the stream as it came beside smooth.

Below them, where the request went and why, tokens per pass, and what smoothing added. `--once` asks
one thing and prints the smooth text alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from paceline_client import (
    PRESETS,
    AsyncClient,
    AuthenticationError,
    ChatStream,
    PacelineError,
    PacerStats,
    Route,
    chunk_text,
)
from paceline_client.shown import printable

EXPLAIN = "x-paceline-explain"
FRAMES_PER_S = 30
LEAVING = ("/quit", "/exit")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "chat", help="talk through any OpenAI-compatible address, raw beside smooth",
        description=__doc__,
    )  # fmt: skip
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1", help="default: %(default)s")
    parser.add_argument("--model", help="default: the first that is served")
    parser.add_argument("--api-key", help="default: $OPENAI_API_KEY, if it is set")
    parser.add_argument("--pacing", choices=sorted(PRESETS), default="balanced")
    parser.add_argument("--max-tokens", type=int, metavar="N")
    parser.add_argument("--once", metavar="PROMPT", help="ask this and print the answer")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 at a good end, 1 if the one thing asked could not be answered."""
    talk = Talk(
        url=args.url,
        api_key=args.api_key or os.environ.get("OPENAI_API_KEY"),
        model=args.model,
        pacing=args.pacing,
        options={} if args.max_tokens is None else {"max_tokens": args.max_tokens},
    )
    if args.once is not None:
        return asyncio.run(_once(talk, args.once))
    return _converse(talk, Console(highlight=False))


@dataclass(kw_only=True)
class Talk:
    """A conversation so far, and where it is held."""

    url: str
    api_key: str | None = None
    model: str | None = None
    pacing: str = "balanced"
    options: dict[str, Any] = field(default_factory=dict)
    explain: bool = True
    messages: list[dict[str, str]] = field(default_factory=list)


@dataclass(kw_only=True)
class Turn:
    """One answer as it grows."""

    raw: str = ""
    smooth: str = ""
    num_bursts: int = 0
    completion_tokens: int | None = None
    tokens_per_pass: float | None = None
    route: Route = field(default_factory=Route)
    stats: PacerStats | None = None

    def arrived(self, chunk: dict[str, Any]) -> None:
        text = chunk_text(chunk)
        self.raw += text
        self.num_bursts += bool(text)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.completion_tokens = usage.get("completion_tokens")
        speculation = (chunk.get("metrics") or {}).get("speculative_decoding") or {}
        self.tokens_per_pass = speculation.get("mean_acceptance_length", self.tokens_per_pass)

    def facts(self) -> str:
        """Pool, reason, tokens per pass and added delay, as far as they are known."""
        explain = self.route.explain or {}
        passes = self.tokens_per_pass
        if passes is None and self.completion_tokens and self.num_bursts:
            passes = self.completion_tokens / self.num_bursts
        stats = self.stats
        known = [
            ("pool", self.route.pool),
            ("workload", self.route.workload),
            ("reason", explain.get("reason")),
            ("rule", explain.get("rule")),
            ("tokens per pass", f"{passes:.2f}" if passes else None),
            ("added delay", stats and f"{stats.mean_added_delay_ms:.0f} ms mean, "
             f"{stats.max_added_delay_ms:.0f} ms at most"),
        ]  # fmt: skip
        return " · ".join(f"{name} {value}" for name, value in known if value)


async def answer(talk: Talk, prompt: str, turn: Turn, show: Callable[[], object]) -> None:
    """Fills `turn`, calling `show` at every change; the conversation then has both sides.

    Raises PacelineError; what came before it is in `turn` and in the conversation.
    """
    talk.messages.append({"role": "user", "content": prompt})
    try:
        async with _asked(talk, turn) as chunks:
            turn.route = chunks.route
            async for chunk in chunks:
                turn.smooth += chunk_text(chunk)
                turn.stats = chunks.stats
                show()
    finally:
        if turn.raw:
            talk.messages.append({"role": "assistant", "content": turn.raw})
        else:
            talk.messages.pop()


@contextlib.asynccontextmanager
async def _asked(talk: Talk, turn: Turn) -> AsyncIterator[ChatStream]:
    """The stream; asks without the explanation where the key may not have it."""
    while True:
        headers = {EXPLAIN: "1"} if talk.explain else {}
        async with AsyncClient(talk.url, api_key=talk.api_key, headers=headers) as client:
            try:
                if talk.model is None:
                    talk.model = next(iter(await client.models()), "default")
                async with client.stream(
                    pacing=talk.pacing,
                    on_arrival=turn.arrived,
                    model=talk.model,
                    messages=talk.messages,
                    stream_options={"include_usage": True},
                    **talk.options,
                ) as chunks:
                    yield chunks
                return
            except AuthenticationError as error:
                if not talk.explain or getattr(error, "param", None) != EXPLAIN:
                    raise
        talk.explain = False


async def _once(talk: Talk, prompt: str) -> int:
    """The answer on stdout as it is paced, the facts on stderr."""
    turn, written = Turn(), 0

    def write() -> None:
        nonlocal written
        sys.stdout.write(printable(turn.smooth[written:]))
        sys.stdout.flush()
        written = len(turn.smooth)

    failed = None
    try:
        await answer(talk, prompt, turn, write)
    except PacelineError as error:
        failed = error
    sys.stdout.write("\n" if written else "")
    sys.stdout.flush()
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    if turn.facts():
        errors.print(Text(turn.facts()))
    if failed is not None:
        errors.print(Text(f"paceline: {_said(talk, failed)}"))
    return 1 if failed else 0


def _said(talk: Talk, error: PacelineError) -> str:
    """The error, with what the command's user can do about it."""
    status = getattr(error, "status", None)
    if status == 401:
        return f"{error}; say yours with --api-key, or in $OPENAI_API_KEY"
    if status == 404 and getattr(error, "code", None) is None:  # no OpenAI API's refusal
        return f"{talk.url}: {error}; is the API there? It usually ends in /v1"
    return str(error)


def _converse(talk: Talk, console: Console) -> int:
    """Until the user leaves. Ctrl-C ends an answer, and at the prompt the conversation."""
    console.print(f"{talk.url} · {', '.join(LEAVING)} or Ctrl-D ends it")
    while True:
        try:
            prompt = console.input("\n[bold]you[/bold] ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return 0
        if prompt in LEAVING:
            return 0
        if prompt:
            _turn(talk, prompt, console)


def _turn(talk: Talk, prompt: str, console: Console) -> None:
    turn = Turn()
    height = max(4, console.height - 8)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        last_s = 0.0

        def show() -> None:
            nonlocal last_s
            if time.monotonic() - last_s >= 1 / FRAMES_PER_S:
                last_s = time.monotonic()
                live.update(view(turn, console.width, height), refresh=True)

        problem = None
        try:
            asyncio.run(answer(talk, prompt, turn, show))
        except PacelineError as error:
            problem = _said(talk, error)
        except KeyboardInterrupt:
            problem = "stopped"
    console.print(Text(printable(turn.smooth)))
    console.print(Text(turn.facts(), style="dim"))
    if problem:
        console.print(Text(problem, style="red"))


def view(turn: Turn, width: int, height: int) -> Group:
    """Raw beside smooth, the last `height` lines of each, over the facts."""
    half = max(20, (width - 1) // 2)
    panels = [
        Panel(Text(tail(text, half - 4, height)), title=title, width=half, height=height + 2)
        for title, text in (("as it came", turn.raw), ("smooth", turn.smooth))
    ]
    return Group(Columns(panels, padding=0), Text(turn.facts(), style="dim"))


def tail(text: str, width: int, height: int) -> str:
    """The last `height` lines that `text` takes in `width` columns; looks at no more than that."""
    console = Console(width=width)
    lines = Text(printable(text[-width * height :])).wrap(console, width)
    return "\n".join(line.plain for line in lines[-height:])
