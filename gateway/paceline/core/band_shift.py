"""How far copy ratios turn out otherwise than believed, and beliefs put right by it.

A classifier learned elsewhere may be wrong about the traffic here: an application's "edits" may
rewrite everything. So for each group of requests (a workload, a template, a conversation) two
things are added up by band of the copy ratio: how much was believed to lie there, and how much was
found to. Their quotient corrects the next belief: the ratio of new to old class frequencies by
which Saerens, Latinne and Decaestecker ("Adjusting the outputs of a classifier to new a priori
probabilities", 2002) correct a posterior.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from operator import mul

from paceline.core.priors import NUM_BANDS

Shares = tuple[float, ...]
"""The probability of each band; they add up to 1."""

WORKLOAD_REQUESTS = 50.0
TEMPLATE_REQUESTS = 16.0
CONVERSATION_REQUESTS = 4.0
"""How many requests are remembered, of a workload, a template, a conversation: fewer of what is
narrower."""
AS_BELIEVED_SHARE = 0.125
"""Requests that are taken to have turned out as believed, beside those seen, as a share of those
remembered: a Dirichlet prior whose mean is what was believed."""
MAX_CORRECTED = 1024
"""Beliefs whose correction is kept until something is learned."""
MAX_CORRECTED_OF_MANY = 16
"""The same of one template or conversation, of which there are thousands."""
MAX_GROUPS = 4096
"""Templates, and conversations, that are remembered, the latest ones."""


class BandShift:
    """Of one group of requests."""

    __slots__ = (
        "_believed", "_corrected", "_found", "_max_corrected", "_memory", "_prior", "factors",
    )  # fmt: skip

    def __init__(self, memory_requests: float, *, max_corrected: int = MAX_CORRECTED) -> None:
        self._memory = memory_requests
        self._max_corrected = max_corrected
        self._prior = AS_BELIEVED_SHARE * memory_requests
        self._believed = [0.0] * NUM_BANDS
        self._corrected: dict[Shares, Shares] = {}  # until it learns
        self._found = [0.0] * NUM_BANDS
        self.factors: tuple[float, ...] = (1.0,) * NUM_BANDS
        """What a belief in each band is to be multiplied with."""

    def observe(self, believed: Shares, found: Shares) -> None:
        keep = 1.0 - 1.0 / self._memory
        self._believed = [
            keep * b + share for b, share in zip(self._believed, believed, strict=True)
        ]
        self._found = [keep * f + share for f, share in zip(self._found, found, strict=True)]
        self._settle()

    def corrected(self, shares: Shares) -> Shares:
        known = self._corrected.get(shares)
        if known is None:
            if len(self._corrected) >= self._max_corrected:
                self._corrected.clear()
            known = self._corrected[shares] = normalised(map(mul, shares, self.factors))
        return known

    def state(self) -> dict[str, list[float]]:
        """As plain JSON values."""
        return {"believed": self._believed, "found": self._found}

    def restore(self, believed: Sequence[float], found: Sequence[float]) -> None:
        """Raises ValueError for what cannot be counts of requests."""
        for values in (believed, found):
            bounded = all(0.0 <= value <= 2 * self._memory for value in values)
            if len(values) != NUM_BANDS or not bounded:
                raise ValueError("not counts of requests by band")
        self._believed, self._found = list(believed), list(found)
        self._settle()

    def _settle(self) -> None:
        self._corrected.clear()
        total = sum(self._believed)
        if total <= 0:
            return
        mean = [believed / total for believed in self._believed]
        self.factors = tuple(
            (found + self._prior * share) / (believed + self._prior * share) if share > 0 else 1.0
            for believed, found, share in zip(self._believed, self._found, mean, strict=True)
        )


class Shifts:
    """Of many groups of one kind, by key; 0 is no group."""

    def __init__(self, memory_requests: float) -> None:
        self._memory = memory_requests
        self._of: OrderedDict[int, BandShift] = OrderedDict()

    def corrected(self, key: int, shares: Shares) -> Shares:
        shift = self._of.get(key)
        return shares if shift is None else shift.corrected(shares)

    def observe(self, key: int, believed: Shares, found: Shares) -> Shares:
        """Learns, and gives back what was believed as put right by what was known before."""
        if not key:
            return believed
        shift = self._of.pop(key, None) or BandShift(
            self._memory, max_corrected=MAX_CORRECTED_OF_MANY
        )
        self._of[key] = shift  # the latest comes last
        corrected = shift.corrected(believed)
        shift.observe(believed, found)
        if len(self._of) > MAX_GROUPS:
            self._of.popitem(last=False)
        return corrected


def normalised(weights: Iterable[float]) -> Shares:
    """Raises ZeroDivisionError if they add up to 0."""
    kept = list(weights)
    total = sum(kept)
    return tuple([weight / total for weight in kept])
