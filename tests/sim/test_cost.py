"""The additive step-time model, on cases worked by hand. What others measured is checked in
`tests/bench/test_planner.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.cost import (
    DraftCosts,
    PassCosts,
    PassLoad,
    knee_running_sequences,
    speedup,
    tokens_per_pass,
)
from paceline.sim.cost import (
    arithmetic_intensity,
    head_params,
    pass_costs,
    ridge_flop_per_byte,
)
from paceline.sim.hardware import (
    A100,
    CPU2,
    H100,
    H200,
    LLAMA_31_8B,
    LLAMA_33_70B,
    QWEN3_30B_A3B,
    SMOLLM2_135M,
)

PLAIN = pass_costs(H100, LLAMA_31_8B)
EAGLE3 = pass_costs(H100, LLAMA_31_8B, method="eagle3")
NGRAM = pass_costs(H100, LLAMA_31_8B, method="ngram")


def test_the_terms_of_an_8b_model_on_an_h100_are_the_fitted_ones():
    assert PLAIN.weights_s == pytest.approx(5.886e-3, rel=0.01)  # 15.0e9 B / (3.35e12 B/s * 0.76)
    assert PLAIN.token_s == pytest.approx(21.01e-6, rel=0.01)  # 15.0e9 FLOP / (989e12 * 0.72)
    assert PLAIN.kv_token_s == pytest.approx(39.26e-9, rel=0.01)  # 131,072 B / 3.35e12 B/s
    assert PLAIN.host_s == pytest.approx(1.207e-3)


def test_a_pass_is_the_sum_of_its_terms():
    costs = PassCosts(host_s=1, weights_s=2, token_s=0.1, kv_token_s=0.01, pair_s=0.001)
    load = PassLoad(num_tokens=8, num_context_tokens=20, num_pairs=100)
    assert costs.seconds(load) == pytest.approx(1 + 2 + 0.8 + 0.2 + 0.1)
    assert costs.slowed(3).seconds(load) == pytest.approx(3 * 4.1)


def test_256_tokens_take_far_longer_than_a_roofline_says():
    # 5.89 + 256 * 0.02101 + 1.207 = 12.5 ms; the larger of 15.0e9 B / 3.35e12 B/s = 4.48 ms and
    # 256 * 15.0e9 FLOP / 989e12 FLOP/s = 3.88 ms is 4.48 ms.
    assert PLAIN.decode_s(256) == pytest.approx(12.5e-3, rel=0.01)


def test_kv_is_read_once_whatever_the_draft_is():
    longer = EAGLE3.decode_s(64, 3, context=4000) - EAGLE3.decode_s(64, 3, context=0)
    plain_longer = PLAIN.decode_s(64, 0, context=4000) - PLAIN.decode_s(64, 0, context=0)
    # 64 * 4,000 * 39.1 ns = 10.0 ms each; attention's arithmetic, 0.74 ns a pair, is 0.19 ms for
    # 64 * 4,000 pairs and 0.76 ms for four times as many.
    assert plain_longer == pytest.approx(10.2e-3, rel=0.02)
    assert longer == pytest.approx(10.8e-3, rel=0.02)


def test_drafting_costs_a_constant_and_a_part_for_each_step():
    draft = DraftCosts(pass_s=1.0, step_s=0.1, token_s=0.01)
    load = PassLoad(num_tokens=1, draft_steps=3, num_drafting=5)
    assert draft.seconds(load, 0.0) == pytest.approx(1.0 + 3 * (0.1 + 5 * 0.01))


def test_drafting_nothing_is_free_for_lookups_only():
    assert NGRAM.decode_s(8, 0) == PLAIN.decode_s(8, 0)
    # A head keeps its own KV cache: 0.9 ms on 7.1. Reported for vLLM: 7 % (V1) and 17 % (V2), in
    # a comment on #49652.
    assert EAGLE3.decode_s(1, 0) / PLAIN.decode_s(1, 0) == pytest.approx(1.126, abs=0.005)


def test_heads_read_a_layer_and_an_output_layer():
    # 218e6 + 2 * 4,096^2 + 128,256 * 4,096 = 777e6; 218e6 + 3 * 4,096^2 + 32,000 * 4,096 = 399e6
    assert head_params("eagle", LLAMA_31_8B) == pytest.approx(777e6, rel=0.01)
    assert head_params("eagle3", LLAMA_31_8B) == pytest.approx(399e6, rel=0.01)


def test_a_slower_host_drafts_more_slowly_too():
    slow = pass_costs(H100, LLAMA_31_8B, method="eagle3", host_s=2 * 1.207e-3)
    assert slow.draft.pass_s == pytest.approx(2 * EAGLE3.draft.pass_s)
    assert slow.draft.step_s - EAGLE3.draft.step_s == pytest.approx(0.69e-3)


def test_tensor_parallelism_divides_the_work_and_adds_all_reduces():
    one, four = pass_costs(H100, LLAMA_33_70B), pass_costs(H100, LLAMA_33_70B, tensor_parallel=4)
    assert four.weights_s == pytest.approx(one.weights_s / 4)
    assert four.token_s == pytest.approx(one.token_s / 4)
    assert four.host_s - one.host_s == pytest.approx(2 * 80 * 10e-6)  # 1.6 ms


def test_a_mixture_reads_more_experts_the_more_tokens_there_are():
    costs = pass_costs(H100, QWEN3_30B_A3B)

    def experts_s(tokens: int) -> float:
        rest_s = costs.host_s + costs.weights_s + tokens * costs.token_s
        return costs.seconds(PassLoad(num_tokens=tokens)) - rest_s

    # 8 of 128: one token reads 1/16 of them; four read 1 - (15/16)^4 = 22.75 %, 3.64 times as much;
    # with 16 sequences four times the tokens read 98.4 % instead of 64.4 %, 1.53 times as much.
    assert experts_s(1) == pytest.approx(costs.experts_s / 16)
    assert experts_s(4) / experts_s(1) == pytest.approx(3.64, abs=0.01)
    assert experts_s(64) / experts_s(16) == pytest.approx(1.53, abs=0.01)


def test_a_pass_beyond_the_captured_graphs_jumps():
    costs = PassCosts(graph_tokens=10, eager_s=1.0)
    step = costs.seconds(PassLoad(num_tokens=11)) - costs.seconds(PassLoad(num_tokens=10))
    assert step == pytest.approx(1.0 + costs.token_s)


def test_ridge_points_are_the_data_sheets():
    assert [round(ridge_flop_per_byte(device)) for device in (H100, H200, A100)] == [295, 206, 153]


def test_intensity_of_a_dense_16_bit_model_is_its_tokens():
    assert arithmetic_intensity(LLAMA_31_8B, 64) == pytest.approx(64)
    assert arithmetic_intensity(SMOLLM2_135M, 64) == pytest.approx(32)  # 4 bytes a parameter
    # One token of the mixture uses what it reads; 64 tokens read 98.4 % of the experts:
    # 2 * 3.02e9 * 64 / (2 * (1.21e9 + 0.984 * 28.99e9)) = 6.5
    assert arithmetic_intensity(QWEN3_30B_A3B, 1) == pytest.approx(1)
    assert arithmetic_intensity(QWEN3_30B_A3B, 64) == pytest.approx(6.5, abs=0.1)
    with pytest.raises(ValueError, match="at least one token"):
        arithmetic_intensity(LLAMA_31_8B, 0)


def test_a_speedup_is_tokens_times_seconds_saved():
    survivals = (0.61, 0.37, 0.25)
    assert tokens_per_pass(survivals) == pytest.approx(2.23)
    # 7.13 ms; with k = 3: 7.13 + 3 * 0.021 + 0.9 + 3 * (0.314 + 0.69) = 11.1 ms
    assert speedup(PLAIN, EAGLE3, survivals, running=1) == pytest.approx(
        2.23 * 7.13 / 11.1, rel=0.01
    )


def test_a_lookup_that_seldom_holds_has_its_knee_between_4_and_32():
    # By hand, without context: plain 7.10 + 0.021 B; k = 5: 1.006 * (7.10 + 0.126 B) + 0.9 ms.
    # 1.45 * (7.10 + 0.021 B) = 8.04 + 0.127 B at B = 2.25 / 0.0963 = 23.4, so the first loss is 24.
    survivals = (0.17, 0.10, 0.08, 0.06, 0.04)
    assert tokens_per_pass(survivals) == pytest.approx(1.45)
    assert knee_running_sequences(PLAIN, NGRAM, survivals) == 24


def test_a_chain_of_three_on_a_dense_8b_has_none():
    survivals = (0.65, 0.42, 0.27)
    assert knee_running_sequences(PLAIN, EAGLE3, survivals, context=800) is None


def test_more_bandwidth_with_the_same_arithmetic_brings_the_knee_forward():
    survivals = (0.17, 0.10, 0.08, 0.06, 0.04)

    def knee(device: str) -> int:
        hardware = {"h100": H100, "h200": H200}[device]
        found = knee_running_sequences(
            pass_costs(hardware, LLAMA_31_8B),
            pass_costs(hardware, LLAMA_31_8B, method="ngram"),
            survivals,
        )
        assert found is not None
        return found

    assert knee("h200") < knee("h100")


def test_the_gain_of_a_mixture_need_not_fall_with_the_batch():
    plain = pass_costs(H100, QWEN3_30B_A3B, tensor_parallel=2)
    ngram = pass_costs(H100, QWEN3_30B_A3B, tensor_parallel=2, method="ngram")
    gains = [speedup(plain, ngram, (0.6, 0.4, 0.3), running=b) for b in (1, 64)]
    assert gains[0] < gains[1]


@given(st.integers(1, 300), st.integers(0, 8), st.integers(0, 20_000))
def test_more_of_anything_never_takes_less_time(running: int, k: int, context: int):
    base_s = EAGLE3.decode_s(running, k, context)
    assert EAGLE3.decode_s(running + 1, k, context) >= base_s
    assert EAGLE3.decode_s(running, k + 1, context) >= base_s
    assert EAGLE3.decode_s(running, k, context + 1) >= base_s


def test_a_method_of_unknown_cost_is_refused():
    with pytest.raises(ValueError, match="'dspark' are not known"):
        pass_costs(H100, LLAMA_31_8B, method="dspark")


def test_the_cpu_engine_is_152_ms_and_18_a_token():
    costs = pass_costs(CPU2, SMOLLM2_135M)
    assert costs.decode_s(1) == pytest.approx(0.152 + 0.0182, rel=0.01)
    # 250 pairs * 4 * 30 * 9 * 64 FLOP = 17.3 MFLOP at 160e9 * 0.0925 FLOP/s are 1.17 ms,
    # 250 * 46,080 bytes at 20e9 bytes/s are 0.58 ms.
    attention_s = costs.decode_s(1, context=250) - costs.decode_s(1)
    assert attention_s == pytest.approx(0.00175, rel=0.02)
