"""`RequestView` → `RequestFeatures`, from a bounded look.

`measure` reads both ends of the last user turn and a little of the turns before it and of the
system text, at most 8 KiB however long the prompt is. It tells the caller's own words from the
material beside them (`material.py`) and names the signals (`signals.py`) that `classify` weighs.

`measure_law` says how. For requests without earlier turns, tools and the like it has a compiled
twin, `native/features.c` (`compiled.py` chooses); a change here is a change there.
"""

from __future__ import annotations

from paceline.core.compiled import look, measure_by
from paceline.core.material import is_code
from paceline.core.signals import request_signals
from paceline.core.types import Material, RequestFeatures, RequestView, Turn

MAX_EARLIER = 4
"""Turns before the last user turn that are looked at for material."""
EARLIER_HEAD_CHARS, EARLIER_TAIL_CHARS = 400, 300
"""Read of each of them."""
MIN_MATERIAL_CHARS = 4
"""Less than that is white space and marks."""
SHORT_MATERIAL_CHARS = 160
"""A sentence or two beside the instruction is told from a text."""
_NONE, _CODE, _SENTENCE, _TEXT = (
    Material.NONE, Material.CODE, Material.SENTENCE, Material.TEXT,
)  # fmt: skip
"""Read of the enum once, since Python 3.11 looks for a member in Python."""


def measure_law(view: RequestView) -> RequestFeatures:
    """The features of a request; its cost does not grow with the prompt, but for counting turns."""
    turns = view.turns
    last = len(turns) - 1
    while last >= 0 and turns[last].role != "user":
        last -= 1
    text = turns[last].text if last >= 0 else ""
    before, after, given_code, signals = look(text, last <= 0)
    if others := request_signals(view, last):
        signals = signals.union(others)
    prompt_chars = len(view.system) + len(view.suffix)
    for turn in turns:
        prompt_chars += len(turn.text)
    num_given = len(text) - len(before) - len(after)
    material, material_chars = _material(turns, last, num_given, given_code)
    return RequestFeatures(
        view=view,
        material=material,
        material_chars=material_chars,
        prompt_chars=prompt_chars,
        signals=signals,
    )


def _material(
    turns: tuple[Turn, ...], last: int, num_chars: int, given_code: bool
) -> tuple[Material, int]:
    """What there is to copy from besides the caller's own words, and how much of it."""
    if num_chars > MIN_MATERIAL_CHARS:
        if given_code:
            return _CODE, num_chars
        return _SENTENCE if num_chars <= SHORT_MATERIAL_CHARS else _TEXT, num_chars
    if later := turns[last + 1 :]:
        result_chars = max([len(turn.text) for turn in later if turn.role == "tool"], default=0)
        if result_chars:
            return Material.TOOL_RESULT, result_chars
    if last <= 0:
        return _NONE, 0
    return _earlier_material(turns[max(0, last - MAX_EARLIER) : last])


def _earlier_material(turns: tuple[Turn, ...]) -> tuple[Material, int]:
    """The largest text of a few earlier turns; the model's own answer before files it was given."""
    kind, size = Material.NONE, 0
    for turn in turns:
        text = turn.text
        num_chars = len(text)
        if num_chars < 40:
            continue
        head = text[:EARLIER_HEAD_CHARS]
        ends = head + text[-EARLIER_TAIL_CHARS:]
        has_code = "`" in ends and "```" in ends
        if turn.role == "assistant":
            if num_chars > size or kind is Material.EARLIER_TEXT:
                kind = Material.ANSWERED_CODE if has_code else Material.ANSWERED_TEXT
                size = num_chars
        elif num_chars > size and kind is not Material.ANSWERED_CODE:
            if has_code or (num_chars > 300 and is_code(head)):
                kind, size = Material.EARLIER_CODE, num_chars
            elif num_chars > 300:
                kind, size = Material.EARLIER_TEXT, num_chars
    return kind, size


measure = measure_by(
    measure_law,
    min_material_chars=MIN_MATERIAL_CHARS,
    short_material_chars=SHORT_MATERIAL_CHARS,
)
"""What everybody asks: the law, or its twin."""
