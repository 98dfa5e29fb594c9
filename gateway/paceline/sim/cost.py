"""A pass's costs from data sheets: what a model on a device reads, computes and drafts.

The sum itself is `core/cost.py`; here its terms are worked out from hardware and model, with what
each constant was fitted to.
"""

from __future__ import annotations

from paceline.core.cost import DraftCosts, PassCosts
from paceline.core.lookup import LOOKUPS
from paceline.sim.hardware import LLAMA_32_1B, Hardware, Model

# The reduced vocabulary that published EAGLE-3 heads draft from (SafeAILab/EAGLE, EAGLE3-LLaMA3.1).
EAGLE3_VOCABULARY = 32_000
# A draft model reaches less of the bandwidth than the target: its kernels are short. Fitted to the
# forward-time ratios of arXiv 2601.11580 (12.5 % of a 70B target, 37.5 % of an 8B one).
DRAFT_MODEL_BANDWIDTH_EFFICIENCY = 0.55


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
