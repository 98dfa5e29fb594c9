"""The configurations that we ship are right, and say the same as the commands beside them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from paceline.core.caller import SESSION_HEADERS
from paceline.core.rules import FIELDS
from paceline.settings import ModelSettings, PoolSettings, failed_tests, load, schema
from paceline.settings.fields import Section, offered
from paceline.settings.speculation import SpeculationSection

CONFIGS = Path(__file__).parents[2] / "configs"
H100 = CONFIGS / "h100-8b.yaml"

# Flags that vLLM has had since 0.29 at the latest.
VLLM_FLAGS = {
    "--served-model-name", "--host", "--port", "--speculative-config", "--max-num-seqs",
    "--per-request-spec-decode-metrics", "--max-num-batched-tokens", "--max-model-len",
    "--gpu-memory-utilization", "--max-num-queued-reqs", "--shutdown-timeout",
}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "at_least"), [("gateway.yaml", 5), ("h100-8b.yaml", 5), ("cpu-vllm.yaml", 1)]
)
def test_it_loads_without_any_variable_and_routes_as_it_says(file: str, at_least: int) -> None:
    settings = load(CONFIGS / file, {})

    assert len(settings.tests) >= at_least
    assert failed_tests(settings) == ()


def test_the_annotated_file_names_all_that_there_is() -> None:
    """And nothing that there is not: no key that this version refuses, no console."""
    text = (CONFIGS / "gateway.yaml").read_text(encoding="utf-8")
    sections = [section for section in vars(schema).values() if _is_section(section)]
    keys = {key for section in sections for key in offered(section)}
    refused = {key for section in sections for key in section.model_fields} - keys
    headers = {*SESSION_HEADERS, "x-paceline-workload", "x-paceline-priority", "x-paceline-explain"}

    named = set(re.findall(r"[a-z][a-z0-9_-]*", text))

    assert {*keys, *FIELDS, *headers} <= named
    assert not named & (refused - {"priority", "metrics", "content"} | {"console"})


def _is_section(value: object) -> bool:
    is_section = isinstance(value, type) and issubclass(value, Section)
    return is_section and value not in (Section, SpeculationSection)


def test_the_demos_pools() -> None:
    (model,) = load(CONFIGS / "gateway.yaml", {}).models

    assert (model.name, model.aliases, model.upstream_name) == ("m", ("gpt-4o-mini",), "smollm2")
    assert [(pool.name, pool.workers[0].url) for pool in model.pools] == [
        ("ngram", "http://127.0.0.1:8101"),
        ("eagle3", "http://127.0.0.1:8102"),
        ("plain", "http://127.0.0.1:8103"),
    ]


def test_a_key_of_ones_own_replaces_the_placeholder_that_lets_nobody_in() -> None:
    own = load(H100, {"TEAM_A_KEY_SHA256": "ab" * 32, "WORKER_KEY": "w"})

    assert load(H100, {}).auth.keys[0].sha256 == bytes(32)
    assert own.auth.keys[0].sha256 == b"\xab" * 32
    assert {worker.key for pool in own.models[0].pools for worker in pool.workers} == {"w"}


def test_the_h100_pools_are_what_their_commands_start() -> None:
    (model,) = load(H100, {}).models
    commands = _commands(H100.read_text(encoding="utf-8"))

    assert [pool.name for pool in model.pools] == [pool for pool, _ in commands]
    for pool, (_, flags) in zip(model.pools, commands, strict=True):
        _assert_same(model, pool, flags)


def _assert_same(model: ModelSettings, pool: PoolSettings, flags: dict[str, str]) -> None:
    assert flags.keys() <= VLLM_FLAGS
    assert flags["--served-model-name"] == model.upstream_name
    assert flags["--max-num-seqs"] == str(pool.max_num_seqs)
    assert all(worker.url.endswith(f":{flags['--port']}") for worker in pool.workers)
    started = json.loads(flags.get("--speculative-config", "null"))
    if pool.speculation is None:
        assert started is None
        assert "--per-request-spec-decode-metrics" not in flags
    else:
        assert started == {
            "method": pool.speculation.method,
            "num_speculative_tokens": pool.speculation.num_speculative_tokens,
            **pool.speculation.options,
        }
        assert flags["--per-request-spec-decode-metrics"] == "summary"


def _commands(text: str) -> list[tuple[str, dict[str, str]]]:
    """The `vllm serve` commands in comments, each with the pool whose entry follows it."""
    found = []
    command = r"(?P<command># VLLM_API_KEY=[^\n\\]*(?:\\\n[^\n\\]*)+)"
    pattern = command + r"(?:\n *#.*)*\n *- name: (?P<pool>\S+)"
    for match in re.finditer(pattern, text):
        lines = [line.strip().lstrip("# ") for line in match["command"].splitlines()]
        words = shlex.split(" ".join(line.removesuffix("\\") for line in lines))
        assert words[1:4] == ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"]
        found.append((match["pool"], dict(zip(words[4::2], words[5::2], strict=True))))
    return found
