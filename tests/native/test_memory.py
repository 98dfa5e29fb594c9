"""Where there is no memory, a twin says so, and nothing else: no other answer, no other error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paceline.core import classify, compiled, features
from paceline.core.types import Endpoint

testcapi = pytest.importorskip("_testcapi", reason="this Python came without it")
if not compiled.IS_COMPILED:
    pytest.skip("they were not built", allow_module_level=True)

MOST = 300
"""Allocations that any of them makes, and some."""


def outcomes(ask: Callable[[], Any]) -> list[Any]:
    """What comes of it where the first allocation fails, the second, and so on."""
    found: list[Any] = []
    for place in range(1, MOST):
        testcapi.set_nomemory(place, place + 1)
        try:
            outcome = ask()
        except BaseException as error:
            testcapi.remove_mem_hooks()
            found.append(type(error))
        else:
            testcapi.remove_mem_hooks()
            found.append(outcome)
    return found


def chat(temperature: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "temperature": temperature,
        "messages": [
            {"role": "system", "content": "one system text"},
            {"role": "developer", "content": "and another"},
            {"role": "user", "content": "fix this"},
        ],
    }


ASKED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    f"a chat at {temperature!r}": (
        compiled.chat_view, (Endpoint.CHAT_COMPLETIONS, chat(temperature)),
    )
    for temperature in (0.5, 3, -1, -1.0)
}  # fmt: skip
VIEW = compiled.chat_view(Endpoint.CHAT_COMPLETIONS, chat(0.5) | {
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "fix this:\n\n" + "int x = f(a);\n" * 40},
    ],
})  # fmt: skip
ASKED["a measure"] = features.measure, (VIEW,)
ASKED["a classification"] = classify.classify, (features.measure(VIEW),)


@pytest.mark.parametrize("asked", ASKED)
def test_without_memory_that_is_what_is_said(asked: str) -> None:
    twin, given = ASKED[asked]
    expected = twin(*given)
    found = outcomes(lambda: twin(*given))
    assert MemoryError in found
    assert [each for each in found if each is not MemoryError and each != expected] == []
