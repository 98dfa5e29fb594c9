"""`paceline sim-worker`: a process that speaks vLLM's HTTP API with simulated speculation.

The engine, the drafts and the text come from `paceline.sim`; here are the wire formats (`dialects`,
one an endpoint), real time, and faults on demand. Bodies and streams imitate vLLM 0.32, error texts
included, as recorded from a real one. Start reading at `app.py`.

    app = create_sim_worker(SimWorkerOptions(speculation=parse_speculation('{"method": …}')))

    async with running_sim_worker(SimWorkerOptions(step_s=0.002)) as url: …
"""

from paceline.testing.sim_worker.app import create_sim_worker
from paceline.testing.sim_worker.faults import parse_faults
from paceline.testing.sim_worker.options import SimWorkerOptions, parse_speculation
from paceline.testing.sim_worker.server import running_sim_worker

__all__ = [
    "SimWorkerOptions",
    "create_sim_worker",
    "parse_faults",
    "parse_speculation",
    "running_sim_worker",
]
