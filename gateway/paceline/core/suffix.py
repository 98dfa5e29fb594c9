"""Suffix decoding: what most often followed the latest tokens, in this conversation and in others.

The idea is that of SuffixDecoding (arXiv 2411.04975) and its implementation in ArcticInference: a
draft is as long as the match is (times a factor), follows the more frequent branch where texts
part, ends where that becomes unlikely, and of several drafts the one with the highest expected
number of accepted tokens is taken, from the sequence's own text or from earlier outputs.

Instead of a suffix tree there is an index of the latest places where the last three, two or one
tokens stood: as good for a draft, and cheap to extend in Python. What a tree would know of older
places (beyond `RECENT` for the same tokens) is forgotten.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from paceline.core.draft import Draft, common_prefix

RECENT = 64  # places kept for the same tokens
KEYS = (3, 2, 1)  # lengths of the runs that are indexed, longest first

Place = tuple[int, int]  # a text, and the position after the run


@dataclass(frozen=True, slots=True, kw_only=True)
class SuffixRules:
    """vLLM's `suffix_decoding_*` options and its defaults."""

    num_tokens: int = 24
    max_tree_depth: int = 24
    max_spec_factor: float = 1.0
    min_token_prob: float = 0.1
    max_cached_requests: int = 10_000

    def __post_init__(self) -> None:
        counts = min(self.num_tokens, self.max_tree_depth) >= 1 and self.max_cached_requests >= 0
        if not counts or self.max_spec_factor < 0 or not 0 <= self.min_token_prob <= 1:
            raise ValueError(f"not suffix decoding: {self}")

    @classmethod
    def of(cls, num_tokens: int, options: Mapping[str, object]) -> SuffixRules:
        """From a speculative config. Raises ValueError for values of the wrong type or range."""
        given = {
            key.removeprefix("suffix_decoding_"): value
            for key, value in options.items()
            if key.startswith("suffix_decoding_")
        }
        whole = ("max_tree_depth", "max_cached_requests")
        for key, value in given.items():
            kinds = (int,) if key in whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise ValueError(f"suffix_decoding_{key} cannot be {value!r}")
        return cls(num_tokens=num_tokens, **given)  # type: ignore[arg-type]


class SuffixIndex:
    """Texts that grow, at most `max_texts` of them, and what followed runs of tokens in them."""

    def __init__(self, max_texts: int) -> None:
        self._max_texts = max_texts
        self._texts: dict[int, list[str]] = {}
        self._places: dict[tuple[str, ...], deque[Place]] = {}
        self._next = 0

    @property
    def num_places(self) -> int:
        """How much is remembered."""
        return sum(map(len, self._places.values()))

    def begin(self) -> int:
        """A new, empty text; the oldest is forgotten if there are too many."""
        self._next += 1
        self._texts[self._next] = []
        if len(self._texts) > self._max_texts:
            self._forget(next(iter(self._texts)))
        return self._next

    def _forget(self, text: int) -> None:
        """A text, and its places as far as they are the oldest of theirs; a few that stand between
        those of other texts go when these do."""
        written = self._texts.pop(text)
        for end in range(1, len(written) + 1):
            for size in KEYS:
                key = tuple(written[max(0, end - size) : end])
                places = self._places.get(key, deque[Place]())
                while places and places[0][0] == text:
                    places.popleft()
                if not places:
                    self._places.pop(key, None)

    def extend(self, text: int, tokens: Iterable[str]) -> None:
        """Add to a text; nothing if it has been forgotten."""
        written = self._texts.get(text)
        if written is None:
            return
        for token in tokens:
            written.append(token)
            end = len(written)
            for size in KEYS:
                if size <= end:
                    key = tuple(written[end - size :])
                    if (places := self._places.get(key)) is None:
                        places = self._places[key] = deque(maxlen=RECENT)
                    places.append((text, end))

    def matches(self, context: Sequence[str], depth: int) -> list[Match]:
        """Places that something follows, where the end of the context stood too."""
        for size in KEYS:
            places = self._places.get(tuple(context[-size:]), ()) if size <= len(context) else ()
            found = [
                Match(written, end, _match_length(written, end, context, depth))
                for text, end in places
                if (written := self._texts.get(text)) is not None and end < len(written)
            ]
            if found:
                return found
        return []


class Match(NamedTuple):
    """`length` tokens before position `at` of a text are the context's last ones."""

    following: Sequence[str]
    at: int
    length: int


@dataclass(slots=True)
class _Candidate:
    tokens: list[str] = field(default_factory=list)
    score: float = 0.0  # expected accepted tokens


def _match_length(written: Sequence[str], end: int, context: Sequence[str], depth: int) -> int:
    length, most = 0, min(depth, end, len(context))
    while length < most and written[end - 1 - length] == context[-1 - length]:
        length += 1
    return length


def best_draft(matches: Sequence[Match], rules: SuffixRules, limit: int) -> _Candidate:
    """The best over all lengths of match; of equal ones that of the longest."""
    best = _Candidate()
    for length in sorted({match.length for match in matches}, reverse=True):
        most = min(limit, rules.num_tokens, int(length * rules.max_spec_factor))
        if most <= best.score:  # nor can a shorter match do better: no token counts for more than 1
            break
        follow = [match for match in matches if match.length >= length]
        candidate = _follow(follow, most, rules.min_token_prob)
        if candidate.score > best.score:
            best = candidate
    return best


def _follow(matches: Sequence[Match], most: int, min_prob: float) -> _Candidate:
    """Along the most frequent next token, while the path is likely enough."""
    candidate, probability, here = _Candidate(), 1.0, list(matches)
    for ahead in range(most):
        nexts = [m.following[m.at + ahead] for m in here if m.at + ahead < len(m.following)]
        if not nexts:
            break
        token, count = Counter(nexts).most_common(1)[0]
        probability *= count / len(here)
        if probability < min_prob:
            break
        candidate.tokens.append(token)
        candidate.score += probability
        here = [
            m
            for m in here
            if m.at + ahead < len(m.following) and m.following[m.at + ahead] == token
        ]
    return candidate


class SuffixDrafter:
    """One sequence's drafter over its own text and, if there is one, a cache of all outputs."""

    def __init__(
        self, prompt: Iterable[str], rules: SuffixRules, shared: SuffixIndex | None = None
    ) -> None:
        self._rules = rules
        self._own = SuffixIndex(max_texts=1)
        self._text = self._own.begin()
        self._latest: deque[str] = deque(maxlen=rules.max_tree_depth)
        self._shared = shared
        self._output: int | None = None  # the text in the shared cache, from the first token on
        self._remember(list(prompt))

    def extend(self, tokens: Sequence[str]) -> None:
        self._remember(tokens)
        if self._shared is not None:
            if self._output is None:
                self._output = self._shared.begin()
            self._shared.extend(self._output, tokens)

    def _remember(self, tokens: Sequence[str]) -> None:
        self._own.extend(self._text, tokens)
        self._latest.extend(tokens)

    def proposal(self, limit: int) -> list[str]:
        """The tokens drafted for the next pass; none where nothing matches."""
        context, depth = list(self._latest), self._rules.max_tree_depth
        best = best_draft(self._own.matches(context, depth), self._rules, limit)
        if self._shared is not None:
            other = best_draft(self._shared.matches(context, depth), self._rules, limit)
            best = other if other.score > best.score else best
        return best.tokens

    def draft(self, upcoming: Sequence[str], limit: int) -> Draft:
        proposed = self.proposal(limit)
        return Draft(drafted=len(proposed), accepted=common_prefix(proposed, upcoming))
