"""Devices and models as data: what a pass must read and compute, with units and sources.

Python rather than YAML: the simulator is pure and reads no files, the values are typed and checked
at import, and each stands beside its source.

Peak rates are dense, at the precision named; tera is 10^12. Efficiencies are what engines reach of
them. Where a value is an estimate, it says so.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One device.

    `host_s` is what a pass costs beside the device's work: scheduling, launches, sampling.
    `allreduce_s` is one small all-reduce between devices. `pads_lookups` says that a lookup without
    a match is verified all the same, as vLLM's runner for GPUs does.
    """

    name: str
    bandwidth_bytes_per_s: float
    peak_flop_per_s: float
    memory_bytes: float
    bandwidth_efficiency: float = 0.76
    flop_efficiency: float = 0.72
    host_s: float = 1.207e-3
    allreduce_s: float = 10e-6  # an estimate for small messages over NVLink
    pads_lookups: bool = True

    def __post_init__(self) -> None:
        rates = (self.bandwidth_bytes_per_s, self.peak_flop_per_s, self.memory_bytes)
        shares = (self.bandwidth_efficiency, self.flop_efficiency)
        if min(rates) <= 0 or not all(0 < share <= 1 for share in shares) or self.host_s < 0:
            raise ValueError(f"not a device: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The routed experts of a mixture: `chosen` of `number` compute a token in each layer."""

    number: int
    chosen: int
    num_params: float  # of all routed experts together

    @property
    def share(self) -> float:
        return self.chosen / self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model as a pass sees it. `num_params` leaves out the input embedding, of which a pass reads
    a row a token; with tied embeddings it counts, since the output layer reads it whole."""

    name: str
    num_params: float
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    vocab_size: int
    bytes_per_param: float = 2.0
    bytes_per_kv_value: float = 2.0
    experts: Experts | None = None

    @property
    def always_read_params(self) -> float:
        """What every pass reads, whatever tokens it holds."""
        return self.num_params - (self.experts.num_params if self.experts else 0.0)

    @property
    def active_params(self) -> float:
        """What one token is computed with."""
        experts = self.experts
        return self.always_read_params + (experts.num_params * experts.share if experts else 0.0)

    @property
    def kv_bytes_per_token(self) -> float:
        """Keys and values of one token in all layers."""
        values = 2 * self.num_layers * self.num_kv_heads * self.head_dim
        return values * self.bytes_per_kv_value

    @property
    def attention_flop_per_pair(self) -> float:
        """Arithmetic of one query token against one token of context, in all layers."""
        return 4.0 * self.num_layers * self.num_heads * self.head_dim

    @property
    def layer_params(self) -> float:
        """One layer's share of what a token is computed with, without the output layer."""
        return (self.active_params - self.vocab_size * self.hidden_size) / self.num_layers


# --- devices --------------------------------------------------------------------------------------

# Bandwidth, dense bf16 peak and memory are NVIDIA's data sheets'. The default efficiencies and host
# time are fitted to vLLM 0.10.1 with Llama-3.1-8B on an H100: 5.886 ms fixed, 21.01 µs a scheduled
# token, 39.26 ns a KV token, 1.207 ms overhead (SpecDecode-Bench/simulator, predictor.py). 15.0 GB
# in 5.886 ms are 0.76 of 3.35 TB/s, 15.0 GFLOP in 21.01 µs are 0.72 of 989 TFLOP/s. For the other
# devices they are estimates: no such fit is published.
H100 = Hardware(
    name="h100",  # SXM5
    bandwidth_bytes_per_s=3.35e12,
    peak_flop_per_s=989e12,
    memory_bytes=80e9,
)
H200 = Hardware(
    name="h200",
    bandwidth_bytes_per_s=4.8e12,
    peak_flop_per_s=989e12,
    memory_bytes=141e9,
)
A100 = Hardware(
    name="a100",  # SXM4, 80 GB
    bandwidth_bytes_per_s=2.04e12,
    peak_flop_per_s=312e12,
    memory_bytes=80e9,
)
# Two x86-64 cores with AVX2, float32. The peak is 2 cores * 2 FMA units * 8 lanes * 2 FLOP at
# 2.5 GHz, the bandwidth a two-channel DDR4 machine's: both estimates. What counts are the two sums
# that are fitted to runs of vLLM 0.32 with SmolLM2-135M (`paceline.bench.points`): a pass takes
# 152 ms and 18.2 ms a scheduled token, and attention to 250 tokens of context another 1.7 ms.
CPU2 = Hardware(
    name="cpu2",
    bandwidth_bytes_per_s=20e9,
    peak_flop_per_s=160e9,
    memory_bytes=1 * GIB,  # VLLM_CPU_KVCACHE_SPACE=1: what the KV cache gets
    bandwidth_efficiency=0.76,
    flop_efficiency=0.0925,
    host_s=0.1166,
    pads_lookups=False,
)
HARDWARE = {device.name: device for device in (H100, H200, A100, CPU2)}


# --- models ---------------------------------------------------------------------------------------

# Shapes are those of the models' config.json on Hugging Face; parameters follow from them.
LLAMA_31_8B = Model(
    name="llama-3.1-8b",
    num_params=7.50e9,  # 8.03 less the input embedding, 128,256 * 4,096
    num_layers=32,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    hidden_size=4096,
    vocab_size=128_256,
)
LLAMA_33_70B = Model(
    name="llama-3.3-70b",
    num_params=69.5e9,  # 70.55 less 128,256 * 8,192
    num_layers=80,
    num_heads=64,
    num_kv_heads=8,
    head_dim=128,
    hidden_size=8192,
    vocab_size=128_256,
)
LLAMA_32_1B = Model(
    name="llama-3.2-1b",  # tied embeddings
    num_params=1.24e9,
    num_layers=16,
    num_heads=32,
    num_kv_heads=8,
    head_dim=64,
    hidden_size=2048,
    vocab_size=128_256,
)
QWEN3_30B_A3B = Model(
    name="qwen3-30b-a3b",
    num_params=30.2e9,  # 30.53 less 151,936 * 2,048
    num_layers=48,
    num_heads=32,
    num_kv_heads=4,
    head_dim=128,
    hidden_size=2048,
    vocab_size=151_936,
    experts=Experts(number=128, chosen=8, num_params=48 * 128 * 3 * 2048 * 768),  # 29.0e9
)
SMOLLM2_135M = Model(
    name="smollm2-135m",  # float32, tied embeddings
    num_params=134.5e6,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    hidden_size=576,
    vocab_size=49_152,
    bytes_per_param=4.0,
    bytes_per_kv_value=4.0,
)
MODELS = {
    model.name: model
    for model in (LLAMA_31_8B, LLAMA_33_70B, LLAMA_32_1B, QWEN3_30B_A3B, SMOLLM2_135M)
}


def kv_cache_tokens(hardware: Hardware, model: Model, *, tensor_parallel: int = 1) -> int:
    """How many tokens' keys and values fit beside the weights.

    On GPUs 0.9 of the memory is used (vLLM's default `gpu_memory_utilization` until 0.10), less 2
    GiB a device for activations and graphs, an estimate. On the CPU the memory is the cache's own.
    Raises ValueError where the weights alone do not fit.
    """
    free = hardware.memory_bytes
    if hardware.pads_lookups:
        embedding = model.vocab_size * model.hidden_size
        weights = (model.num_params + embedding) * model.bytes_per_param
        free = tensor_parallel * (0.9 * hardware.memory_bytes - 2 * GIB) - weights
    if free <= 0:
        raise ValueError(f"{model.name} does not fit on {tensor_parallel} x {hardware.name}")
    return int(free / model.kv_bytes_per_token)
