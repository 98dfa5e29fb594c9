"""What a request may not be sent to, and why: compatibility, never preference.

A speculating vLLM refuses some sampling parameters with 400 (streamed: an error event behind a
200), so such requests belong on a pool that does not speculate. Facts: vllm-project/vllm issues
#42744, #42802 and #38202, seen again on vLLM 0.32 by `tests/vllm`.
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.core.types import PoolSnapshot, RequestView


def refusal(view: RequestView, pool: PoolSnapshot) -> str | None:
    """Why `pool` cannot serve this request, in words for the caller; None if it can."""
    if pool.speculation is None:
        return None
    blocked = list(_blocked_by_speculation(view))
    return f"{' and '.join(blocked)} cannot be used with speculative decoding" if blocked else None


def _blocked_by_speculation(view: RequestView) -> Iterator[str]:
    if view.min_p:
        yield "min_p"
    if view.logit_bias:
        yield "logit_bias"
