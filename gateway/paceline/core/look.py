"""What the last user turn says of itself: where the caller's own words are, and the signals in it.

All that `features.py` asks of a text, in one function, which most of the cost of classifying is. It
has a compiled twin, `native/look.c` (`compiled.py` chooses); a change here is a change there.
"""

from __future__ import annotations

from paceline.core.material import split
from paceline.core.signals import text_signals, word_signals

Look = tuple[str, str, bool, frozenset[str]]
"""The caller's words before the material and after it, whether that is code, and the signals."""


def look(text: str, is_first: bool) -> Look:
    """A bounded look at a text; `is_first` where no turn stands before it."""
    parts = split(text)
    before, after, _, is_code = parts
    signals = word_signals(parts)
    signals.update(text_signals(text, parts, is_first))
    return (before, after, is_code, frozenset(signals))
