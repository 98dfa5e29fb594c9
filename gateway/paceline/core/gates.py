"""What a request may not be sent to, and why: compatibility, never preference.

A speculating vLLM refuses some sampling parameters with 400 (streamed: an error event behind a
200), so such requests belong on a pool that does not speculate. Facts: vllm-project/vllm issues
#42744, #42802 and #38202, seen again on vLLM 0.32 by `tests/vllm`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.core.types import PoolSnapshot, RequestView


def refusals(view: RequestView, pools: Iterable[PoolSnapshot]) -> dict[str, str]:
    """Of the `pools` that cannot serve this request, why, in words for the caller."""
    if not (view.min_p or view.logit_bias):
        return {}
    blocked = {"min_p": view.min_p, "logit_bias": view.logit_bias}
    names = " and ".join(name for name, is_set in blocked.items() if is_set)
    why = f"{names} cannot be used with speculative decoding"
    return {pool.name: why for pool in pools if pool.speculation is not None}
