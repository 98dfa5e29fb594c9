"""Where text may be cut: between user-perceived characters, escape sequences and code fences.

`atoms` cuts a text into pieces that must stay whole; `may_grow` says whether the last one could
still change with what comes. Both look at each character a bounded number of times.

Extended grapheme clusters of UAX #29, in a form small enough to be the same in every language.
Left out: prepended signs (a few Arabic and Indic ones).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

MAX_ATOM_CHARS = 64
"""A cluster longer than this is cut: endless combining marks must not hold up a stream."""

_ZWJ = "\u200d"
_ZWNJ = "\u200c"
_FIRST_MARK = "\u0300"  # nothing below joins what stands before it, but for a joiner
# Viramas that link the consonant before to the one after (UAX #29, GB9c).
_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
# Extended_Pictographic of Unicode 17 (emoji-data.txt), which `unicodedata` does not tell.
_PICTOGRAPHS = (
    "a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 23cf 23e9-23f3 23f8-23fa 24c2 "
    "25aa-25ab 25b6 25c0 25fb-25fe 2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 "
    "262a 262e-262f 2638-263a 2640 2642 2648-2653 265f-2660 2663 2665-2666 2668 267b 267e-267f "
    "2692-2697 2699 269b-269c 26a0-26a1 26a7 26aa-26ab 26b0-26b1 26bd-26be 26c4-26c5 26c8 "
    "26ce-26cf 26d1 26d3-26d4 26e9-26ea 26f0-26f5 26f7-26fa 26fd 2702 2705 2708-270d 270f 2712 "
    "2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e 2753-2755 2757 2763-2764 2795-2797 "
    "27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299 1f004 "
    "1f02c-1f02f 1f094-1f09f 1f0af-1f0b0 1f0c0 1f0cf-1f0d0 1f0f6-1f0ff 1f170-1f171 1f17e-1f17f "
    "1f18e 1f191-1f19a 1f1ae-1f1e5 1f201-1f20f 1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f25f "
    "1f266-1f321 1f324-1f393 1f396-1f397 1f399-1f39b 1f39e-1f3f0 1f3f3-1f3f5 1f3f7-1f3fa "
    "1f400-1f4fd 1f4ff-1f53d 1f549-1f54e 1f550-1f567 1f56f-1f570 1f573-1f57a 1f587 1f58a-1f58d "
    "1f590 1f595-1f596 1f5a4-1f5a5 1f5a8 1f5b1-1f5b2 1f5bc 1f5c2-1f5c4 1f5d1-1f5d3 1f5dc-1f5de "
    "1f5e1 1f5e3 1f5e8 1f5ef 1f5f3 1f5fa-1f64f 1f680-1f6c5 1f6cb-1f6d2 1f6d5-1f6e5 1f6e9 "
    "1f6eb-1f6f0 1f6f3-1f6ff 1f7da-1f7ff 1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f "
    "1f8ae-1f8af 1f8bc-1f8bf 1f8c2-1f8cf 1f8d9-1f8ff 1f90c-1f93a 1f93c-1f945 1f947-1f9ff "
    "1fa58-1fa5f 1fa6e-1faff 1fc00-1fffd "
)
_PICTOGRAPH = re.compile(
    "[" + re.sub("([0-9a-f]+) ?", lambda code: chr(int(code[1], 16)), _PICTOGRAPHS) + "]"
)

_ESCAPE = (
    r"\x1b(?:\[[0-?]{0,60}[ -/]{0,4}[@-~]?"  # CSI: parameters, intermediates, final byte
    r"|\][^\x07\x1b]{0,250}(?:\x07|\x1b\\?)?"  # OSC up to BEL or ST
    r"|[ -/]{0,2}[0-Z^-~\\]?)"
)
# Up to three spaces may indent a fence (CommonMark); one or two backticks may become three.
_FENCE = r"(?<=\n) {0,3}(?P<fence>`{3,30}[^\t-\r\x1b `]{0,32}|`{1,2})"
_SPECIAL = re.compile(rf"{_ESCAPE}|{_FENCE}|\r\n")
_MAYBE_SPECIAL = re.compile("[\x1b`\r]")
_INDENT = re.compile(r"\n {0,3}\Z")


def atoms(text: str, *, indent: str = "\n") -> Sequence[int]:
    """The ends of the pieces of `text` that must stay whole, ascending; the last is its length.

    `indent` is what its first line begins with, a line feed before it; empty within a line.
    """
    if text.isascii() and not _MAYBE_SPECIAL.search(text):
        return range(1, len(text) + 1)
    whole, at = indent + text, len(indent)
    ends: list[int] = []
    for found in _SPECIAL.finditer(whole):
        _clusters(whole, at, found.start("fence" if found["fence"] else 0), ends)
        at = found.end()
        ends.append(at)
    _clusters(whole, at, len(whole), ends)
    return [end - len(indent) for end in ends] if indent else ends


def may_grow(atom: str, *, indent: str) -> bool:
    """Whether what comes next is likely to belong to `atom`, the last of a text.

    Half a flag, a pictograph; scripts that write vowels as marks; an escape sequence or a fence
    that either of two signs would lengthen. A letter of other scripts is let go: nearly always it
    is whole, and holding the last letter of every token would cost more than a late accent.
    """
    is_markup = atom[0] in "\x1b`"
    if atom.isascii() and not is_markup:
        return False  # by far the most common
    last = atom[-1]
    if (_is_regional(last) and len(atom) == 1) or _is_pictograph(atom[0]) or _takes_marks(last):
        return True
    return is_markup and any(atoms(atom + sign, indent=indent)[0] > len(atom) for sign in "\\`")


def indent_after(text: str, *, indent: str) -> str:
    """What the line that `text` ends on begins with; empty if that is more than indents a fence."""
    if not indent and "\n" not in text:
        return ""  # by far the most common
    found = _INDENT.search(indent + text)
    return found[0] if found else ""


def begins_with_mark(text: str) -> bool:
    """Whether the first character belongs to the one before it."""
    return text >= _FIRST_MARK and _extends(text[0])


def _clusters(text: str, start: int, end: int, ends: list[int]) -> None:
    if start < end and text[start:end].isascii():
        ends.extend(range(start + 1, end + 1))
        return
    while start < end:
        start = _cluster_end(text, start, end)
        ends.append(start)


def _cluster_end(text: str, start: int, end: int) -> int:
    at = start + 1
    if text[start] < " ":
        return at
    if at < end and _is_regional(text[start]) and _is_regional(text[at]):
        at += 1
    end = min(end, at + MAX_ATOM_CHARS - 1)
    while at < end and (text[at] >= _FIRST_MARK or text[at - 1] == _ZWJ) and _joins(text, at):
        at += 1
    return at


def _joins(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to the cluster of the one before it."""
    before, char = text[at - 1], text[at]
    if _extends(char):
        return True
    if before == _ZWJ and _is_pictograph(char):
        return _is_behind_pictograph(text, at)
    if before in _LINKERS:
        return "\u0900" <= char <= "\u0dff" and char.isalpha()
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
    return bool(_PICTOGRAPH.match(char))


def _is_behind_pictograph(text: str, at: int) -> bool:
    """Whether nothing but what extends it stands between a pictograph and `at` (GB11)."""
    while at > 0 and _extends(text[at - 1]):
        at -= 1
    return at > 0 and _is_pictograph(text[at - 1])


def _takes_marks(char: str) -> bool:
    """Scripts of South and South-East Asia, whose vowels are marks; jamo; half a surrogate pair."""
    ranges = ("\u0900", "\u11ff"), ("\u1700", "\u17ff"), ("\ud800", "\udbff")
    return any(first <= char <= last for first, last in ranges)


def _is_hangul_sequence(before: str, char: str) -> bool:
    """GB6 to GB8, near enough: leading consonants, then vowels, then trailing ones."""
    kind, other = _hangul(before), _hangul(char)
    return bool(kind and other) and other in _HANGUL_FOLLOWERS[kind]


_HANGUL_FOLLOWERS = {"L": "LVTS", "V": "VT", "S": "VT", "T": "T"}


def _hangul(char: str) -> str:
    """Leading consonant, vowel, trailing consonant, or whole syllable; or nothing."""
    if "\u1100" <= char <= "\u115f":
        return "L"
    if "\u1160" <= char <= "\u11a7":
        return "V"
    if "\u11a8" <= char <= "\u11ff":
        return "T"
    return "S" if "\uac00" <= char <= "\ud7a3" else ""
