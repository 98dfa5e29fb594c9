"""Devices and models: the figures that follow from their data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.sim.hardware import (
    CPU2,
    H100,
    HARDWARE,
    LLAMA_31_8B,
    LLAMA_33_70B,
    MODELS,
    QWEN3_30B_A3B,
    SMOLLM2_135M,
    kv_cache_tokens,
)


def test_kv_bytes_of_a_token_are_keys_and_values_of_all_layers():
    assert LLAMA_31_8B.kv_bytes_per_token == 2 * 32 * 8 * 128 * 2 == 131_072
    assert LLAMA_33_70B.kv_bytes_per_token == 2 * 80 * 8 * 128 * 2 == 327_680


def test_a_mixture_computes_with_a_part_of_what_it_holds():
    # 48 layers * 128 experts * 3 matrices of 2,048 x 768 = 28.99e9; 8 of 128 are 1.81e9;
    # 30.2 - 28.99 = 1.21e9 are always read: 3.0e9 in all ("3.3B active" with the embedding).
    assert QWEN3_30B_A3B.always_read_params == pytest.approx(1.21e9, rel=0.01)
    assert QWEN3_30B_A3B.active_params == pytest.approx(3.02e9, rel=0.01)
    assert LLAMA_31_8B.active_params == LLAMA_31_8B.num_params


def test_a_layer_is_a_layer():
    # q and o: 2 * 4,096^2; k and v: 2 * 4,096 * 1,024; feed-forward: 3 * 4,096 * 14,336 = 218e6
    layer = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14_336
    assert LLAMA_31_8B.layer_params == pytest.approx(layer, rel=0.01)


def test_kv_cache_is_what_the_weights_leave():
    # 0.9 * 80e9 - 2 GiB - 16.05e9 = 53.8e9 bytes, at 131,072 a token: 410,000 tokens
    assert kv_cache_tokens(H100, LLAMA_31_8B) == pytest.approx(410_500, rel=0.01)
    # On the CPU 1 GiB at 2 * 30 * 3 * 64 * 4 = 46,080 bytes a token
    assert kv_cache_tokens(CPU2, SMOLLM2_135M) == 2**30 // 46_080


def test_a_model_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="does not fit on 1 x h100"):
        kv_cache_tokens(H100, LLAMA_33_70B)
    assert kv_cache_tokens(H100, LLAMA_33_70B, tensor_parallel=4) > 300_000


def test_nonsense_is_no_device():
    with pytest.raises(ValueError, match="not a device"):
        replace(H100, flop_efficiency=1.2)


def test_names_are_keys():
    assert list(HARDWARE) == ["h100", "h200", "a100", "cpu2"]
    assert all(name == model.name for name, model in MODELS.items())
