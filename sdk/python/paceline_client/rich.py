"""A stream on the terminal with Rich, paced.

    from paceline_client.rich import show

    text = await show(stream)

Rich is not among the SDK's dependencies: `pip install 'paceline[rich]'`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from typing import TypeVar

from paceline_client.options import PacerOptions
from paceline_client.shown import printable, text_of
from paceline_client.stream import Clock, smooth

try:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.markdown import Markdown
    from rich.text import Text
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "paceline_client.rich needs Rich: pip install 'paceline[rich]'", name=error.name
    ) from error

FRAMES_PER_S = 30.0
"""Rich draws 4 times a second if it is not told: too seldom to see a pace."""

T = TypeVar("T")


async def show(
    source: AsyncIterable[T],
    options: PacerOptions | str | None = None,
    *,
    console: Console | None = None,
    markdown: bool = False,
    frames_per_s: float = FRAMES_PER_S,
    on_arrival: Callable[[T], object] | None = None,
    clock: Clock | None = None,
) -> str:
    """Shows `source` as it streams; all its text at the end.

    The text is shown as it is, without control characters and never as Rich's markup, or as
    Markdown if that is asked for. What is returned is untouched. An error of the source is raised
    after the text that arrived before it is on show. Raises ValueError for an unknown preset.
    """
    text = ""

    def drawn() -> RenderableType:
        safe = printable(text)
        return Markdown(safe) if markdown else Text(safe)

    live = Live(
        get_renderable=drawn, console=console, refresh_per_second=frames_per_s,
        vertical_overflow="visible",
    )  # fmt: skip
    paced = smooth(source, options, on_arrival=on_arrival, clock=clock)
    async with paced as chunks:
        with live:
            async for chunk in chunks:
                text += text_of(chunk)
    return text
