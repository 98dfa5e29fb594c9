"""What a Paceline gateway says of its pace, in comments that other clients skip.

With `x-paceline-hints: 1`, `: pace n=3 t=18233 next=44` stands before each event: `n` tokens in it,
`t` the gateway's clock and `next` the time to the next event, in milliseconds. Any may be missing.
"""

from __future__ import annotations

from math import isfinite

from paceline_client.pacer import Hint

HEADER = "x-paceline-hints"
_PREFIX = "pace "


def parse_hint(comment: str) -> Hint | None:
    """The hint in an SSE comment; None for any other comment. What is no number is left out."""
    if not comment.startswith(_PREFIX):
        return None
    fields = dict(
        word.split("=", 1) for word in comment.removeprefix(_PREFIX).split() if "=" in word
    )
    tokens = _number(fields.get("n"))
    return Hint(
        num_tokens=int(tokens) if tokens is not None else None,
        server_ms=_number(fields.get("t")),
        next_ms=_number(fields.get("next")),
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None
