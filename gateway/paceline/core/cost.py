"""Seconds of a pass, as a sum: reading weights, computing tokens, reading the KV cache, the host's
part, drafting.

    T(n, B, L) = weights(n) + n * token_s + B * L * kv_token_s + pairs * pair_s + host_s + draft

n are the scheduled tokens (a decoding sequence has 1 + its draft), B the running sequences, L their
context in tokens. A sum, not the larger of memory and arithmetic: with 256 scheduled tokens an 8B
model on an H100 takes 12.5 ms, where an ideal roofline says 4.5 ms (fit and measurement:
SpecDecode-Bench/simulator, predictor.py). A model with the larger of both puts the load at which
speculation stops to pay far too high.

Left out: the staircase that padding to captured graph sizes makes below the largest of them;
anything that a network does. A mixture's experts are taken to be chosen independently, which
overstates how many are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLoad:
    """What one pass holds. Tokens, but for `draft_steps` and `verifies`.

    `num_context_tokens` are the KV entries that are read, `num_pairs` the query-context pairs of
    attention, `draft_steps` how many tokens each sequence drafts at the pass's end,
    `num_drafting` how many sequences do; `verifies` whether a draft is checked in it.
    """

    num_tokens: int
    num_context_tokens: int = 0
    num_pairs: int = 0
    draft_steps: int = 0
    num_drafting: int = 0
    verifies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCosts:
    """What speculation adds to a pass: `pass_s` once, `step_s` for each token that is drafted in
    turn, `token_s` for each sequence in each of these steps; and `share` of the pass itself.

    `always` says that `pass_s` is due even in passes that draft nothing, as with a drafter that
    keeps a KV cache of its own up to date: k = 0 is not free for it.
    """

    pass_s: float = 0.0
    step_s: float = 0.0
    token_s: float = 0.0
    share: float = 0.0
    always: bool = False

    def seconds(self, load: PassLoad, plain_s: float) -> float:
        drafts = load.draft_steps > 0 or load.verifies
        once_s = self.pass_s if drafts or self.always else 0.0
        steps_s = load.draft_steps * (self.step_s + self.token_s * load.num_drafting)
        return once_s + steps_s + (self.share * plain_s if drafts else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCosts:
    """The terms of a pass, in seconds.

    `experts_s` is reading all routed experts, of which a pass with n tokens reads the share
    1 - (1 - expert_share)^n. A pass of more than `graph_tokens` finds no captured graph and takes
    `eager_s` more. The defaults are of the order of an 8B model on an H100.
    """

    host_s: float = 1.2e-3
    weights_s: float = 5.9e-3
    token_s: float = 21e-6
    kv_token_s: float = 39e-9
    pair_s: float = 0.0
    experts_s: float = 0.0
    expert_share: float = 0.0
    graph_tokens: int | None = None
    eager_s: float = 0.0
    draft: DraftCosts = DraftCosts()
    factor: float = 1.0

    def seconds(self, load: PassLoad) -> float:
        plain_s = self._plain(load)
        return self.factor * (plain_s + self.draft.seconds(load, plain_s))

    def _plain(self, load: PassLoad) -> float:
        experts = 1.0 - (1.0 - self.expert_share) ** load.num_tokens if self.experts_s else 0.0
        eager = self.graph_tokens is not None and load.num_tokens > self.graph_tokens
        return (
            self.host_s
            + self.weights_s
            + self.experts_s * experts
            + self.token_s * load.num_tokens
            + self.kv_token_s * load.num_context_tokens
            + self.pair_s * load.num_pairs
            + (self.eager_s if eager else 0.0)
        )

    def slowed(self, factor: float) -> PassCosts:
        """All of it times `factor`."""
        return replace(self, factor=self.factor * factor)

    def decode_s(self, running: int, k: int = 0, context: float = 0.0) -> float:
        """A steady pass of `running` sequences that all draft `k` tokens, after `context` tokens
        each."""
        tokens = running * (1 + k)
        return self.seconds(
            PassLoad(
                num_tokens=tokens,
                num_context_tokens=round(running * context),
                num_pairs=round(tokens * context),
                draft_steps=k,
                num_drafting=running if k else 0,
                verifies=k > 0,
            )
        )


# --- what follows from it -------------------------------------------------------------------------


def tokens_per_pass(survivals: Sequence[float]) -> float:
    """Tokens that a pass yields on average, the target's own included.

    `survivals[i]` is P(the first i + 1 draft tokens are all accepted), as vLLM's counters by
    position give it.
    """
    return 1.0 + sum(survivals)


def speedup(
    plain: PassCosts,
    speculating: PassCosts,
    survivals: Sequence[float],
    *,
    running: int,
    context: float = 0.0,
) -> float:
    """Tokens per second with speculation over those without, at the same running sequences."""
    plain_s = plain.decode_s(running, context=context)
    pass_s = speculating.decode_s(running, len(survivals), context)
    return tokens_per_pass(survivals) * plain_s / pass_s


def knee_running_sequences(
    plain: PassCosts,
    speculating: PassCosts,
    survivals: Sequence[float],
    *,
    context: float = 0.0,
    limit: int = 4096,
) -> int | None:
    """The first number of running sequences at which speculation does not pay; None if none is."""
    return knee(
        lambda running: speedup(plain, speculating, survivals, running=running, context=context),
        limit,
    )


def knee(speedup_at: Callable[[int], float], limit: int) -> int | None:
    """The fewest running sequences, up to `limit`, at which there is no speedup.

    Counted up one by one, since a mixture's gain need not fall with the batch: it may not pay at
    one sequence and pay at sixteen.
    """
    return next((running for running in range(1, limit + 1) if speedup_at(running) <= 1.0), None)
