"""Where a change is judged the twins must be there, or their tests would be skipped unseen."""

from __future__ import annotations

import os

import pytest

from paceline.core.compiled import IS_COMPILED


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="elsewhere there may be no C compiler")
def test_the_twins_were_built() -> None:
    assert IS_COMPILED
