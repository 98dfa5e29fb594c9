"""Request bodies of given sizes, to time what is done with each request."""

from __future__ import annotations

from typing import Any

from paceline.bench.materials import CODE, EDITOR_SYSTEMS, PROSE, SYSTEMS

Body = dict[str, Any]

SIZES_KIB = (0.5, 2, 8, 32, 128, 256)


def bodies(size_kib: float) -> dict[str, Body]:
    """A body of about this size in each shape, by the shape's name."""
    num_chars = int(size_kib * 1024)
    code = _filled("\n\n".join(code for _, code in CODE), num_chars)
    prose = _filled("\n\n".join(text for language, text in PROSE if language == "en"), num_chars)
    cyrillic = _filled("\n\n".join(text for language, text in PROSE if language == "ru"), num_chars)
    return {
        "edit of code": _chat(f"Rename total to amount everywhere.\n\n```\n{code}\n```"),
        "question about code": _chat(f"{code}\n\nWhat does the second class do?"),
        "proofreading": _chat(f"Fix the grammar and return the full text.\n\n{prose}"),
        "summary": _chat(f"{prose}\n\nSummarize this in three sentences.", system=SYSTEMS[0]),
        "not in English": _chat(f"Исправь ошибки в тексте.\n\n{cyrillic[: num_chars // 2]}"),
        "conversation": _conversation(prose, num_chars),
        "agent": _agent(code),
        "long system text": _chat("What are your opening hours?", system=prose),
    }


def _filled(text: str, num_chars: int) -> str:
    return (f"{text}\n\n" * (num_chars // len(text) + 1))[:num_chars]


def _chat(text: str, system: str | None = None) -> Body:
    opening = [{"role": "system", "content": system}] if system else []
    return {"model": "m", "messages": [*opening, {"role": "user", "content": text}]}


def _conversation(prose: str, num_chars: int) -> Body:
    """Questions and answers in turn; at most 128 of each."""
    turn_chars = max(1000, num_chars // 128)
    answers = [prose[at : at + turn_chars] for at in range(0, num_chars, turn_chars)][:128]
    turns = [
        message
        for answer in answers
        for message in (
            {"role": "user", "content": "Tell me more about the town."},
            {"role": "assistant", "content": answer},
        )
    ]
    return {"model": "m", "messages": [*turns, {"role": "user", "content": "And the harbour?"}]}


def _agent(code: str) -> Body:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": EDITOR_SYSTEMS[4]},
        {"role": "user", "content": "Handle an empty list in total_price."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": code},
    ]
    tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
    return {"model": "m", "messages": messages, "tools": tools}
