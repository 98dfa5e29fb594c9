"""What others measured: the points that the step-time model must reproduce, with their sources.

Figures only. A setup's plain row may calibrate the host time of that engine version, so that
what is predicted is what speculation adds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One speculating run of a setup: k drafted in turn, `tokens_per_pass` emitted, the result."""

    method: str
    k: int
    tokens_per_pass: float
    published: float  # in the setup's unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Runs on Llama-3.1-8B and one H100, one sequence at a time.

    `unit` is "ms/token" or "tokens/s"; `plain` the published rate without speculation, used to
    calibrate if `calibrates`, else predicted too. `tree` is the run that gives the constant cost of
    a tree of drafts, where the engine verifies trees.
    """

    name: str
    source: str
    unit: str
    tolerance: float
    plain: float
    calibrates: bool
    runs: tuple[Run, ...]
    tree: Run | None = None


# Tokens a pass on MT-bench, Llama-3.1-8B, greedy, by k (vLLM #20780). At k = 6 EAGLE-1's is not
# given: between its neighbours.
EAGLE_TAU = {2: 2.10, 3: 2.29, 4: 2.39, 5: 2.43, 6: 2.45, 7: 2.47}
EAGLE3_TAU = {2: 2.36, 3: 2.79, 4: 3.08, 5: 3.32, 6: 3.46, 7: 3.54}
_EAGLE_MS = {2: 4.37, 3: 4.29, 4: 4.48, 5: 4.71, 6: 4.94, 7: 5.20}
_EAGLE3_MS = {2: 4.32, 3: 4.09, 4: 4.05, 5: 4.13, 6: 4.20, 7: 4.29}

V1 = Setup(
    name="V1",
    source="vLLM #20780, MT-bench",
    unit="ms/token",
    tolerance=0.05,
    plain=7.07,
    calibrates=False,
    runs=tuple(
        Run(method=method, k=k, tokens_per_pass=tau[k], published=published)
        for method, tau, times in (
            ("eagle", EAGLE_TAU, _EAGLE_MS),
            ("eagle3", EAGLE3_TAU, _EAGLE3_MS),
        )
        for k, published in times.items()
    ),
)
# The same author's runs three months earlier, on MT-bench too; tokens a pass as in V1.
V2 = Setup(
    name="V2",
    source="vLLM #16937, MT-bench",
    unit="tokens/s",
    tolerance=0.07,
    plain=133.0,
    calibrates=True,
    runs=(
        Run(method="eagle", k=2, tokens_per_pass=EAGLE_TAU[2], published=201.7),
        Run(method="eagle", k=4, tokens_per_pass=EAGLE_TAU[4], published=198.0),
        Run(method="eagle", k=7, tokens_per_pass=EAGLE_TAU[7], published=169.9),
        Run(method="eagle3", k=2, tokens_per_pass=EAGLE3_TAU[2], published=220.2),
    ),
)
V3 = Setup(
    name="V3",
    source="vLLM #16035, Llama-3-8B",
    unit="tokens/s",
    tolerance=0.07,
    plain=128.6,
    calibrates=True,
    runs=(
        Run(method="eagle", k=2, tokens_per_pass=1.89, published=175.5),
        Run(method="eagle", k=4, tokens_per_pass=2.08, published=165.7),
    ),
)
# SGLang drafts trees (top-k 8); building and masking them costs a constant, taken from one run. The
# documentation's 244.1 (EAGLE-2) and 373.3 (EAGLE-3) come without tokens a pass, so they cannot be
# predicted and are left out.
V5 = Setup(
    name="V5",
    source="SGLang #4247, MT-bench",
    unit="tokens/s",
    tolerance=0.07,
    plain=158.3,
    calibrates=True,
    tree=Run(method="eagle3", k=5, tokens_per_pass=4.68, published=361.7),
    runs=(
        Run(method="eagle3", k=8, tokens_per_pass=5.39, published=378.57),
        Run(method="eagle", k=8, tokens_per_pass=3.76, published=230.08),
    ),
)
SETUPS = (V1, V2, V3, V5)


# V4: Llama-3.1-8B on an H100, vLLM 0.10.1 (arXiv 2601.11580, project page). Tokens a pass from the
# study's own traces (SpecDecode-Bench): EAGLE-3 on GSM8K at k = 3; n-gram on InstructCoder with
# outputs that loop, as published, at k = 1, 3, 5, 10.
V4_SOURCE = "arXiv 2601.11580"
V4_TOLERANCE = 0.07
V4_EAGLE_RUNNING = 128
V4_EAGLE_CONTEXT = 250  # tokens of a GSM8K question and half its answer, an estimate
V4_EAGLE = Run(method="eagle3", k=3, tokens_per_pass=2.39, published=1.21)
V4_EAGLE_STEP_S = 2.135e-3 / 3  # that engine's drafting at k = 3 (SpecDecode-Bench, predictor.py)
V4_NGRAM_TAU = {1: 1.51, 3: 2.03, 5: 2.29, 10: 2.57}
V4_NGRAM_PUBLISHED = 2.1
V4_NGRAM_ORACLE_PUBLISHED = 2.75  # told, at each pass, how much of the draft will hold; read as a
# bound that charges nothing for drafting. With our n-gram's drafting charged it would be 2.37.

# V6: DeepSeek-V4-Flash with DSpark, k = 7, ShareGPT on ROCm: tokens/s by concurrency, without
# speculation and with (vLLM #52362).
V6_SOURCE = "vLLM #52362"
V6_K = 7
V6_PLAIN = {4: 382.0, 16: 1343.0, 64: 4095.0, 128: 6341.0, 256: 8879.0}
V6_DSPARK = {4: 970.0, 16: 2910.0, 64: 6712.0, 128: 8779.0, 256: 7852.0}

# V7: Qwen3-30B-A3B on two H100s, SGLang, EAGLE-3 chain of 3, one sequence (SpecForge #339).
V7_SOURCE = "SpecForge #339"
V7_TOLERANCE = 0.20
V7_PLAIN = 222.47
V7_EAGLE3 = 159.78
V7_TAU = 1.86

# vLLM 0.32 on two x86-64 cores, SmolLM2-135M in float32, requests that copy their prompt: tokens
# a second by running requests, without speculation and with n-gram, k = 4. Measured by this project
# on an otherwise idle machine, 2026-11-29. The step times of `sim.hardware.CPU2` are fitted to
# these eight figures, so the errors say how far the simulated engine can follow this one, not how
# well it predicts others. What drafts accept is not fitted: they are matched.
CPU_SOURCE = "vLLM 0.32, 2 cores"
CPU_TOLERANCE = 0.15
CPU_PLAIN = {1: 6.3, 4: 16.7, 8: 24.2, 16: 37.8}
CPU_NGRAM = {1: 19.3, 4: 36.0, 8: 44.9, 16: 41.4}
