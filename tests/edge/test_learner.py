"""What is learned is kept, whatever happens while it is being written."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from harness import NGRAM, pool, settings
from paceline.edge.learner import Learner
from paceline.edge.store import Store
from paceline.edge.workers import Fleet
from paceline.settings import Learning


def learner(path: Path) -> Learner:
    pools = pool("ngram", "http://127.0.0.1:1", speculation=NGRAM), pool("p", "http://127.0.0.1:2")
    return Learner(
        Learning(state=path, replay=False),
        Fleet(settings(*pools), lambda: 0.0),
        observed=lambda decision, outcome: None,
        unix_s=lambda: 0.0,
        rng=random.Random(1),
    )


@pytest.mark.parametrize("ends", [False, True])
async def test_what_is_learned_while_it_is_kept_is_kept_as_well(tmp_path, monkeypatch, ends):
    begun, may_end, writes = threading.Event(), threading.Event(), []
    save = Store.save

    def slow_save(store: Store, states: Any) -> None:
        begun.set()
        assert may_end.wait(5.0)
        writes.append(states["m"]["prompt"]["value"])
        save(store, states)

    monkeypatch.setattr(Store, "save", slow_save)
    made = learner(tmp_path / "state.db")
    made._learned_since_save = True
    saving = asyncio.create_task(made.save())
    await asyncio.to_thread(begun.wait, 5.0)
    made.beliefs["m"]._prompt.observe(1000.0)
    made._learned_since_save = True
    if ends:  # as the gateway does: its loops are cancelled, then all is closed
        saving.cancel()
    closing = asyncio.create_task(made.close())
    await asyncio.sleep(0)
    may_end.set()
    await closing
    await asyncio.gather(saving, return_exceptions=True)
    assert writes == [500.0, 600.0]
    again = learner(tmp_path / "state.db")
    assert again.beliefs["m"]._prompt.value == 600.0
    await again.close()
