"""Seconds of a pass, as a sum: reading weights, computing tokens, reading the KV cache, the host's
part, drafting.

    T(n, B, L) = weights(n) + n * token_s + B * L * kv_token_s + pairs * pair_s + host_s + draft

n are the scheduled tokens (a decoding sequence has 1 + its draft), B the running sequences, L their
context in tokens. A sum, not the larger of memory and arithmetic: with 256 scheduled tokens an 8B
model on an H100 takes 12.5 ms, where an ideal roofline says 4.5 ms (fit and measurement:
SpecDecode-Bench/simulator, predictor.py). A simulator with the larger of both puts the load at
which speculation stops to pay far too high.

Left out: the staircase that padding to captured graph sizes makes below the largest of them;
anything that a network does. A mixture's experts are taken to be chosen independently, which
overstates how many are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.sim.hardware import LLAMA_32_1B, Hardware, Model

LOOKUPS = ("ngram", "suffix")
# The reduced vocabulary that published EAGLE-3 heads draft from (SafeAILab/EAGLE, EAGLE3-LLaMA3.1).
EAGLE3_VOCABULARY = 32_000
# A draft model reaches less of the bandwidth than the target: its kernels are short. Fitted to the
# forward-time ratios of arXiv 2601.11580 (12.5 % of a 70B target, 37.5 % of an 8B one).
DRAFT_MODEL_BANDWIDTH_EFFICIENCY = 0.55


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


def pass_costs(
    hardware: Hardware,
    model: Model,
    *,
    method: str | None = None,
    tensor_parallel: int = 1,
    host_s: float | None = None,
    draft_model: Model = LLAMA_32_1B,
) -> PassCosts:
    """The costs of a model on `tensor_parallel` devices, with a speculation method or without.

    `host_s` replaces the device's own where an engine version is known to be slower or faster on
    the host; the host's part of drafting is scaled with it. Raises ValueError for a method whose
    costs are not known.
    """
    if tensor_parallel < 1:
        raise ValueError(f"tensor_parallel must be at least 1: {tensor_parallel}")
    bandwidth = tensor_parallel * hardware.bandwidth_bytes_per_s
    read_s = model.bytes_per_param / (bandwidth * hardware.bandwidth_efficiency)
    flop_s = 1.0 / (tensor_parallel * hardware.peak_flop_per_s * hardware.flop_efficiency)
    host = hardware.host_s if host_s is None else host_s
    # Two all-reduces a layer, after attention and after the feed-forward part (Megatron-LM).
    reduce_s = 2 * model.num_layers * hardware.allreduce_s if tensor_parallel > 1 else 0.0
    experts = model.experts
    return PassCosts(
        host_s=host + reduce_s,
        weights_s=model.always_read_params * read_s,
        token_s=2.0 * model.active_params * flop_s,
        kv_token_s=model.kv_bytes_per_token / bandwidth,
        pair_s=model.attention_flop_per_pair * flop_s,
        experts_s=experts.num_params * read_s if experts else 0.0,
        expert_share=experts.share if experts else 0.0,
        draft=_draft_costs(method, hardware, model, draft_model, host / hardware.host_s)
        if method
        else DraftCosts(),
    )


def _draft_costs(
    method: str, hardware: Hardware, model: Model, draft_model: Model, host_factor: float
) -> DraftCosts:
    """Drafting runs on one device, whatever the target is spread over.

    The host's part at the reference host time, in seconds, with what it was fitted to:
    - eagle: 0.6 ms a pass, 0.13 ms a step beside reading its weights (vLLM #20780);
    - eagle3: 0.9 ms and 0.69 ms (vLLM #20780; SpecDecode-Bench measured 2.135 ms at k = 3);
    - mtp: eagle's, since it is one more layer of the target with the target's output layer;
    - draft_model: 0.9 ms a pass, 0.6 ms a step (arXiv 2601.11580);
    - lookups: 0.9 ms a pass for padding and sampling, as for any method, and 0.6 % of the pass for
      the look-up (SpecDecode-Bench, `ngram_draft_percentage`).
    """
    efficient = hardware.bandwidth_bytes_per_s * hardware.bandwidth_efficiency
    flop_s = 1.0 / (hardware.peak_flop_per_s * hardware.flop_efficiency)
    if method in LOOKUPS:
        return DraftCosts(pass_s=0.9e-3 * host_factor, share=0.006)
    if method == "draft_model":
        slow = hardware.bandwidth_bytes_per_s * DRAFT_MODEL_BANDWIDTH_EFFICIENCY
        read_s = draft_model.num_params * draft_model.bytes_per_param / slow
        return DraftCosts(
            pass_s=0.9e-3 * host_factor,
            step_s=read_s + 0.6e-3 * host_factor,
            token_s=2.0 * draft_model.active_params * flop_s,
            always=True,
        )
    if method not in _HEADS:
        raise ValueError(f"the costs of drafting by {method!r} are not known")
    params, (pass_s, step_s) = head_params(method, model), _HEADS[method]
    return DraftCosts(
        pass_s=pass_s * host_factor,
        step_s=params * model.bytes_per_param / efficient + step_s * host_factor,
        token_s=2.0 * params * flop_s,
        always=True,
    )


_HEADS = {"eagle": (0.6e-3, 0.13e-3), "eagle3": (0.9e-3, 0.69e-3), "mtp": (0.6e-3, 0.13e-3)}


def head_params(method: str, model: Model) -> float:
    """Parameters that one drafting step of a trained head reads.

    A layer of the target and an output layer: the target's own for EAGLE and MTP, one of 32,000
    tokens for EAGLE-3; and what joins hidden state and embedding, 2 h^2 (3 h^2 for EAGLE-3's three
    hidden states). 0.78e9 and 0.40e9 for Llama-3.1-8B.
    """
    h = model.hidden_size
    if method == "eagle3":
        return model.layer_params + 3 * h * h + EAGLE3_VOCABULARY * h
    return model.layer_params + 2 * h * h + model.vocab_size * h


# --- what follows from it -------------------------------------------------------------------------


def ridge_flop_per_byte(hardware: Hardware) -> float:
    """Arithmetic intensity from which a device is bound by arithmetic, by its data sheet.

    Source: Williams, Waterman, Patterson, "Roofline", 2009. 295 for the H100, 206 for the H200: of
    two devices with the same arithmetic the one with more bandwidth has less to spare.
    """
    return hardware.peak_flop_per_s / hardware.bandwidth_bytes_per_s


def arithmetic_intensity(model: Model, num_tokens: int) -> float:
    """FLOP per weight byte of a pass with `num_tokens`, KV cache left out.

    n for a dense 16-bit model: each weight is read once and used in one multiply-add a token.
    """
    if num_tokens < 1:
        raise ValueError(f"a pass holds at least one token: {num_tokens}")
    experts = model.experts
    read = model.always_read_params
    if experts is not None:
        read += experts.num_params * (1.0 - (1.0 - experts.share) ** num_tokens)
    return 2.0 * model.active_params * num_tokens / (read * model.bytes_per_param)


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
    """The first number of running sequences at which speculation does not pay; None below `limit`.

    Counted up one by one, since a mixture's gain need not fall with the batch: it may not pay at
    one sequence and pay at sixteen.
    """
    for running in range(1, limit + 1):
        if speedup(plain, speculating, survivals, running=running, context=context) < 1.0:
            return running
    return None
