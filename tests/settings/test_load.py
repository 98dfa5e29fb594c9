"""A whole file → `Settings`, or every problem at once."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.rules import Action, Comparison, Condition, Rule
from paceline.core.types import Endpoint, Speculation, Workload
from paceline.errors import ConfigurationError
from paceline.settings import (
    Admin,
    ApiKey,
    Auth,
    Limits,
    Listen,
    ModelSettings,
    PoolSettings,
    RoutingTest,
    Settings,
    Timeouts,
    WorkerSettings,
    load,
    parse,
)
from paceline.settings.document import MAX_BYTES

MODELS = """
models:
  - name: m
    aliases: [gpt]
    default_pool: plain
    pools:
      - {name: plain, workers: [{url: "http://a:1"}]}
      - name: ngram
        speculation: {method: ngram, num_speculative_tokens: 5}
        workers: [{url: "http://b:1"}]
  - name: other
    pools: [{name: only, workers: [{url: "http://a:1"}]}]
"""
PLAIN = "pools: [{name: p, workers: [{url: 'http://a:1'}]}]"


def test_everything_that_can_be_said() -> None:
    text = """
listen: {host: 0.0.0.0, port: 80, metrics: false, cors_origins: []}
admin: {host: 0.0.0.0, port: 81, key: "${ADMIN}", writable: false}
auth:
  keys:
    - {name: team-a, key: "${TEAM_A}", debug: true}
    - name: team-b
      key_sha256: "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08"
models:
  - name: m
    aliases: [gpt]
    upstream_name: org/m
    default_pool: plain
    pools:
      - name: ngram
        speculation: {method: ngram, num_speculative_tokens: 5, prompt_lookup_max: 4}
        workers: [{url: "HTTPS://A:443/", key: "${WORKER}", per_request_k: false}]
        max_num_seqs: 64
      - name: plain
        speculation: null
        workers: [{url: "http://[0:0::1]:02/", key: "${NONE:-}"}]
routing:
  mode: static
  shadow: false
  rules:
    - when: {workload: edit, copy_ratio: ">=0.6", key: team-a}
      then: {prefer: ngram}
    - {name: rest, then: {weight: {plain: 1, ngram: 0.5}}}
    - {name: never, when: {}, then: {forbid: ngram}}
  tests:
    - request: {prompt: hello}
      endpoint: completions
      headers: {X-Tier: batch}
      key: team-a
      expect: {workload: chat, pool: plain}
limits: {body_bytes: 1000, queue: null, rpm: null}
timeouts: {connect_s: 1, hold_status_s: 0, first_byte_s: 2.5, between_bytes_s: 3, shutdown_s: 0}
"""
    environ = {"ADMIN": "adm", "TEAM_A": "sk-a", "WORKER": "w"}

    assert parse(text, environ) == Settings(
        listen=Listen(host="0.0.0.0", port=80),
        admin=Admin(host="0.0.0.0", port=81, key="adm"),
        auth=Auth(
            keys=(
                ApiKey(name="team-a", sha256=ApiKey.digest("sk-a"), debug=True),
                ApiKey(name="team-b", sha256=ApiKey.digest("test")),
            )
        ),
        models=(
            ModelSettings(
                name="m",
                aliases=("gpt",),
                upstream_name="org/m",
                default_pool="plain",
                pools=(
                    PoolSettings(
                        name="ngram",
                        speculation=Speculation(
                            method="ngram",
                            num_speculative_tokens=5,
                            options={"prompt_lookup_max": 4},
                        ),
                        workers=(WorkerSettings(url="https://a:443", key="w"),),
                        max_num_seqs=64,
                    ),
                    PoolSettings(
                        name="plain",
                        speculation=None,
                        workers=(WorkerSettings(url="http://[::1]:2"),),
                    ),
                ),
            ),
        ),
        rules=(
            Rule(
                name="rule-1",
                when=(
                    Condition(field="workload", any_of=("edit",)),
                    Condition(field="copy_ratio", any_of=(Comparison(sign=">=", value=0.6),)),
                    Condition(field="key", any_of=("team-a",)),
                ),
                then=Action(prefer="ngram"),
            ),
            Rule(name="rest", when=(), then=Action(weight={"plain": 1.0, "ngram": 0.5})),
            Rule(name="never", when=(), then=Action(forbid=("ngram",))),
        ),
        tests=(
            RoutingTest(
                request={"prompt": "hello"},
                endpoint=Endpoint.COMPLETIONS,
                headers={"x-tier": "batch"},
                key="team-a",
                expect_workload=Workload.CHAT,
                expect_pool="plain",
                line=31,
            ),
        ),
        limits=Limits(body_bytes=1000),
        timeouts=Timeouts(
            connect_s=1, hold_status_s=0, first_byte_s=2.5, between_bytes_s=3, shutdown_s=0
        ),
    )


def test_what_is_left_out_has_its_default() -> None:
    worker = WorkerSettings(url="http://a:1")
    pool = PoolSettings(name="p", speculation=None, workers=(worker,))
    model = ModelSettings(name="m", aliases=(), upstream_name="m", default_pool="p", pools=(pool,))

    assert parse(f"models: [{{name: m, {PLAIN}}}]", {}) == Settings(models=(model,))


def test_secrets_do_not_show_in_the_values() -> None:
    text = "admin: {key: hush1}\nauth: {keys: [{name: a, key: hush2}]}\n" + MODELS.replace(
        'url: "http://b:1"', 'url: "http://b:1", key: hush3'
    )

    assert "hush" not in repr(parse(text, {}))


def test_a_file_is_read_with_its_name_in_every_problem(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_bytes(b"\xef\xbb\xbfmodels: 5\n")

    with pytest.raises(ConfigurationError) as caught:
        load(file, {})

    assert caught.value.problems == (
        f"{file}:1: models: must be a list such as [{{name: …, pools: […]}}], not 5",
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: 1\nb: \xff\n", ":2: not UTF-8 text"),
        (b"#" * (MAX_BYTES + 1), ":1: larger than 256 KiB"),
        (b"#" + "é".encode() * MAX_BYTES, ":1: larger than 256 KiB"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        load(file, {})

    assert caught.value.problems == (f"{file}{problem}",)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file") as caught:
        load(tmp_path / "none.yaml", {})

    assert isinstance(caught.value.__cause__, OSError)


GOOD = yaml.safe_load("""
listen: {host: 127.0.0.1, port: 1}
auth: {keys: [{name: a, key: k}]}
models:
  - name: m
    aliases: [gpt]
    default_pool: plain
    pools:
      - name: ngram
        speculation: {method: ngram, num_speculative_tokens: 5, prompt_lookup_min: 2,
                      num_speculative_tokens_per_batch_size: [[1, 8, 5]]}
        workers: [{url: "http://a:1"}]
      - {name: plain, workers: [{url: "http://b:1"}]}
routing:
  rules: [{when: {workload: edit, header: {x: y}}, then: {weight: {ngram: 1}}}]
  tests: [{request: {model: m, messages: []}, headers: {a: b}, expect: {workload: edit}}]
timeouts: {connect_s: 1}
""")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@st.composite
def damaged(draw: st.DrawFn, value: object = GOOD, chance: int = 6) -> object:
    """A good file of which some parts, or keys, were replaced by anything."""
    if draw(st.integers(0, chance)) == chance:
        return draw(anything)
    if isinstance(value, dict):
        swap = st.sampled_from([*value, "name", "k"]) | st.text(max_size=4)
        entries = {}
        for key, item in value.items():
            kept = draw(swap) if draw(st.integers(0, 15)) == 0 else key
            entries[kept] = draw(damaged(item, chance * 2))
        return entries
    if isinstance(value, list):
        return [draw(damaged(item, chance * 2)) for item in value]
    return value


@settings(deadline=None, max_examples=60)
@given(damaged())
def test_any_damage_is_accepted_or_told_in_our_own_words(data: object) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)

    try:
        parse(text, {}, name="f")
    except ConfigurationError as error:
        told = error.problems
    else:
        told = ()

    assert list(told) == sorted(told, key=_line)
    assert not [problem for problem in told if _JARGON.search(problem)]


_JARGON = re.compile("pydantic|Input should|validator|is not valid$|\n")


def _line(problem: str) -> int:
    return int(problem.split(":")[1])


def test_a_scenario_of_the_simulator_is_told_by_its_keys():
    with pytest.raises(ConfigurationError, match="paceline sim"):
        parse("shares: {code: 1}\nlabel_pools: {code: plain}\n", {})
