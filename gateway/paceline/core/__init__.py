"""Pure decisions about requests: no I/O, no clock, no randomness of its own.

Start reading at `decide.py`.
"""
