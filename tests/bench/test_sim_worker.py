"""The punctuality bench, small: it runs, and its figures mean what they say."""

from __future__ import annotations

from paceline.bench.sim_worker import measure, table


async def test_a_few_streams_are_measured():
    result = await measure("eagle3", streams=3, max_tokens=12)
    assert result.streams == 3
    assert 4 <= result.passes <= 40
    assert 0 <= result.p50_s <= result.max_s
    assert result.events_per_s > 0
    assert "eagle3" in table([result])
