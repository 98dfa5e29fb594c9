"""What a worker says about itself."""

from __future__ import annotations

import secrets
import time
from typing import Any

from paceline.testing.sim_worker.options import SimWorkerOptions

VERSION = "0.32.0"  # of the vLLM that is imitated


def model_list(options: SimWorkerOptions) -> dict[str, Any]:
    """`/v1/models`. As in vLLM, `created` is the time of the request and the permission is new."""
    now = int(time.time())
    permission = {
        "id": f"modelperm-{secrets.token_hex(8)}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    model = {
        "id": options.model,
        "object": "model",
        "created": now,
        "owned_by": "vllm",
        "root": f"simulated/{options.model}",
        "parent": None,
        "max_model_len": options.max_model_len,
        "permission": [permission],
    }
    return {"object": "list", "data": [model]}
