"""When a request is asked again. Pure: the caller waits.

Only before the first byte of an answer, and only for what another try may mend: no connection, and
answers that say "later". A server's `Retry-After` is obeyed; one that asks for more patience than
`longest_s` is not waited for, and its error is the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from paceline_client.errors import ApiError, ConnectError, PacelineError

_WORTH_ANOTHER_TRY = frozenset({408, 409, 429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Up to `most` further tries, after `first_s`, twice that, … less up to a half by chance."""

    most: int = 2
    first_s: float = 0.5
    longest_s: float = 30.0

    def wait_s(self, number: int, error: PacelineError, random: Random) -> float | None:
        """How long to wait after try `number` (from 0) failed so; None to let it be."""
        if number >= self.most:
            return None
        if isinstance(error, ApiError):
            if error.status not in _WORTH_ANOTHER_TRY:
                return None
            if error.retry_after_s is not None:
                return error.retry_after_s if error.retry_after_s <= self.longest_s else None
        elif not isinstance(error, ConnectError):
            return None
        backoff_s = min(self.longest_s, self.first_s * 2**number)
        return float(backoff_s * (1 - random.random() / 2))
