"""A body's model named otherwise, without a walk through the body, where that is safe.

Every request's is, so this has a compiled twin in `native/bodies.c` (`compiled.py` chooses); a
change here is a change there.
"""

from __future__ import annotations

_MODEL = b'"model"'


def renamed(raw: bytes, name: bytes) -> bytes | None:
    r"""`raw`, which has a top-level model, with `name`, a string as JSON writes it, for its value;
    None where only a walk could tell where that stands.

    If `"model"` occurs once and no escape can spell one of its letters (`\u006d` and so on), that
    occurrence is it. Inside a string, its last quote would stand behind a backslash; as the end of
    a string it would be a second occurrence.

    Searched from the end: in a long text `bytes.rfind` is four times as fast as `bytes.find`.
    """
    last = raw.rfind(_MODEL)
    if last < 0 or raw.rfind(_MODEL, 0, last + 1) >= 0 or raw.rfind(b"\\u006") >= 0:
        return None
    key_end = last + len(_MODEL)
    start = raw.find(b'"', key_end)
    end = raw.find(b'"', start + 1) + 1
    if raw[key_end:start].strip() != b":" or b"\\" in raw[start:end]:
        return None
    return b"".join([raw[:start], name, raw[end:]])
