"""The caller's own words, told from the material they gave.

`split` looks at both ends of a text, at most `LOOK_CHARS` of it, and costs the same whatever lies
between. Fenced blocks, lines that read as source code and long paragraphs are material.
"""

from __future__ import annotations

LOOK_CHARS = 4096
"""Text read of the last user turn, half from each end."""
ASK_CHARS = 400
"""Of the caller's own words, at each end of the text; instructions are rarely longer."""
SHORT_SAMPLE_CHARS = 300
SAMPLE_CHARS = 600
"""Of material, to tell code from prose."""
PARAGRAPH_CHARS = 400
"""A paragraph longer than this is taken for material."""
SHORT_PARAGRAPH_CHARS = 160
"""One longer than this is too, where another stands beside it that is much shorter."""
MAX_LINES = 8
"""Lines at each end of code that are searched for the caller's words."""


Split = tuple[str, str, str, bool]
"""The caller's words before the material and after it, the material, and whether that is code.

The material may be a part of what there is: two ends, or none of what lies between.
"""


# ---- code and prose ------------------------------------------------------------------------------

SYMBOLS = b"[]{}=<>;*+&|\\^~@$_#"
_ALL_BUT_SYMBOLS = bytes(set(range(256)) - set(SYMBOLS))
CODE_SYMBOL_SHARE = 0.03
"""Source code has 5-15 % of brackets, operators and calls, prose below 1 %."""
LINE_SYMBOL_SHARE, LONG_LINE_SYMBOL_SHARE = 0.04, 0.09
"""The same of one line; of one with many words, as prose that names code."""
OPENERS = frozenset([
    "return", "import", "from", "def", "class", "function", "const", "let", "var", "public",
    "private", "static", "package", "use", "using", "func", "fn", "struct", "if", "else", "elif",
    "for", "while", "try", "except", "switch", "case", "break", "continue", "end", "begin",
    "pass", "include", "require", "module", "namespace", "interface", "enum", "impl", "extern",
    "mod", "select", "insert",
])  # fmt: skip
OPEN_ENDS = (":", "{", "(", ";")
CODE_START = frozenset(" \t{}()[]<#/*@$;=|&%+\\")


def symbol_share(text: str) -> float:
    """The share of characters that are brackets, operators and calls; a call counts twice."""
    symbols = text.encode("ascii", "ignore").translate(None, _ALL_BUT_SYMBOLS)
    num_calls = text.count("(") - text.count(" (") if "(" in text else 0
    return (len(symbols) + 2 * num_calls) / (len(text) or 1)


def is_code(text: str) -> bool:
    """Whether a text reads as source code or as structured data, by its look alone."""
    if symbol_share(text) > CODE_SYMBOL_SHARE:
        return True
    num_lines = text.count("\n")
    if num_lines < 2:
        return False
    num_indented = text.count("\n  ") + text.count("\n\t")
    return num_indented >= 2 and num_indented * 3 > num_lines


def _is_code_line(line: str) -> bool:
    if not line:
        return False
    if line[0] == "<" and line[-1] == ">":  # <request>Rename it.</request>
        line = line.partition(">")[2].rpartition("<")[0] or line
    if line[0] in CODE_START or line[-1] in "{};":
        return True
    words = line.split(None, 6)
    if not words:
        return False
    opens = words[0].lower() in OPENERS
    if opens and (len(words) < 4 or "import" in words):
        return True
    is_long = len(words) > 6 and not opens
    return symbol_share(line) > (LONG_LINE_SYMBOL_SHARE if is_long else LINE_SYMBOL_SHARE)


# ---- where the caller's words are ----------------------------------------------------------------


def split(text: str) -> Split:
    """Where the caller's words are: at the start, at the end, or (all material) nowhere."""
    if len(text) > LOOK_CHARS:
        half = LOOK_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    text = text.strip("\n ")
    first = text.find("```") if "`" in text else -1  # one character is found much faster
    if first >= 0:
        last = text.rfind("```")
        after = text[last + 3 :].strip("\n ") if last > first else ""
        inside = text[first + 3 : last] if last > first else text[first + 3 :]
        return (text[:first].rstrip("\n ")[-ASK_CHARS:], after[:ASK_CHARS], inside, True)
    if "\n" in text:
        if len(text) > 40 and is_code(text[:SAMPLE_CHARS]):
            return _around_code(text)
    elif text.endswith(OPEN_ENDS) and _is_code_line(text):  # the head of a function
        return ("", "", text, True)
    return _around_prose(text)


def _around_code(text: str) -> Split:
    lines = text[:ASK_CHARS].split("\n", MAX_LINES)
    start = 0
    while start < len(lines) and not _is_code_line(lines[start]):
        start += 1
    if start == len(lines):  # all of it reads as prose: symbols of another kind
        return _around_prose(text)
    lines_after = text[-ASK_CHARS:].rsplit("\n", MAX_LINES)
    end = len(lines_after)
    while end > 0 and not _is_code_line(lines_after[end - 1]):
        end -= 1
    before, after = "\n".join(lines[:start]), "\n".join(lines_after[end:])
    return (before.rstrip(), after.strip(), text[len(before) : len(text) - len(after)], True)


def _around_prose(text: str) -> Split:
    head, gap, rest = text.partition("\n\n")
    if not gap:
        return _around_lines(text)
    middle, _, tail = rest.rpartition("\n\n")
    shortest = min(len(head), len(tail))
    is_head, is_tail = not _is_material(head, shortest), not _is_material(tail, shortest)
    if not (is_head or is_tail):  # then the shorter end is what was said of the rest
        is_head = len(head) <= len(tail)
        is_tail = not is_head
    if is_head and head.endswith((":", "：")):
        is_tail = is_tail and "?" in tail[-2:]
    elif is_head and is_tail and len(middle) < PARAGRAPH_CHARS and len(head) <= len(tail) // 3:
        is_tail = len(tail) < SHORT_PARAGRAPH_CHARS // 2
    before = head[:ASK_CHARS] if is_head else _short_line(*head.partition("\n")[::2])
    after = tail[-ASK_CHARS:] if is_tail else _short_line(*tail.rpartition("\n")[::-2])
    material = middle if is_tail else f"{middle}\n\n{tail}"
    material = material if is_head else f"{head}\n\n{material}"
    return (before, after, material, is_code(material[:SHORT_SAMPLE_CHARS]))


def _is_material(block: str, shortest: int) -> bool:
    if len(block) > PARAGRAPH_CHARS:
        return True
    return len(block) > SHORT_PARAGRAPH_CHARS and len(block) > 3 * shortest


def _short_line(line: str, rest: str) -> str:
    """A line that is much shorter than the paragraph it stands in, else nothing."""
    return line if len(line) < SHORT_PARAGRAPH_CHARS and 3 * len(line) < len(rest) else ""


def _around_lines(text: str) -> Split:
    """A paragraph, cut after an instruction that ends in a line break or a colon."""
    first, cut, rest = text.partition("\n")
    if cut:
        body, _, last = rest.rpartition("\n")
        if len(first) > SHORT_PARAGRAPH_CHARS and 2 * len(last) < len(first):
            return ("", last, f"{first}\n{body}", False)
        if len(rest) > len(first):
            return (first[:ASK_CHARS], "", rest, is_code(rest[:SHORT_SAMPLE_CHARS]))
    head, cut, tail = text.partition(": ")
    if (
        cut
        and len(head) < 200
        and (
            len(tail) > 200
            or (len(head) > 14 and len(tail) > 12)
            or (len(head) > 8 and len(text) < 30)
        )
    ):
        return (head, "", tail, is_code(tail[:SAMPLE_CHARS]))
    return (text[:ASK_CHARS], text[ASK_CHARS:][-ASK_CHARS:], "", False)
