"""A stream in a Textual widget, paced.

    from paceline_client.textual import play_into

    text = await play_into(self.query_one(Markdown), stream)      # in a worker of the app

Textual is not among the SDK's dependencies: `pip install 'paceline[textual]'`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from typing import TypeVar

from paceline_client.options import PacerOptions
from paceline_client.shown import printable, text_of
from paceline_client.stream import Clock, smooth

try:
    from textual.content import Content
    from textual.widgets import Markdown, Static
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "paceline_client.textual needs Textual: pip install 'paceline[textual]'", name=error.name
    ) from error

T = TypeVar("T")


async def play_into(
    widget: Markdown | Static,
    source: AsyncIterable[T],
    options: PacerOptions | str | None = None,
    *,
    on_arrival: Callable[[T], object] | None = None,
    clock: Clock | None = None,
) -> str:
    """Shows `source` in `widget` as it streams; all its text at the end.

    At the end of a Markdown widget, whose own stream gathers what comes while it is drawing; a
    Static or Label shows it in the place of what it had, as text and never as markup. An error of
    the source is raised after the text that arrived before it is on show. Raises ValueError for an
    unknown preset.
    """
    if isinstance(widget, Markdown):
        return await _into_markdown(widget, source, options, on_arrival, clock)
    text = ""
    async with smooth(source, options, on_arrival=on_arrival, clock=clock) as chunks:
        async for chunk in chunks:
            text += text_of(chunk)
            widget.update(Content(printable(text)))
    return text


async def _into_markdown(
    widget: Markdown,
    source: AsyncIterable[T],
    options: PacerOptions | str | None,
    on_arrival: Callable[[T], object] | None,
    clock: Clock | None,
) -> str:
    text = ""
    stream = Markdown.get_stream(widget)
    try:
        async with smooth(source, options, on_arrival=on_arrival, clock=clock) as chunks:
            async for chunk in chunks:
                piece = text_of(chunk)
                text += piece
                if piece:
                    await stream.write(printable(piece))
    finally:
        await stream.stop()
    return text
