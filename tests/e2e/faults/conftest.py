"""What holds for every fault: it is a worker's or a client's, so none of ours is logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_fault_of_ours(caplog) -> Iterator[None]:
    """Warnings are for operators; an error would be an exception that nobody expected."""
    yield
    errors = [one for one in caplog.get_records("call") if one.levelno >= logging.ERROR]
    assert not errors, [one.getMessage() for one in errors]
