"""The replay teacher's own process: exchanges in by stdin, what they taught out by stdout.

At the lowest priority, one exchange at a time, until stdin ends, as it does when the gateway has.
Texts are in its memory while it looks at them and nowhere else: it writes no file, its memory is
never dumped, and of an exchange that fails only the kind of error is told.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson

from paceline.core.replayable import read_replayable, study

LENGTH = struct.Struct(">I")
"""Of the JSON of a reply, which follows it."""
MEMORY_BYTES = 2**30
"""Of addresses. An exchange of the greatest size takes about 150 MB; one that wants more fails."""


def main() -> None:
    os.nice(19)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the gateway's affair
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    serve(sys.stdin.buffer.read, _write)


def serve(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    """Answers exchanges until there are no more."""
    while (exchange := read_replayable(read)) is not None:
        said: dict[str, Any] = {"replayed": None, "error": None}
        try:
            replayed = study(exchange)
            said["replayed"] = replayed and replayed.as_json()
        except Exception as error:  # whatever a text does, the next one is looked at
            said["error"] = type(error).__name__
        del exchange
        said["cpu_s"] = time.process_time()  # since the start, the start itself included
        reply = orjson.dumps(said)
        write(LENGTH.pack(len(reply)) + reply)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
