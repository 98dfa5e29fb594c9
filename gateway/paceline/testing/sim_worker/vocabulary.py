"""Token ids → tokens, for those that a client may have learnt from this worker."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.sim.words import token_id

REMEMBERED = 200_000  # tokens; the oldest are forgotten


class Vocabulary:
    """Ids are hashes of tokens, so that a worker has to remember which tokens it told of."""

    def __init__(self) -> None:
        self._tokens: dict[int, str] = {}

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens, remembered."""
        numbers = []
        for token in tokens:
            number = token_id(token)
            self._tokens[number] = token
            numbers.append(number)
        while len(self._tokens) > REMEMBERED:
            del self._tokens[next(iter(self._tokens))]
        return numbers

    def text(self, ids: Iterable[int]) -> str:
        """The tokens of these ids, put together; those never told of have no text."""
        return "".join(self._tokens.get(number, "") for number in ids)
