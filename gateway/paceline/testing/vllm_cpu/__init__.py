"""A real vLLM serving a small real model on CPU cores: for `make demo-vllm` and `make test-vllm`.

Linux only; one core and about 3 GB a worker. A pass takes 10-100 times what it takes on a GPU, so
use these workers for what is true at any speed (text, bursts, counters, errors), and compare times
only within one run.

    python -m paceline.testing.vllm_cpu setup      # build everything, once
    python -m paceline.testing.vllm_cpu workers    # an n-gram and a plain worker
"""

from paceline.testing.vllm_cpu.installation import Installation, VllmCpuError, prepare
from paceline.testing.vllm_cpu.workers import Worker, WorkerSpec, running, two_pools

__all__ = [
    "Installation",
    "VllmCpuError",
    "Worker",
    "WorkerSpec",
    "prepare",
    "running",
    "two_pools",
]
