"""The tokens that one sequence will emit: an answer cut to what the request allows.

The answer ends with an END token, which has no text, unless the request's limits cut it before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.sim.words import END, tokenize


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """`tokens` are emitted, of whose text only the first `visible_chars` characters are shown.

    `stop_reason` is the stop string that was met, if one was.
    """

    tokens: tuple[str, ...]
    visible_chars: int
    finish: Finish
    stop_reason: str | None = None

    def text_between(self, start_token: int, end_token: int, shown_chars: int) -> str:
        """What tokens `start_token` to `end_token` add to the `shown_chars` characters so far."""
        return "".join(self.tokens[start_token:end_token])[: self.visible_chars - shown_chars]


def make_script(
    text: str,
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    keep_stop: bool = False,
    ends: bool = True,
) -> Script:
    """Cut `text` at the first stop string and at `max_tokens`, whichever comes first.

    As in vLLM, the tokens that make up the stop string are generated and counted but not shown
    (unless `keep_stop`), and the END token counts too. `ends` is False for `ignore_eos`: then the
    text goes on up to `max_tokens`. Raises ValueError for fewer than one token.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1: {max_tokens}")
    at, met = _first_stop(text, stop)
    if met is not None:
        text = text[: at + len(met)]
    tokens = tokenize(text)
    shown = at if met is not None and not keep_stop else len(text)
    if met is None and (ends or not tokens):
        tokens.append(END)
    if len(tokens) > max_tokens:
        length = sum(map(len, tokens[:max_tokens]))
        return Script(
            tokens=tuple(tokens[:max_tokens]),
            visible_chars=min(shown, length),
            finish=Finish.LENGTH,
        )
    # With ignore_eos a text that happens to be exactly long enough still ends by its length.
    finish = Finish.STOP if met is not None or ends else Finish.LENGTH
    return Script(tokens=tuple(tokens), visible_chars=shown, finish=finish, stop_reason=met)


def _first_stop(text: str, stop: Sequence[str]) -> tuple[int, str | None]:
    found = [(at, string) for string in stop if string and (at := text.find(string)) >= 0]
    return min(found, default=(len(text), None), key=lambda pair: pair[0])
