"""`paceline_client.rich` and `.textual`: paced on the terminal, text as text, clear if missing."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk
from rich.console import Console
from textual.app import App, ComposeResult
from textual.widgets import Markdown, Static

from paceline_client.rich import show
from paceline_client.shown import printable, text_of
from paceline_client.textual import play_into

HOSTILE = "[red]no markup[/red] \x1b]0;title\x07 <b>"


def chunk(content: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


async def stream(*texts: str, error: Exception | None = None) -> AsyncIterator[Any]:
    for text in texts:
        yield chunk(text)
    if error is not None:
        raise error
    yield chunk("", "stop")


def test_the_text_of_a_chunk_whatever_it_is_made_of() -> None:
    made = chunk("hello")
    assert text_of("hello") == text_of(made) == "hello"
    assert text_of(ChatCompletionChunk.model_validate(made)) == "hello"
    assert text_of({"choices": []}) == text_of(object()) == ""


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b[31mb\tc\nd\x07\x9b") == "a␛[31mb\tc\nd"


# ---- Rich --------------------------------------------------------------------------------------


def terminal(*, is_terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=60, _environ={})


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
async def test_rich_shows_the_text_and_returns_it(is_terminal: bool) -> None:
    console = terminal(is_terminal=is_terminal)
    text = await show(stream("Hello ", "wor", "ld"), "off", console=console)
    assert text == "Hello world"
    assert "Hello world" in written(console)


async def test_rich_draws_the_growing_text_many_times() -> None:
    console = terminal(is_terminal=True)
    text = "one two three four five six seven eight"
    assert await show(stream(text), console=console, frames_per_s=100) == text
    drawn = written(console).split("\r")
    assert any("one" in line and "eight" not in line for line in drawn)
    assert "eight" in drawn[-1] or "eight" in drawn[-2]


async def test_rich_takes_neither_markup_nor_escape_sequences_from_a_model() -> None:
    console = terminal(is_terminal=True)
    assert await show(stream(HOSTILE), "off", console=console) == HOSTILE
    assert "[red]no markup[/red] ␛]0;title <b>" in written(console)


async def test_rich_draws_markdown_if_it_is_asked_for() -> None:
    console = terminal(is_terminal=False)
    await show(stream("# Rivers\n\n- one\n"), "off", console=console, markdown=True)
    assert "#" not in written(console)
    assert "• one" in written(console)


async def test_rich_raises_after_the_text_is_on_show() -> None:
    console = terminal(is_terminal=False)
    with pytest.raises(ValueError, match="cut"):
        await show(stream("half an answer", error=ValueError("cut")), console=console)
    assert "half an answer" in written(console)


# ---- Textual -----------------------------------------------------------------------------------


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Markdown(id="markdown")
        yield Static(id="static")


async def test_textual_shows_text_as_text() -> None:
    app = Page()
    async with app.run_test():
        static = app.query_one("#static", Static)
        assert await play_into(static, stream("[red]", HOSTILE), "off") == "[red]" + HOSTILE
        assert "[red][red]no markup[/red] ␛]0;title <b>" in str(static.content)


async def test_textual_streams_markdown() -> None:
    app = Page()
    async with app.run_test():
        markdown = app.query_one("#markdown", Markdown)
        text = await play_into(markdown, stream("# Rivers\n", "\nThey ", "run."))
        assert text == markdown.source == "# Rivers\n\nThey run."


async def test_textual_raises_after_the_text_is_on_show() -> None:
    app = Page()
    async with app.run_test():
        markdown = app.query_one("#markdown", Markdown)
        with pytest.raises(ValueError, match="cut"):
            await play_into(markdown, stream("half", error=ValueError("cut")))
        assert markdown.source == "half"


# ---- where they are missing --------------------------------------------------------------------


@pytest.mark.parametrize(("module", "package"), [("rich", "Rich"), ("textual", "Textual")])
def test_without_the_package_it_is_said_what_to_install(module: str, package: str) -> None:
    code = (
        "import sys; sys.modules[sys.argv[1]] = None; import paceline_client\n"
        "try: __import__('paceline_client.' + sys.argv[1])\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, module], capture_output=True, text=True, check=True
    )
    needs = f"paceline_client.{module} needs {package}: pip install 'paceline[{module}]'\n"
    assert ran.stdout == needs
