"""What the simulated model answers: prose, a program with tests, or the pasted text, changed.

The answer is made before the first token is "generated", as a function of the conversation and a
random source: that is what lets drafts be matched against the text to come. A prompt that no
passage fits is answered from another one, and the answer says so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.core.types import Turn, Workload
from paceline.sim.asks import Ask, Document, read_ask
from paceline.sim.editor import Edited, edit
from paceline.sim.library import MAX_MATCHED_CHARS, Passage, best_match
from paceline.sim.words import tokenize

PARAGRAPHS = (6, 8)  # of a passage's body in a full answer: 450 to 650 words
_BRIEF = re.compile(
    r"\b(?:brief(?:ly)?|short|(?:one|two) sentences?|one paragraph|few words|concise|tl;?dr)\b",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"\s*(?:hi|hello|hey|good (?:morning|evening|day)|thanks?|thank you)\b", re.I
)
_ONLY = re.compile(
    r"\b(?:only|nothing else|no (?:explanation|comment)s?|just (?:the )?(?:code|text|file))\b",
    re.IGNORECASE,
)
_HELLOS = (
    "Hello! Ask me for a program, paste something to be edited, or name a topic.",
    "Hello there. I write prose about a handful of subjects, I know a dozen small programs, and I "
    "can change a text that you paste. What would you like?",
    "You are welcome. If there is anything to write, to program or to correct, go ahead.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """An answer, and which kind of work it was."""

    workload: Workload
    text: str


def write(turns: Sequence[Turn], rng: random.Random, *, at_least: int = 0) -> Writing:
    """The whole answer to a conversation; the same for the same turns and random state.

    With `at_least`, further passages follow until there are that many tokens.
    """
    ask = read_ask(turns)
    if ask.workload is Workload.EDIT and ask.document:
        text = _edited(ask, ask.document, rng)
    elif ask.workload is Workload.CODE:
        text = _program(ask, turns, rng)
    else:
        text = _prose(ask, turns, rng)
    return Writing(workload=ask.workload, text=_prolonged(text, ask.workload, rng, at_least))


def _prose(ask: Ask, turns: Sequence[Turn], rng: random.Random) -> str:
    if len(ask.instruction) < 40 and _GREETING.match(ask.instruction):
        return rng.choice(_HELLOS)
    passage, fits = _choose(Workload.CHAT, ask, turns, rng)
    brief = _BRIEF.search(ask.instruction) is not None
    paragraphs = 1 if brief else rng.randint(*PARAGRAPHS)
    essay = _essay(passage, rng, paragraphs=paragraphs, about=ask.instruction)
    return essay if fits else f"{_excuse('prose', passage)}\n\n{essay}"


def _essay(passage: Passage, rng: random.Random, *, paragraphs: int, about: str = "") -> str:
    """The opening, some paragraphs of the body in their order, and a close unless it is brief.

    Those that share most words with `about` come first in the choice.
    """
    body = passage.paragraphs
    if not passage.whole and paragraphs < len(body):
        wanted = _long_words(about[:MAX_MATCHED_CHARS])
        shared = [len(wanted & _long_words(paragraph)) for paragraph in body]
        ranked = sorted(range(len(body)), key=lambda i: (-shared[i], rng.random()))
        body = tuple(body[i] for i in sorted(ranked[:paragraphs]))
    parts = [rng.choice(passage.opens), *body]
    if len(body) > 1:
        parts.append(rng.choice(passage.closes))
    return "\n\n".join(parts)


def _long_words(text: str) -> set[str]:
    """Words of five letters and more: short ones tell nothing about a topic."""
    return set(re.findall(r"[a-z]{5,}", text.lower()))


def _program(ask: Ask, turns: Sequence[Turn], rng: random.Random) -> str:
    passage, fits = _choose(Workload.CODE, ask, turns, rng)
    if _ONLY.search(ask.instruction):
        return passage.body
    return "\n\n".join(_explained(passage, rng, excuse="" if fits else _excuse("code", passage)))


def _explained(passage: Passage, rng: random.Random, *, excuse: str = "") -> list[str]:
    parts = [excuse] if excuse else []
    tests = rng.choice(("Some tests:", "These tests show how it behaves:", "And a few tests:"))
    parts += [rng.choice(passage.opens), passage.body, tests, passage.tests]
    return [*parts, rng.choice(passage.closes)]


def _choose(
    workload: Workload, ask: Ask, turns: Sequence[Turn], rng: random.Random
) -> tuple[Passage, bool]:
    """By the last message; if that says nothing ("tell me more"), by all that the user has said."""
    passage, fits = best_match(workload, ask.instruction, rng)
    if fits:
        return passage, True
    return best_match(workload, "\n".join(t.text for t in turns if t.role == "user"), rng)


def _excuse(kind: str, passage: Passage) -> str:
    topic = passage.name.replace("_", " ")
    if kind == "code":
        return (
            f"I am a simulated model and have no program for exactly that, so here is one that I "
            f"do know: {topic}."
        )
    return f"I am a simulated model and know little about that, so let me tell you about {topic}."


def _edited(ask: Ask, document: Document, rng: random.Random) -> str:
    edited = edit(document.text, ask.instruction)
    if not document.fenced:
        return edited.text
    fence = "````" if "```" in edited.text else "```"
    block = f"{fence}{document.language}\n{edited.text}\n{fence}"
    if _ONLY.search(ask.instruction):
        return block
    return f"{_announced(edited, rng)}\n\n{block}\n\n{_assured(edited, rng)}"


def _announced(edited: Edited, rng: random.Random) -> str:
    if not edited.changes:
        return "Here it is again. I found nothing that I could change as asked."
    what = ", ".join(edited.changes)
    return rng.choice((f"Here is the whole of it, with {what}:", f"Done: {what}."))


def _assured(edited: Edited, rng: random.Random) -> str:
    if not edited.changes:
        return "If you tell me which lines should differ, I will try once more."
    return rng.choice(
        (
            "Everything else is as you had it.",
            "I left the rest untouched, including the layout and the order of the parts.",
            "Nothing else was changed.",
        )
    )


def _prolonged(text: str, workload: Workload, rng: random.Random, at_least: int) -> str:
    """The text and as many further passages as it takes; each once before any comes again."""
    kind = Workload.CODE if workload is Workload.CODE else Workload.CHAT
    parts, used = [text], set[str]()
    count = len(tokenize(text))
    while count < at_least:
        passage, _ = best_match(kind, "", rng, without=frozenset(used))
        if passage.name in used:
            used.clear()
        used.add(passage.name)
        more = (
            "\n\n".join(_explained(passage, rng))
            if passage.tests
            else _essay(passage, rng, paragraphs=99)
        )
        parts.append(more)
        count += len(tokenize(more)) + 2
    return "\n\n".join(parts)


def dictate(rng: random.Random, num_tokens: int) -> str:
    """About so many tokens of prose, as somebody may have spoken them: no layout, whole words."""
    text = _prolonged("", Workload.CHAT, rng, num_tokens)
    return "".join(tokenize(" ".join(text.split()))[:num_tokens])
