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
        help="vLLM's speculative config; methods ngram, eagle3, mtp, draft_model (%(default)s)",
    )
    parser.add_argument(
        "--step-ms", type=float, default=12.0, help="fixed part of a pass, ms (%(default)s)"
    )
    parser.add_argument("--max-num-seqs", type=int, default=256, help="running (%(default)s)")
    parser.add_argument("--max-model-len", type=int, default=131072, help="tokens (%(default)s)")
    parser.add_argument(
        "--max-num-queued-reqs", type=int, help="running and waiting; 503 beyond (no limit)"
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
        "--fault",
        action="append",
        default=[],
        metavar="JSON",
        help='a fault from the start, e.g. {"kind": "die", "at_token": 5, "count": 1}; may be '
        "given several times. POST /sim/faults changes them",
    )
    parser.set_defaults(run=run)


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
    return SimWorkerOptions(
        model=args.model,
        speculation=speculation,
        step_s=args.step_ms / 1000,
        max_num_seqs=args.max_num_seqs,
        max_model_len=args.max_model_len,
        max_num_queued_reqs=args.max_num_queued_reqs,
        api_key=args.api_key,
        seed=args.seed,
        per_request_spec_decode_metrics=args.per_request_spec_decode_metrics,
    )


def _faults(args: argparse.Namespace) -> list[Fault]:
    from paceline.testing.sim_worker.faults import parse_faults

    try:
        return parse_faults([json.loads(text) for text in args.fault], can_exit=True)
    except ValueError as problem:
        raise ValueError(f"--fault: {problem}") from None
