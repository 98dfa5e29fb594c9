"""Text to word tokens and back: the simulator's stand-in for a model's tokenizer.

A token is one of: a run of at most 16 word characters, a single Chinese, Japanese kana or Hangul
character, a single punctuation mark (each with the one space before it), a newline, a run of other
white space, a chat template's marker. Joined, the tokens are the text again, byte for byte.

Left out: subwords. English prose comes out at about as many tokens as a real tokenizer makes, long
identifiers and other languages at fewer.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

from paceline.core.types import Turn
from paceline.core.word_tokens import WIDE

END = "<|im_end|>"
END_ID = 2  # what SmolLM2's tokenizer calls it; the marker that ends every answer
VOCABULARY = 1 << 20  # so large that the few thousand words of a prompt seldom share an id

_TOKEN = re.compile(
    rf"""
      <\|\w{{1,24}}\|>
    | \n
    | [ ]?[{WIDE}]
    | [ ]?(?:(?![{WIDE}])\w){{1,16}}
    | [ ]?[^\w\s]
    | [^\S\n]+(?=[ ]\S)             # indentation, less the space that goes with the word after it
    | [^\S\n]+
    """,
    re.VERBOSE,
)


def tokenize(text: str) -> list[str]:
    """The text's tokens; `"".join` of them is the text."""
    return _TOKEN.findall(text)


def token_id(token: str) -> int:
    """The same number for the same token in every process, in [3, VOCABULARY)."""
    if token == END:
        return END_ID
    return 3 + zlib.crc32(token.encode("utf-8", "surrogatepass")) % (VOCABULARY - 3)


def render_chat(turns: Iterable[Turn]) -> str:
    """The prompt that a chat template makes of a conversation (ChatML, as SmolLM2 and Qwen use)."""
    said = "".join(f"<|im_start|>{turn.role}\n{turn.text}{END}\n" for turn in turns)
    return f"{said}<|im_start|>assistant\n"
