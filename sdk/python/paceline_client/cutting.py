"""One lane's text, cut into pieces that may be shown apart: by tokens, words or graphemes.

A lane remembers only its last piece, and that only while what comes next may belong to it. Text may
move from a new arrival to that piece; what arrived with the text (logprobs, usage) never moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline_client.graphemes import atoms, begins_with_mark, line_start_after, may_grow
from paceline_client.options import Unit

MAX_WORD_CHARS = 64
MAX_PIECES = 512
"""Of one push: more could not be shown apart within the longest delay, timers being 1 ms apart."""


@dataclass(slots=True, eq=False)
class Piece:
    """What is shown at one time: text of one lane, or a part that is no text (then weight 0).

    `cargo` is what the push brought along, for the caller; `first` and `last` say where in its
    push the piece stands, and `tokens` which of the push's tokens it holds (from, to).
    """

    lane: str
    text: str
    weight: float
    arrival_ms: float
    cargo: object = None
    first: bool = True
    last: bool = True
    tokens: tuple[int, int] = (0, 0)
    not_before_ms: float = 0.0


@dataclass(slots=True)
class Cutter:
    """The state of one lane."""

    unit: Unit
    lane: str
    line_start: bool = True
    careful: bool = False
    open_piece: Piece | None = None
    open_atom: str = ""
    _words: bool = field(init=False)

    def __post_init__(self) -> None:
        self._words = self.unit is Unit.WORD

    def extend(self, text: str, *, aged: bool = False) -> str:
        """Gives the open piece what belongs to it; the text that is left.

        `aged` says that the piece has not long to wait: a word then gets no more than what
        completes its last character, so that it need not go out within one.
        """
        piece = self.open_piece
        if piece is None or not text:
            if begins_with_mark(text):
                self.careful = True  # this stream cuts within characters
            return text
        joined = self.open_atom + text
        end = self._first_end(joined, within_word=aged)
        num_moved = max(0, end - len(self.open_atom))
        piece.text += text[:num_moved]
        if num_moved == len(text) and self._grows(joined[:end]):
            self.open_atom = joined[:end]
        else:
            self._close(self.open_atom + text[:num_moved])
        return text[num_moved:]

    def close(self) -> None:
        """The open piece goes as it is: it waited long enough, or nothing more will come."""
        if self.open_piece is not None:
            self._close(self.open_atom)

    def cut(
        self,
        text: str,
        *,
        units: int | None,
        num_tokens: int = 0,
        token_texts: Sequence[str] | None = None,
    ) -> list[Piece]:
        """`text` (not empty) in pieces whose weights add up to `units`, or to its graphemes.

        The last one is `open_piece` if it may still grow. Arrival and cargo are for the caller.
        """
        ends = self._ends(text)
        num_atoms = len(ends)
        groups = self._groups(text, ends, units, token_texts)
        a_token_each = len(groups) == units == num_tokens
        weight = num_atoms if units is None else units
        pieces, start, before = [], 0, 0
        for number, (end, upto) in enumerate(groups):
            if a_token_each:
                share, tokens = 1.0, (number, number + 1)
            else:
                share = weight * (upto - before) / num_atoms
                tokens = (before * num_tokens // num_atoms, upto * num_tokens // num_atoms)
            pieces.append(Piece(self.lane, text[start:end], share, 0.0, tokens=tokens))
            start, before = end, upto
        for piece in pieces:
            piece.first, piece.last = piece is pieces[0], piece is pieces[-1]
        self._end_with(pieces[-1], text, ends)
        return pieces

    def _end_with(self, piece: Piece, text: str, ends: list[int]) -> None:
        """Remembers the end of what was cut, open if it may grow."""
        start = ends[-2] if len(ends) > 1 else 0
        self.line_start = line_start_after(text[:start], line_start=self.line_start)
        if self._grows(text[start:]):
            self.open_piece, self.open_atom = piece, text[start:]
        else:
            self._close(text[start:])

    def _first_end(self, joined: str, *, within_word: bool) -> int:
        """Where the open atom ends in what it has become with the text after it."""
        if not within_word:
            return self._ends(joined)[0]
        graphemes = atoms(joined, line_start=self.line_start)
        return next(end for end in graphemes if end >= len(self.open_atom))

    def _ends(self, text: str) -> list[int]:
        ends = atoms(text, line_start=self.line_start)
        return _word_ends(text, ends) if self._words else ends

    def _grows(self, atom: str) -> bool:
        if self._words and not atom[-1].isspace() and len(atom) < MAX_WORD_CHARS:
            return True
        return (self.careful and atom[-1].isalpha()) or may_grow(atom, line_start=self.line_start)

    def _close(self, atom: str) -> None:
        self.line_start = line_start_after(atom, line_start=self.line_start)
        if self.open_piece is not None:
            self.open_piece.not_before_ms = 0.0
        self.open_piece, self.open_atom = None, ""

    def _groups(
        self, text: str, ends: list[int], units: int | None, token_texts: Sequence[str] | None
    ) -> list[tuple[int, int]]:
        """(end in the text, atoms up to there) of every piece, and of no more than MAX_PIECES."""
        groups = self._wanted_groups(text, ends, units, token_texts)
        return groups if len(groups) <= MAX_PIECES else _evenly(ends, MAX_PIECES)

    def _wanted_groups(
        self, text: str, ends: list[int], units: int | None, token_texts: Sequence[str] | None
    ) -> list[tuple[int, int]]:
        if self.unit is not Unit.TOKEN or units is None or units >= len(ends):
            return [(end, number) for number, end in enumerate(ends, 1)]
        if token_texts is not None and "".join(token_texts) == text:
            return _at_tokens(ends, token_texts)
        return _evenly(ends, max(1, units))


def _evenly(ends: list[int], num_groups: int) -> list[tuple[int, int]]:
    uptos = [len(ends) * number // num_groups for number in range(1, num_groups + 1)]
    return [(ends[upto - 1], upto) for upto in uptos]


def _at_tokens(ends: list[int], token_texts: Sequence[str]) -> list[tuple[int, int]]:
    """At the first place after each token where text may be cut."""
    groups: list[tuple[int, int]] = []
    number, length = 0, 0
    for text in token_texts:
        length += len(text)
        while number < len(ends) and ends[number] <= length:
            number += 1
        if number and (not groups or groups[-1][1] < number) and ends[number - 1] == length:
            groups.append((length, number))
    if not groups or groups[-1][1] < len(ends):
        groups.append((ends[-1], len(ends)))
    return groups


def _word_ends(text: str, ends: list[int]) -> list[int]:
    """The ends before each run of spaces and between characters of scripts without spaces."""
    kept: list[int] = []
    start = 0
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if following is None:
            kept.append(end)
            break
        here, after = text[end - 1], text[end]
        between = (after.isspace() and not here.isspace()) or here == "\n"
        alone = not here.isspace() and (_is_ideographic(after) or _is_ideographic(here))
        if between or alone or end - start >= MAX_WORD_CHARS:
            kept.append(end)
            start = end
    return kept


def _is_ideographic(char: str) -> bool:
    """Han, kana, and their full-width company: every character may end a word."""
    return "\u2e80" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef" or char >= "\U00020000"
