"""What a conversation asks for, at a light look of our own: chat, code, or an edit of a text.

A pasted text and a wish to change it make an edit; words about programs make code; the rest is
chat. Deliberately not the gateway's classifier: a simulated model that shared it would agree with
every mistake it makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.core.types import Turn, Workload

MIN_DOCUMENT_CHARS = 3
MAX_BLOCKS = 64  # of pasted blocks looked at in a message; more is not a conversation
LONG_INSTRUCTION_CHARS = 600

_EDIT = re.compile(
    r"\b(?:fix|correct|proofread|rename|renamed|replaced?|substitute|swap|chang(?:e|ing)|convert"
    r"|uppercase|lowercase|capitali[sz]e|refactor|reformat|format|clean up|tidy|polish|edit|update"
    r"|modify|remove|delete|sort|rewrite|revise|improve|simplify|annotate|apply"
    r"|add (?:a |some |the )?(?:missing )?(?:python )?(?:type|doc|comment)[ \w]*"
    r"|(?:return|give|output|print|repeat|copy)\b[^.\n]{0,40}"
    r"\b(?:full|whole|entire|complete|back|unchanged))\b",
    re.IGNORECASE,
)
_NEW_VERSION = re.compile(
    r"\b(?:corrected|fixed|improved|updated|revised|edited|full|whole|complete|modified)\s+"
    r"(?:version|code|file|text|function|document|program|script|class)\b",
    re.IGNORECASE,
)
_EXPLAIN = re.compile(
    r"\b(?:explain|summari[sz]e|summary|describe|review|translate|tell me|what|why|how|compare"
    r"|discuss|critique|list)\b",
    re.IGNORECASE,
)
_MAKE = re.compile(
    r"\b(?:write|implement|create|build|develop|program|code up|give me|show me|need|generate|make"
    r"|complete|convert|port)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\b(?:python|javascript|typescript|rust|golang|java|kotlin|swift|ruby|php|bash|sql|c\+\+|html"
    r"|css|react|fastapi|django|flask|function|functions|class|method|methods|program|script|code"
    r"|coding|algorithm|regex|regexp|api|endpoint|decorator|unit tests?|query|schema|module|parser"
    r"|cli|lru|csv|json|binary search|linked list|rate limiter|data structure|bug)\b|\bc#",
    re.IGNORECASE,
)
_SOURCE_LINE = re.compile(
    r"^\s*(?:def |class |import |from \w+ import |function |const |let |#include|public |fn |func "
    r"|SELECT |CREATE TABLE )",
    re.MULTILINE,
)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)([^`\n]*)$")
_TAG = re.compile(r"^<([A-Za-z][\w-]{0,40})>\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Pasted text; `language` is what its fence said; `fenced` ones go back in a fence."""

    text: str
    fenced: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """`instruction` is the last user message without what was pasted into it."""

    workload: Workload
    instruction: str
    document: Document | None = None


def read_ask(turns: Sequence[Turn]) -> Ask:
    """What the last user message of a conversation wants."""
    last = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=-1)
    text = turns[last].text if last >= 0 else ""
    instruction, document = split_document(text)
    if _wants_edit(instruction) or (document and _implies_edit(instruction)):
        document = document or _earlier_document(turns[: max(last, 0)])
        if document is not None:
            return Ask(workload=Workload.EDIT, instruction=instruction, document=document)
    workload = Workload.CODE if _wants_code(instruction, text) else Workload.CHAT
    return Ask(workload=workload, instruction=instruction)


def split_document(text: str) -> tuple[str, Document | None]:
    """A message taken apart: the caller's own words, and the largest text pasted among them."""
    for find in (_fenced, _tagged, _after_colon, _before_instruction):
        if found := find(text):
            return found
    return text, None


def _wants_edit(instruction: str) -> bool:
    """An editing verb comes first among the verbs: "fix what I list" edits, "list fixes" does not.

    "how", "what" and their like ask rather than order, wherever a sentence starts with them.
    """
    words = instruction[:LONG_INSTRUCTION_CHARS]
    edit = _EDIT.search(words)
    if edit is None:
        return False
    others = [match for match in (_EXPLAIN.search(words), _MAKE.search(words)) if match]
    return all(edit.start() <= other.start() for other in others)


def _implies_edit(instruction: str) -> bool:
    """Beside a pasted text: a new version of it is mentioned, or nothing else is asked for."""
    words = instruction[:LONG_INSTRUCTION_CHARS]
    if _NEW_VERSION.search(words):
        return True
    return bool(words.strip()) and not _EXPLAIN.search(words) and not _MAKE.search(words)


def _wants_code(instruction: str, text: str) -> bool:
    words = instruction[:LONG_INSTRUCTION_CHARS]
    if _SOURCE_LINE.match(text):
        return True
    explain, make = _EXPLAIN.search(words), _MAKE.search(words)
    if explain and (make is None or explain.start() < make.start()):
        return False
    return _CODE.search(words) is not None


# --- where a pasted text may stand ----------------------------------------------------------------


def _fenced(text: str) -> tuple[str, Document] | None:
    """The longest block between Markdown fences; one that is never closed runs to the end."""
    own, blocks = _read_fences(text.split("\n"))
    if not blocks:
        return None
    return "\n".join(own).strip(), max(blocks, key=lambda block: len(block.text))


def _read_fences(lines: Iterable[str]) -> tuple[list[str], list[Document]]:
    own: list[str] = []
    blocks: list[Document] = []
    opened, inside = None, list[str]()
    for line in lines:
        fence = _FENCE.match(line.rstrip("\r"))
        if opened is None and fence and len(blocks) < MAX_BLOCKS:
            opened, inside = fence, []
        elif opened and fence and fence[1].startswith(opened[1]) and not fence[2].strip():
            blocks.append(_block(opened, inside))
            opened = None
        else:
            (own if opened is None else inside).append(line)
    if opened and inside:
        blocks.append(_block(opened, inside))
    return own, blocks


def _block(fence: re.Match[str], lines: list[str]) -> Document:
    return Document(text="\n".join(lines), fenced=True, language=fence[2].strip())


def _tagged(text: str) -> tuple[str, Document] | None:
    """The first block between `<name>` and `</name>`, each on a line of its own."""
    for count, tag in enumerate(_TAG.finditer(text)):
        close = f"</{tag[1]}>"
        end = text.find(close, tag.end())
        if end > 0:
            document = Document(text=text[tag.end() : end].strip("\n"))
            return (text[: tag.start()] + text[end + len(close) :]).strip(), document
        if count == MAX_BLOCKS:
            break
    return None


def _after_colon(text: str) -> tuple[str, Document] | None:
    """ "Correct this: …": what follows the first colon, if the words before it ask for an edit."""
    own, colon, rest = text.partition(":")
    if not colon or len(own) > LONG_INSTRUCTION_CHARS or not _wants_edit(own):
        return None
    if len(rest.strip()) < MIN_DOCUMENT_CHARS:
        return None
    return own, Document(text=rest.strip("\n").strip(" "))


def _before_instruction(text: str) -> tuple[str, Document] | None:
    """A text in paragraphs with the order at its end or start, separated by an empty line."""
    parts = text.strip("\n").split("\n\n")
    if len(parts) < 2:
        return None
    for own, rest in ((parts[0], parts[1:]), (parts[-1], parts[:-1])):
        document = "\n\n".join(rest)
        if len(own) <= len(document) and len(own) <= LONG_INSTRUCTION_CHARS and _wants_edit(own):
            return own, Document(text=document)
    return None


def _earlier_document(turns: Sequence[Turn]) -> Document | None:
    """The text a conversation is about: the newest pasted one, in its newest version.

    An assistant's answer of about the same length as what the user pasted counts as that version.
    """
    newer = ""
    for turn in reversed(turns):
        fenced = _fenced(turn.text)
        if turn.role == "assistant":
            if fenced:
                return fenced[1]
            newer = newer or turn.text
        elif turn.role == "user":
            document = fenced[1] if fenced else split_document(turn.text)[1]
            if document is not None:
                return _newest(document, newer)
            newer = ""
    return None


def _newest(document: Document, answer: str) -> Document:
    similar = 0.5 * len(document.text) <= len(answer) <= 1.5 * len(document.text)
    return Document(text=answer) if similar and not document.fenced else document
