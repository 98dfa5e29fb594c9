"""The texts that replaying is timed on are as long and as hard as they are said to be."""

from __future__ import annotations

import random

from paceline.bench.replay import POOLS, hard_texts, table, usual_exchange
from paceline.core.replayable import TEXT_BYTES, study


def test_hard_texts_are_of_the_greatest_size():
    texts = list(hard_texts(random.Random(1)))
    assert len(texts) == 6
    assert all(
        0.8 * TEXT_BYTES <= len(asked) + len(answered) <= TEXT_BYTES for _, asked, answered in texts
    )


def test_the_usual_exchange_teaches_about_every_pool():
    replayed = study(usual_exchange())
    assert replayed is not None
    assert not replayed.loops
    assert replayed.is_whole
    assert set(replayed.lookups) == set(POOLS)
    assert (replayed.copy_ratio or 0.0) > 0.5


def test_the_table_has_a_line_for_each():
    row = {"text": "a", "tokens": 9, "ratio_s": 0.1, "ngram_s": 1.0, "suffix_s": 2.0}
    assert len(table([row, row]).splitlines()) == 3
