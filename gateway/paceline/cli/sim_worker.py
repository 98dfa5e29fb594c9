"""`paceline sim-worker`: serve a simulated vLLM worker until it is told to stop."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.testing.sim_worker.faults import Fault
    from paceline.testing.sim_worker.options import SimWorkerOptions


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "sim-worker",
        help="serve a simulated vLLM worker",
        description="A process that speaks vLLM's HTTP API. The speculation is simulated: n-gram "
        "drafts are really matched against the text to come, heads draw from measured survivals.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=8000, help="0 takes a free one and prints it (%(default)s)"
    )
    parser.add_argument("--model", default="smollm2", help="served model name (%(default)s)")
    parser.add_argument(
        "--speculation",
        default="none",
        metavar="JSON|none",
        help="vLLM's speculative config; methods ngram, suffix, eagle3, mtp, draft_model "
        "(%(default)s)",
    )
    _add_hardware(parser)
    parser.add_argument("--max-num-seqs", type=int, default=256, help="running (%(default)s)")
    parser.add_argument(
        "--max-num-batched-tokens", type=int, default=8192, help="of a pass (%(default)s)"
    )
    parser.add_argument(
        "--max-model-len", type=int, help="tokens (131072, or what the KV cache holds)"
    )
    parser.add_argument("--kv-tokens", type=int, help="KV cache of an engine (by the hardware)")
    parser.add_argument(
        "--max-num-queued-reqs", type=int, help="running and waiting; 503 beyond (no limit)"
    )
    parser.add_argument(
        "--max-num-queued-tokens", type=int, help="prompt tokens to compute; 503 beyond (no limit)"
    )
    parser.add_argument(
        "--per-request-k",
        action="store_true",
        help="honour vllm_xargs.paceline_k, as a worker with our scheduler class does",
    )
    parser.add_argument(
        "--stream-interval", type=int, default=1, help="tokens of an event, at least (%(default)s)"
    )
    parser.add_argument("--api-key", help="guards /v1")
    parser.add_argument("--seed", type=int, default=0, help="of texts and draws (%(default)s)")
    parser.add_argument(
        "--per-request-spec-decode-metrics",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="answers carry metrics.speculative_decoding",
    )
    parser.add_argument(
        "--enable-per-request-metrics",
        action="store_true",
        help="answers carry the times of their request",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="JSON",
        help='a fault from the start, e.g. {"kind": "die", "at_token": 5, "count": 1}; may be '
        "given several times. POST /sim/faults changes them",
    )
    parser.set_defaults(run=run)


def _add_hardware(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hardware", help="h100, h200, a100 or cpu2: passes take what they would there"
    )
    parser.add_argument(
        "--model-profile",
        default="llama-3.1-8b",
        help="whose passes: llama-3.1-8b, llama-3.3-70b, llama-3.2-1b, qwen3-30b-a3b, "
        "smollm2-135m (%(default)s)",
    )
    parser.add_argument(
        "--tensor-parallel-size", type=int, default=1, help="devices of an engine (%(default)s)"
    )
    parser.add_argument(
        "--engines", type=int, default=1, help="data parallel engines (%(default)s)"
    )
    parser.add_argument(
        "--step-ms",
        type=float,
        default=12.0,
        help="without --hardware: fixed part of a pass, ms (%(default)s)",
    )
    parser.add_argument(
        "--time-scale", type=float, default=1.0, help="10 is ten times as fast (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, which end the process at once; 2 if it cannot begin."""
    from paceline.testing.sim_worker.server import address, listen, serve_for_good

    try:
        options, faults = _options(args), _faults(args)
        listener = listen(args.host, args.port)
    except (ValueError, OSError) as problem:
        sys.stderr.write(f"paceline sim-worker: {problem}\n")
        return 2
    sys.stdout.write(f"listening on {address(listener)}\n")
    sys.stdout.flush()
    serve_for_good(listener, options, faults)
    return 0


def _options(args: argparse.Namespace) -> SimWorkerOptions:
    from paceline.testing.sim_worker import SimWorkerOptions, parse_speculation

    try:
        speculation = parse_speculation(args.speculation)
    except ValueError as problem:
        raise ValueError(f"--speculation: {problem}") from None
    return SimWorkerOptions.fitting(
        max_model_len=args.max_model_len,
        model=args.model,
        speculation=speculation,
        step_s=args.step_ms / 1000,
        hardware=args.hardware,
        model_profile=args.model_profile,
        tensor_parallel=args.tensor_parallel_size,
        time_scale=args.time_scale,
        engines=args.engines,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        kv_tokens=args.kv_tokens,
        max_num_queued_reqs=args.max_num_queued_reqs,
        max_num_queued_tokens=args.max_num_queued_tokens,
        per_request_k=args.per_request_k,
        stream_interval=args.stream_interval,
        api_key=args.api_key,
        seed=args.seed,
        per_request_spec_decode_metrics=args.per_request_spec_decode_metrics,
        per_request_metrics=args.enable_per_request_metrics,
    )


def _faults(args: argparse.Namespace) -> list[Fault]:
    from paceline.testing.sim_worker.faults import parse_faults

    try:
        return parse_faults([json.loads(text) for text in args.fault], can_exit=True)
    except ValueError as problem:
        raise ValueError(f"--fault: {problem}") from None
