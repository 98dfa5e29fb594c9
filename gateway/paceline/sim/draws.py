"""Drafters whose luck is drawn: trained heads and draft models, and lookups where there is no text.

What a head would have proposed cannot be known here; how many of its tokens hold can be drawn from
measured survivals.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from paceline.core.draft import Draft
from paceline.sim.survivals import check_survivals


class HeadDrafter:
    """Drafts as many tokens as it may, up to `len(survivals)`, of which a random number holds.

    `survivals[i]` is the probability that the first i + 1 tokens are all accepted; one draw per
    pass decides how far it goes. Passes are independent, which real heads' are nearly (lag-1
    autocorrelation 0.04 to 0.17 on GSM8K and CNN/DM in the traces of SpecDecode-Bench).
    """

    def __init__(self, survivals: Sequence[float], rng: random.Random) -> None:
        self._survivals = tuple(survivals)
        check_survivals(self._survivals)
        self._rng = rng

    def extend(self, tokens: Sequence[str]) -> None:
        """A draw needs no context."""

    def draft(self, upcoming: Sequence[str], limit: int) -> Draft:
        drafted = min(limit, len(self._survivals))
        accepted = survived(self._survivals, self._rng.random())
        return Draft(drafted=drafted, accepted=min(accepted, drafted, len(upcoming)))


class TwoStateDrafter:
    """A lookup without texts: runs of passes that match, and runs that do not.

    Over all passes the survivals are those given, and tokens a pass have the lag-1 autocorrelation
    given, or as much of it as two states can make. Passes in the matching state draft; their first
    token holds with probability `first_hit`. `padded` passes without a match draft too, in vain.
    """

    def __init__(
        self,
        survivals: Sequence[float],
        rng: random.Random,
        *,
        autocorrelation: float,
        first_hit: float = 0.8,
        padded: bool = False,
    ) -> None:
        given = tuple(survivals)
        check_survivals(given)
        if not 0.0 <= autocorrelation < 1.0 or not 0.0 < first_hit <= 1.0:
            raise ValueError(f"not a burstiness: {autocorrelation=} {first_hit=}")
        self._share = min(1.0, given[0] / first_hit)  # of passes that match
        self._hits = tuple(s / self._share if self._share else 0.0 for s in given)
        self._stay = persistence(given, self._share, autocorrelation)
        self._padded = padded
        self._rng = rng
        self._matching = rng.random() < self._share

    def extend(self, tokens: Sequence[str]) -> None:
        """A draw needs no context."""

    def draft(self, upcoming: Sequence[str], limit: int) -> Draft:
        matching = self._matching
        if self._rng.random() >= self._stay:
            self._matching = self._rng.random() < self._share
        if not matching and not self._padded:
            return Draft(drafted=0, accepted=0)
        drafted = min(limit, len(self._hits))
        accepted = survived(self._hits, self._rng.random()) if matching else 0
        return Draft(drafted=drafted, accepted=min(accepted, drafted, len(upcoming)))


def survived(survivals: Sequence[float], luck: float) -> int:
    """How many tokens hold, for a draw that is uniform in [0, 1)."""
    return sum(1 for survival in survivals if luck < survival)


def persistence(survivals: Sequence[float], share: float, autocorrelation: float) -> float:
    """The chance that a state is kept without a new draw, for tokens a pass to correlate so.

    Tokens a pass have mean 1 + S/m in the matching state (share m, S the sum of the survivals) and
    1 outside it, so m (1 - m) (S/m)^2 of their variance lies between the states; and only that part
    correlates, by the persistence from one pass to the next. At most 0.98: longer runs than 50
    passes were not seen.
    """
    total = sum(survivals)
    second = sum((2 * i + 1) * survival for i, survival in enumerate(survivals))  # E[accepted^2]
    variance = second - total**2
    between = (1.0 - share) / share * total**2 if share else 0.0
    return min(0.98, autocorrelation * variance / between) if between else 0.0
