"""Log-probabilities with the right shape and made-up numbers.

A token's number follows from its text alone: clients can parse and add them up, nobody should
believe them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.sim.words import token_id

_OTHERS = (" the", " a", " of", ",", " and", " to", " in", ".", " is", " that", "\n", " for", " it")


def chat_logprobs(tokens: Sequence[str], top: int) -> dict[str, Any]:
    """`choices[].logprobs` of a chat answer, with `top` alternatives to each token."""
    return {"content": [_entry(token, top) for token in tokens]}


def completion_logprobs(tokens: Sequence[str], top: int, offset: int) -> dict[str, Any]:
    """The same for `/v1/completions`; `offset` is where in the answer's text the tokens begin."""
    offsets = [offset]
    for token in tokens[:-1]:
        offsets.append(offsets[-1] + len(token))
    return {
        "text_offset": offsets[: len(tokens)],
        "token_logprobs": [_logprob(token) for token in tokens],
        "tokens": list(tokens),
        "top_logprobs": [dict(_ranked(token, max(1, top))) for token in tokens],
    }


def _entry(token: str, top: int) -> dict[str, Any]:
    alternatives = [_named(*pair) for pair in _ranked(token, top)]
    return {**_named(token, _logprob(token)), "top_logprobs": alternatives}


def _named(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def _ranked(token: str, top: int) -> list[tuple[str, float]]:
    """The token and others after it, each a little less likely."""
    others = [other for other in _OTHERS if other != token][: max(0, top - 1)]
    pairs = [(other, _logprob(token) - 1.0 - rank) for rank, other in enumerate(others)]
    return [(token, _logprob(token)), *pairs][:top]


def _logprob(token: str) -> float:
    return -(1 + token_id(token) % 999) / 1000
