"""The state file, where its folder is a busy place."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from paceline.edge.store import Store
from paceline.errors import ConfigurationError

STATES = {"m": {"some": [1, 2.5]}}


def kept(path: Path) -> dict[str, object]:
    store = Store(path)
    try:
        return store.load()
    finally:
        store.close()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_was_taken_away_is_made_anew(how: str, tmp_path: Path, caplog) -> None:
    path = tmp_path / "paceline.db"
    store = Store(path)
    store.save({"m": {"before": 1}})
    path.rename(tmp_path / "moved.db")
    if how == "replaced":
        Store(path).close()
    store.save(STATES)
    store.close()
    assert kept(path) == STATES
    assert kept(tmp_path / "moved.db") == {"m": {"before": 1}}
    assert "taken away" in caplog.text


def test_a_place_that_is_anothers_now_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "paceline.db"
    store = Store(path)
    path.unlink()
    other = Store(path)
    for _ in range(2):
        with pytest.raises(sqlite3.Error, match="locked"):
            store.save(STATES)
    other.close()
    store.save(STATES)
    store.close()
    assert kept(path) == STATES


def test_one_writer_is_left_alone(tmp_path: Path) -> None:
    first = Store(tmp_path / "paceline.db")
    with pytest.raises(ConfigurationError, match="in use by another gateway"):
        Store(tmp_path / "paceline.db")
    first.save(STATES)
    first.close()
    assert kept(tmp_path / "paceline.db") == STATES


def test_a_file_that_may_not_be_written_is_called_so(tmp_path: Path, monkeypatch) -> None:
    """Opened for reading alone, since to some users no file is forbidden."""
    path = tmp_path / "paceline.db"
    Store(path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **how: connect(f"file:{path}?mode=ro", uri=True, **how)
    )
    with pytest.raises(ConfigurationError, match="may not be written"):
        Store(path)
