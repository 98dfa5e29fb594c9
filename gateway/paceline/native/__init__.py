"""Compiled twins of a few functions that every request passes: the same results, faster by far.

The Python function is the law: it is what is read, changed and explained, and it runs wherever its
twin could not be built. A twin is a module in C, one for each file here, chosen over its law in one
place, `core/compiled.py` or `edge/heads.py`; it hands what it was not written for (text that is not
ASCII, unusual heads) to the law. `tests/native/` holds them to the same results.
"""
