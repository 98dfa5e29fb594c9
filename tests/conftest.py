"""What holds for all tests: uvloop, as in the gateway, and laws without deadlines.

A deadline per example fails on a busy machine what is right on an idle one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import uvloop
from hypothesis import settings

settings.register_profile("paceline", deadline=None)
settings.load_profile("paceline")


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}
