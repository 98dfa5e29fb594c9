"""A configuration at a glance, on the terminal: models, pools, workers, rules."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from paceline.core.types import Speculation
from paceline.settings import ModelSettings, Settings


def show_settings(settings: Settings, console: Console) -> None:
    """What is in a file is shown as text: nothing in it is markup."""
    for model in settings.models:
        console.print(_table(model))
    for rule in settings.rules:
        console.print(Text(f"rule {rule}"), soft_wrap=True)


def _table(model: ModelSettings) -> Table:
    names = ", ".join((model.name, *model.aliases))
    table = Table(title=Text(f"model {names}"), title_justify="left", box=None, pad_edge=False)
    for column in ("pool", "speculation", "workers"):
        table.add_column(column, overflow="fold")
    for pool in model.pools:
        mark = " (default)" if pool.name == model.default_pool else ""
        workers = "\n".join(worker.url for worker in pool.workers)
        table.add_row(Text(pool.name + mark), Text(_speculation(pool.speculation)), Text(workers))
    return table


def _speculation(speculation: Speculation | None) -> str:
    if speculation is None:
        return "none"
    method = speculation.method or "method unknown"
    return f"{method}, k = {speculation.num_speculative_tokens}"
