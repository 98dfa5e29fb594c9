"""One lane's text, cut into pieces that may be shown apart: by tokens, words or graphemes.

A lane remembers only its last piece, and that only while what comes next may belong to it. Text may
move from a new arrival to that piece; what arrived with the text (logprobs, usage) never moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from paceline_client.graphemes import atoms, begins_with_mark, indent_after, may_grow
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
    indent: str = "\n"
    careful: bool = False
    open_piece: Piece | None = None
    open_atom: str = ""
    _words: bool = field(init=False)

    def __post_init__(self) -> None:
        self._words = self.unit is Unit.WORD

    def extend(self, text: str, now_ms: float) -> str:
        """Gives the open piece what belongs to it; the text that is left.

        A word that has waited for half of what it may gets no more than what completes its last
        character, so that it need not go out within one.
        """
        piece = self.open_piece
        if piece is None or not text:
            return text
        is_aged = 2 * now_ms > piece.arrival_ms + piece.not_before_ms
        before = len(self.open_atom)
        ends = self._ends(self.open_atom + text, finely=is_aged)
        num_moved = next(end for end in ends if end >= before) - before
        piece.text += text[:num_moved]
        self.open_atom += text[:num_moved]
        if num_moved < len(text) or not self._grows():
            self.close()
        return text[num_moved:]

    def close(self) -> None:
        """The open piece goes as it is: it waited long enough, or nothing more will come."""
        if self.open_piece is None:
            return
        self.open_piece.not_before_ms = 0.0
        self.indent = indent_after(self.open_atom, indent=self.indent)
        self.open_piece, self.open_atom = None, ""

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
        if begins_with_mark(text):
            self.careful = True  # this stream cuts within characters
        ends = self._ends(text)
        wanted = None if self._words else units  # where tokens end is no matter to words
        groups = _groups(text, ends, wanted, num_tokens, token_texts)
        weight = len(ends) if units is None else units
        total = groups[-1][1]
        pieces: list[Piece] = []
        lane, start, before = self.lane, 0, 0
        for end, upto in groups:
            share = weight * (upto - before) / total
            tokens = (before * num_tokens // total, upto * num_tokens // total)
            pieces.append(Piece(lane, text[start:end], share, 0.0, None, False, False, tokens))
            start, before = end, upto
        pieces[0].first = pieces[-1].last = True
        atom = ends[-2] if len(ends) > 1 else 0
        self.indent = indent_after(text[:atom], indent=self.indent)
        self.open_piece, self.open_atom = pieces[-1], text[atom:]
        if not self._grows():
            self.close()
        return pieces

    def _grows(self) -> bool:
        """Whether what comes next is likely to belong to the open piece."""
        atom = self.open_atom
        if self._words and not atom[-1].isspace():
            return True
        return (self.careful and atom[-1].isalpha()) or may_grow(atom, indent=self.indent)

    def _ends(self, text: str, *, finely: bool = False) -> Sequence[int]:
        ends = atoms(text, indent=self.indent)
        return _word_ends(text, ends) if self._words and not finely else ends


def _groups(
    text: str,
    ends: Sequence[int],
    units: int | None,
    num_tokens: int,
    token_texts: Sequence[str] | None,
) -> list[tuple[int, int]]:
    """(end in the text, how many shares of the units stand before it) of every piece.

    No more than MAX_PIECES: at the tokens where their ends are known, else evenly. A share is then
    a token, or a grapheme where the number of tokens is not known.
    """
    num_atoms = len(ends)
    if units is None:
        units = num_atoms
    elif token_texts and units <= MAX_PIECES and "".join(token_texts) == text:
        uptos = {end: upto for upto, end in enumerate(accumulate(map(len, token_texts)), 1)}
        return [(end, uptos[end]) for end in ends if end in uptos]
    number = min(num_atoms, MAX_PIECES, units)
    groups: list[tuple[int, int]] = []
    for share in range(1, number + 1):
        upto = num_atoms * share // number
        groups.append((ends[upto - 1], share if num_tokens else upto))
    return groups


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
