"""From passes to pieces: what of each choice has been sent, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.sim.generation import Generation, Pass
from paceline.testing.sim_worker.writers import Piece


class Progress:
    """How far each choice is, and the pieces that passes add. At most `limit` tokens in all."""

    def __init__(self, generations: Sequence[Generation], limit: int | None) -> None:
        self._index = {generation.key: i for i, generation in enumerate(generations)}
        self._generations = generations
        self._limit = limit
        self._tokens = [0] * len(generations)
        self._chars = [0] * len(generations)

    @property
    def finished(self) -> bool:
        lengths = [len(generation.script.tokens) for generation in self._generations]
        return self._tokens == lengths

    @property
    def at_limit(self) -> bool:
        return self._limit is not None and sum(self._tokens) >= self._limit

    def advance(self, passes: Sequence[Pass]) -> list[Piece]:
        """One piece a choice, even of several passes."""
        ends = {self._index[part.key]: part.end for part in passes}
        return [self._piece(i, end) for i, end in ends.items() if not self.at_limit]

    def next_piece(self) -> Piece:
        """A piece that could come next."""
        i = next(
            i for i, g in enumerate(self._generations) if self._tokens[i] < len(g.script.tokens)
        )
        return self._piece(i, self._tokens[i] + 1)

    def _piece(self, i: int, end: int) -> Piece:
        start, offset, script = self._tokens[i], self._chars[i], self._generations[i].script
        if self._limit is not None:
            end = min(end, start + self._limit - sum(self._tokens))
        text = script.text_between(start, end, offset)
        self._tokens[i], self._chars[i] = end, offset + len(text)
        last = end == len(script.tokens)
        return Piece(
            index=i,
            text=text,
            tokens=script.tokens[start:end],
            offset=offset,
            completion_tokens=end,
            finish=script.finish if last else None,
            stop_reason=script.stop_reason if last else None,
        )
