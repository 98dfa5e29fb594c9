"""`RequestView` → `RequestFeatures`, from a bounded look.

`measure` reads at most `LOOK_CHARS` characters of the last user turn (both ends), however long the
prompt, tells the caller's own words from the material they pasted, and names the signals
(`signals.py`) that `classify` weighs.
"""

from __future__ import annotations

import re

from paceline.core.signals import looks_like_code, signals
from paceline.core.types import Endpoint, RequestFeatures, RequestView

LOOK_CHARS = 8192
"""Text read per request, half from each end of the last user turn."""
ASK_CHARS = 1200
"""Of the caller's own words, half from each end: an instruction is long before it is unclear."""
PARAGRAPH_CHARS = 400
"""A paragraph longer than this is taken for pasted material."""
SHORT_PARAGRAPH_CHARS = 200
"""One longer than this is too, where another stands beside it that is much shorter."""


def measure(view: RequestView) -> RequestFeatures:
    """The features of a request. Linear in `LOOK_CHARS`, not in the prompt."""
    last = next((turn.text for turn in reversed(view.turns) if turn.role == "user"), "")
    look = _both_ends(last, LOOK_CHARS)
    ask, pasted = (look, "") if view.endpoint is Endpoint.COMPLETIONS else _split_paste(look)
    ask = _both_ends(ask, ASK_CHARS)
    pasted_chars = len(pasted) + max(0, len(last) - LOOK_CHARS)
    seen = frozenset(signals(view, ask, pasted, pasted_chars))
    return RequestFeatures(
        view=view,
        ask=ask,
        pasted_chars=pasted_chars,
        prompt_chars=len(view.system) + len(view.suffix) + sum(len(t.text) for t in view.turns),
        num_turns=len(view.turns),
        signals=seen,
    )


# ---- the caller's words and the material they pasted ---------------------------------------------

_OPENING_TAG = re.compile(r"<(\w{3,20})>\r?\n")
_BLANK_LINE = re.compile(r"\n[ \t\r]*(?:\n[ \t\r]*)+")


def _split_paste(text: str) -> tuple[str, str]:
    """The caller's own words, and what they pasted: fenced or tagged blocks, long paragraphs."""
    fenced, rest = _without_fences(text)
    tagged, rest = _without_tags(rest)
    blocks = [block for block in _BLANK_LINE.split(rest) if block.strip()]
    if len(blocks) == 1 and not (fenced or tagged):
        blocks = _one_paragraph(blocks[0])
    shortest = min(map(len, blocks), default=0)
    is_pasted = [_is_pasted(block, shortest) for block in blocks]
    if blocks and all(is_pasted):  # then the shorter end is what was said of the rest
        is_pasted[0 if len(blocks[0]) <= len(blocks[-1]) else -1] = False
    asked = [block for block, pasted in zip(blocks, is_pasted, strict=True) if not pasted]
    others = [block for block, pasted in zip(blocks, is_pasted, strict=True) if pasted]
    return "\n".join(asked), "\n".join([*fenced, *tagged, *others])


def _without_fences(text: str) -> tuple[list[str], str]:
    """The blocks within code fences, the fences kept, and the text around them."""
    pieces = text.split("```")
    closed = len(pieces) % 2 == 1
    fenced = [f"```{piece}```" for piece in pieces[1::2]]
    if not closed:
        fenced[-1] = fenced[-1].removesuffix("```")
    return fenced, "\n\n".join(pieces[0::2])


def _without_tags(text: str) -> tuple[list[str], str]:
    """The blocks within `<tag>` lines, and the text around them; an open tag runs to the end."""
    inside: list[str] = []
    around: list[str] = []
    position = 0
    while found := _OPENING_TAG.search(text, position):
        end = text.find(f"</{found[1]}>", found.end())
        end = len(text) if end < 0 else end
        around.append(text[position : found.start()])
        inside.append(text[found.end() : end])
        position = min(len(text), end + len(found[1]) + 3)
    return inside, "\n\n".join([*around, text[position:]])


def _one_paragraph(text: str) -> list[str]:
    """A single paragraph, cut after an instruction that ends in a colon or a line break."""
    head, separator, tail = text.partition("\n")
    if not separator or len(tail) < len(head):
        head, separator, tail = text.partition(": ")
    return [head, tail] if separator and len(tail) > len(head) else [text]


def _is_pasted(block: str, shortest: int) -> bool:
    if len(block) > PARAGRAPH_CHARS or looks_like_code(block):
        return True
    return len(block) > SHORT_PARAGRAPH_CHARS and len(block) > 3 * shortest


def _both_ends(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}\n{text[-half:]}"
