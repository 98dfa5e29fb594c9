"""Saying what goes on, on a terminal and without one, and showing the end of a log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.markup import escape

HEARTBEAT_S = 15.0
"""Between two lines where there is no terminal."""


def say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def progress(console: Console, title: str) -> Iterator[Callable[[str], None]]:
    """Say that `title` goes on (a spinner, or a line now and then) and that it is done.

    Gives a function to call often with what is happening at the moment.
    """
    started_s = said_s = time.monotonic()

    def beat(detail: str) -> None:
        nonlocal said_s
        now_s = time.monotonic()
        line = f"{title} · {now_s - started_s:.0f} s · {detail}"
        if console.is_terminal:
            status.update(escape(line[: max(20, console.width - 4)]))
        elif now_s - said_s >= HEARTBEAT_S:
            said_s = now_s
            say(console, f"  still working: {line}")

    with console.status(title) as status:
        yield beat
    say(console, f"{title}: done in {time.monotonic() - started_s:.0f} s")


def _tail(log: Path, lines: int) -> list[str]:
    """The last lines of a log that are not blank, each cut to 200 characters."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 65536))
        text = file.read().decode(errors="replace")
        return [line[:200].rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return []


def last_line(log: Path) -> str:
    return "".join(_tail(log, 1))[:100].strip()


def evidence(log: Path) -> str:
    return "\n".join([f"; the end of {log}:", *(f"  {line}" for line in _tail(log, 20))])
