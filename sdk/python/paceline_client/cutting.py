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
    _tokens: bool = field(init=False)
    _words: bool = field(init=False)

    def __post_init__(self) -> None:
        self._tokens = self.unit is Unit.TOKEN
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
        uptos = self._uptos(text, ends, units, token_texts)
        a_token_each = len(uptos) == units == num_tokens
        weight = num_atoms if units is None else units
        pieces: list[Piece] = []
        lane, start, before = self.lane, 0, 0
        for number, upto in enumerate(uptos):
            end = ends[upto - 1]
            if a_token_each:
                share, tokens = 1.0, (number, number + 1)
            else:
                share = weight * (upto - before) / num_atoms
                tokens = (before * num_tokens // num_atoms, upto * num_tokens // num_atoms)
            pieces.append(Piece(lane, text[start:end], share, 0.0, None, False, False, tokens))
            start, before = end, upto
        pieces[0].first = pieces[-1].last = True
        self._end_with(pieces[-1], text, ends)
        return pieces

    def _end_with(self, piece: Piece, text: str, ends: Sequence[int]) -> None:
        """Remembers the end of what was cut, open if it may grow."""
        start = ends[-2] if len(ends) > 1 else 0
        atom = text[start:]
        line_may_start = self.line_start or "\n" in text
        if line_may_start:
            self.line_start = line_start_after(text[:start], line_start=self.line_start)
        if self._grows(atom):
            self.open_piece, self.open_atom = piece, atom
        elif line_may_start or self.open_piece is not None:
            self._close(atom)

    def _first_end(self, joined: str, *, within_word: bool) -> int:
        """Where the open atom ends in what it has become with the text after it."""
        if not within_word:
            return self._ends(joined)[0]
        graphemes = atoms(joined, line_start=self.line_start)
        return next(end for end in graphemes if end >= len(self.open_atom))

    def _ends(self, text: str) -> Sequence[int]:
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

    def _uptos(
        self, text: str, ends: Sequence[int], units: int | None, token_texts: Sequence[str] | None
    ) -> Sequence[int]:
        """The atoms up to the end of every piece, and of no more than MAX_PIECES."""
        num_atoms = len(ends)
        if not self._tokens or units is None or units >= num_atoms:
            uptos: Sequence[int] = range(1, num_atoms + 1)
        elif token_texts is not None and "".join(token_texts) == text:
            uptos = _at_tokens(ends, token_texts)
        else:
            uptos = _evenly(num_atoms, max(1, units))
        return uptos if len(uptos) <= MAX_PIECES else _evenly(num_atoms, MAX_PIECES)


def _evenly(num_atoms: int, num_pieces: int) -> list[int]:
    return [num_atoms * number // num_pieces for number in range(1, num_pieces + 1)]


def _at_tokens(ends: Sequence[int], token_texts: Sequence[str]) -> list[int]:
    """At the first place after each token where text may be cut."""
    uptos: list[int] = []
    number, length = 0, 0
    for text in token_texts:
        length += len(text)
        while number < len(ends) and ends[number] <= length:
            number += 1
        if number and (not uptos or uptos[-1] < number) and ends[number - 1] == length:
            uptos.append(number)
    if not uptos or uptos[-1] < len(ends):
        uptos.append(len(ends))
    return uptos


def _word_ends(text: str, ends: Sequence[int]) -> list[int]:
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
