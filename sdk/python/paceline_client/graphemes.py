"""Where text may be cut: between user-perceived characters, escape sequences and code fences.

`atoms` cuts a text into pieces that must stay whole; `may_grow` says whether the last one could
still change with what comes. Both look at each character a bounded number of times.

Extended grapheme clusters of UAX #29, in a form small enough to be the same in every language:
marks by general category, pictographs by block. Left out: prepended signs (a few Arabic and Indic
ones).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

MAX_ATOM_CHARS = 64
"""A cluster longer than this is cut: endless combining marks must not hold up a stream."""

_ZWJ = "\u200d"
_ZWNJ = "\u200c"
_FIRST_MARK = "\u0300"  # nothing below joins what stands before it
# Viramas that link the consonant before to the one after (UAX #29, GB9c).
_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")

_ESCAPE = (
    r"\x1b(?:\[[0-?]{0,60}[ -/]{0,4}[@-~]?"  # CSI: parameters, intermediates, final byte
    r"|\][^\x07\x1b]{0,250}(?:\x07|\x1b\\?)?"  # OSC up to BEL or ST
    r"|[ -/]{0,2}[0-Z^-~\\]?)"
)
_WHOLE_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z^-~\\])"
)
# Up to three spaces may indent a fence (CommonMark); one or two backticks may become three.
_FENCE = r"(?:\A|(?<=\n)) {0,3}(?:`{3,30}[^\t-\r\x1b `]{0,32}|`{1,2})"
_MAYBE_SPECIAL = re.compile("[\x1b`\r]")
_SPECIAL = re.compile(rf"(?P<escape>{_ESCAPE})|(?P<fence>{_FENCE})|\r\n")


def atoms(text: str, *, line_start: bool = True) -> Sequence[int]:
    """The ends of the pieces of `text` that must stay whole, ascending; the last is its length.

    `line_start` says whether nothing but spaces stands before it on its line.
    """
    if text.isascii() and not _MAYBE_SPECIAL.search(text):
        return range(1, len(text) + 1)
    ends: list[int] = []
    at = 0
    for found in _SPECIAL.finditer(text):
        if found.start() == 0 and found["fence"] and not line_start:
            continue
        _clusters(text, at, found.start(), ends)
        at = found.end()
        ends.append(at)
    _clusters(text, at, len(text), ends)
    return ends


def may_grow(atom: str, *, line_start: bool) -> bool:
    """Whether what comes next is likely to belong to `atom`, the last of a text.

    An unfinished escape sequence or fence; a joiner, half a flag, a pictograph; scripts that write
    vowels as marks. A letter of other scripts is let go: nearly always it is whole, and holding
    the last letter of every token would cost more than a late accent.
    """
    if atom.isalnum() and atom.isascii():
        return False  # by far the most common
    if atom[0] == "\x1b":
        return not _WHOLE_ESCAPE.fullmatch(atom) and len(atom) < 250
    if line_start and atom.lstrip(" ").startswith("`"):
        return len(atom) < MAX_ATOM_CHARS
    if len(atom) >= MAX_ATOM_CHARS:
        return False
    last = atom[-1]
    if last == _ZWJ or last in _LINKERS:
        return True
    if _is_regional(last):
        return len(atom) == 1
    return _is_pictograph(atom[0]) or _is_jamo(last) or _takes_marks(last)


def line_start_after(text: str, *, line_start: bool) -> bool:
    """Whether nothing but spaces stands on the line that `text` ends on."""
    if not line_start and "\n" not in text:
        return False
    _, newline, rest = text.rpartition("\n")
    return (bool(newline) or line_start) and not rest.strip(" ")


def begins_with_mark(text: str) -> bool:
    """Whether the first character belongs to the one before it."""
    return text[:1] >= _FIRST_MARK and _extends(text[0])


def _clusters(text: str, start: int, end: int, ends: list[int]) -> None:
    if start < end and text[start:end].isascii():
        ends.extend(range(start + 1, end + 1))
        return
    while start < end:
        start = _cluster_end(text, start, end)
        ends.append(start)


def _cluster_end(text: str, start: int, end: int) -> int:
    at = start + 1
    if at < end and _is_regional(text[start]) and _is_regional(text[at]):
        at += 1
    end = min(end, start + MAX_ATOM_CHARS)
    while at < end and text[at] >= _FIRST_MARK and _joins(text[start], text[at - 1], text[at]):
        at += 1
    return at


def _joins(first: str, before: str, char: str) -> bool:
    """Whether `char` belongs to the cluster that begins with `first` and ends in `before`."""
    if before < " ":
        return False
    if _extends(char):
        return True
    if before == _ZWJ:
        return _is_pictograph(first) and _is_pictograph(char)
    if before in _LINKERS:
        return ord(before) >> 7 == ord(char) >> 7 and char.isalpha()
    return _is_hangul_sequence(before, char)


def _extends(char: str) -> bool:
    """Marks, joiners, variation selectors, skin tones, tags, half-width voicing marks, sara am."""
    if char < _FIRST_MARK:
        return False
    code = ord(char)
    return (
        char in (_ZWJ, _ZWNJ)
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or code in (0x0E33, 0x0EB3, 0xFF9E, 0xFF9F)
        or unicodedata.category(char)[0] == "M"
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_pictograph(char: str) -> bool:
    """Extended_Pictographic, by block."""
    code = ord(char)
    return (
        0x1F000 <= code <= 0x1FAFF
        or 0x2600 <= code <= 0x27BF
        or 0x2190 <= code <= 0x21FF
        or 0x2300 <= code <= 0x23FF
        or 0x25A0 <= code <= 0x25FF
        or 0x2B00 <= code <= 0x2BFF
        or code in (0xA9, 0xAE, 0x203C, 0x2049, 0x2122, 0x2139, 0x3030, 0x303D, 0x3297, 0x3299)
    )


def _takes_marks(char: str) -> bool:
    """Scripts of South and South-East Asia, whose vowels are marks."""
    return "\u0900" <= char <= "\u109f" or "\u1700" <= char <= "\u17ff"


def _is_jamo(char: str) -> bool:
    return "\u1100" <= char <= "\u11ff"


def _is_hangul_sequence(before: str, char: str) -> bool:
    """GB6 to GB8: leading consonants, vowels and trailing consonants of one syllable."""
    if not _is_jamo(char) and not "\uac00" <= char <= "\ud7a3":
        return False
    return _hangul(char) in _HANGUL_FOLLOWERS.get(_hangul(before), ())


_HANGUL_FOLLOWERS = {
    "L": ("L", "V", "LV", "LVT"),
    "V": ("V", "T"),
    "LV": ("V", "T"),
    "T": ("T",),
    "LVT": ("T",),
}


def _hangul(char: str) -> str:
    """The Hangul_Syllable_Type, or nothing."""
    code = ord(char)
    if 0x1100 <= code <= 0x115F:
        return "L"
    if 0x1160 <= code <= 0x11A7:
        return "V"
    if 0x11A8 <= code <= 0x11FF:
        return "T"
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    return ""
