"""Text → word tokens, in which copying is measured; and texts cut to a bound.

A token is a run of word characters, a single punctuation mark, or a single Chinese, Japanese kana
or Hangul character. White space separates and is dropped, case counts. No model's tokenizer is
needed, so outputs of all models are measured alike; English comes out at about three word tokens
for every four of a model.
"""

from __future__ import annotations

import re

WIDE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""The scripts written without spaces, as the inside of a character class."""
_TOKEN = re.compile(rf"[{WIDE}]|[^\W{WIDE}]+|[^\w\s]")


def word_tokens(text: str) -> list[str]:
    """The word tokens of a text, in order."""
    return _TOKEN.findall(text)


def cut_to_share(prompt: str, output: str, limit_bytes: int) -> tuple[str, str]:
    """Both texts, together at most `limit_bytes` of UTF-8: each may have half of it, and what the
    other leaves of its half. Of a text that is too long both ends are kept."""
    asked, answered = prompt.encode("utf-8", "replace"), output.encode("utf-8", "replace")
    half = limit_bytes // 2
    for_output = min(len(answered), max(half, limit_bytes - len(asked)))
    for_prompt = min(len(asked), limit_bytes - for_output)
    return _ends(asked, for_prompt), _ends(answered, for_output)


def _ends(text: bytes, num_bytes: int) -> str:
    """A character cut in two is dropped."""
    if len(text) > num_bytes:
        tail = num_bytes // 2
        text = text[: num_bytes - tail] + b"\n" * (tail > 0) + text[len(text) - tail + 1 :]
    return text.decode("utf-8", "ignore")
