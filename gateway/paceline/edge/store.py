"""What was learned, kept in a file from one start to the next.

SQLite, with one writer: whoever opens the file holds it until the end, and a second gateway on it
refuses to start, since two would overwrite each other. Reading and writing happen at the start, at
the end, and in a thread now and then; no request waits for it.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from paceline.errors import ConfigurationError

log = logging.getLogger(__name__)

SCHEMA_VERSION = 1
APPLICATION_ID = 0x50414345
""""PACE": how a file is known to be ours (SQLite, PRAGMA application_id)."""


class Store:
    """An open state file; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Opens or makes it. Raises ConfigurationError if it is not ours, or another's now."""
        self.path = path
        try:
            self._open()
        except (sqlite3.Error, OSError) as error:
            with contextlib.suppress(AttributeError):
                self._db.close()
            raise ConfigurationError(f"learning.state: {path}: {_why(error)}") from error

    def _open(self) -> None:
        """Raises sqlite3.Error, OSError; then it is not open, and may be tried again."""
        self._inode = 0  # of no file
        self._db = sqlite3.connect(self.path, timeout=0.0, check_same_thread=False)
        self._db.isolation_level = None
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("BEGIN EXCLUSIVE")
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION_ID:
            raise sqlite3.DatabaseError("a database of some other program")
        if version > SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"made by a later version (schema_version {version})")
        self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS beliefs"
            " (model TEXT PRIMARY KEY, saved_unix_s REAL NOT NULL, state TEXT NOT NULL)"
        )
        self._db.execute("COMMIT")
        self._inode = self.path.stat().st_ino

    def load(self) -> dict[str, Any]:
        """What was kept, by model; plain JSON values. Raises ConfigurationError."""
        try:
            rows = self._db.execute("SELECT model, state FROM beliefs").fetchall()
            return {model: orjson.loads(state) for model, state in rows}
        except (sqlite3.Error, orjson.JSONDecodeError) as error:
            raise ConfigurationError(f"learning.state: {self.path}: {_why(error)}") from error

    def save(self, states: Mapping[str, Any]) -> None:
        """Keeps these, and all or nothing of them. A file that was taken away, to which SQLite
        would go on writing, is made anew. Raises sqlite3.Error, OSError."""
        if not self._is_there():
            log.warning("%s was taken away; it is made anew", self.path)
            self._db.close()
            self._open()
        rows = [(model, time.time(), orjson.dumps(state)) for model, state in states.items()]
        self._db.execute("BEGIN")
        try:
            self._db.executemany("INSERT OR REPLACE INTO beliefs VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def _is_there(self) -> bool:
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        self._db.close()


def _why(error: Exception) -> str:
    if "locked" in str(error):
        return "in use by another gateway; one state file is for one"
    if "readonly" in str(error):
        return "may not be written"
    if "unable to open" in str(error):
        return "cannot be opened or made; does its folder exist, and may it be written?"
    return f"not a state file of this gateway ({error}); move it away, or name another"
