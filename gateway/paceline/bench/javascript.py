"""The TypeScript pacer, and the usual rules beside it, over the same streams: run by Node.

What is run is `sdk/js/bench`; here streams go out and the time of every token comes back.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.bench.streams import RecordedStream

SDK = Path("sdk/js")
LIMIT_S = 300.0

Times = list[list[float]]
"""By stream, the time of every token, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """class → rule → times; µs of CPU a token by rule, a character by text; bytes on a page.

    Bytes are those of the rules whose own code was run.
    """

    times: Mapping[str, Mapping[str, Times]]
    us_per_token: Mapping[str, float]
    us_per_char: Mapping[str, Mapping[str, float]]
    gzip_bytes: Mapping[str, int]


def ready(sdk: Path = SDK) -> bool:
    """Whether the SDK's packages are installed, for which Node 20 is needed."""
    return (sdk / "node_modules" / ".ready").exists()


def measure(
    classes: Mapping[str, Sequence[RecordedStream]], timed: RecordedStream, *, sdk: Path = SDK
) -> Measured:
    """Every rule over every stream, and what they cost on `timed`.

    Raises CalledProcessError if the text of a stream did not come out as it went in.
    """
    asked = {
        "classes": {name: [_plain(stream) for stream in some] for name, some in classes.items()},
        "timed": _plain(timed),
    }
    ran = subprocess.run(
        ["node", str(sdk / "scripts" / "bench.mjs"), "smoothing"],
        input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(ran.stdout)
    return Measured(times=told["times"], **told["cost"])


def _plain(stream: RecordedStream) -> dict[str, Any]:
    bursts = [
        {"atMs": burst.at_ms, "text": burst.text, "numTokens": burst.num_tokens}
        for burst in stream.bursts
    ]
    return {"name": stream.name, "bursts": bursts, "endMs": stream.end_ms}
