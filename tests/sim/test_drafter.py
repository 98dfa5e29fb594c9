"""Every method gets the drafter that is meant."""

from __future__ import annotations

import random

import pytest

from paceline.core.types import Speculation, Workload
from paceline.sim.drafter import HEADS, drafter_for


@pytest.mark.parametrize("method", [*HEADS, "ngram", "suffix"])
def test_every_method_has_a_drafter(method: str):
    speculation = Speculation(method=method, num_speculative_tokens=4)
    drafter = drafter_for(speculation, Workload.CHAT, "abcabca", random.Random(1))
    assert drafter is not None
    assert drafter.draft("bcabc", 2).drafted <= 2
    assert drafter_for(None, Workload.CHAT, "abc", random.Random(1)) is None


def test_a_method_that_is_not_simulated_is_refused():
    dspark = Speculation(method="dspark", num_speculative_tokens=8)
    with pytest.raises(ValueError, match="dspark"):
        drafter_for(dspark, Workload.CHAT, [], random.Random(1))
