"""`routing.tests` through the real decisions."""

from paceline.core.types import Endpoint
from paceline.settings import failed_tests, parse

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
  - name: fast
    pools:
      - name: only
        speculation: {method: ngram, num_speculative_tokens: 5}
        workers: [{url: "http://c:1"}]
auth: {keys: [{name: team-a, key: x}]}
routing:
  rules:
    - {name: m, when: {model: m, header: {x-tier: batch}}, then: {pool: plain}}
    - {name: team, when: {key: team-a}, then: {pool: ngram}}
    - {name: edits, when: {workload: edit}, then: {prefer: ngram}}
    - {name: later, when: {priority: batch}, then: {prefer: ngram}}
    - {name: agents, when: {endpoint: [messages, responses], tools: true}, then: {pool: ngram}}
  tests:
"""


def failures(test: str) -> tuple[str, ...]:
    return failed_tests(parse(f"{MODELS}    - {{{test}}}", {}), file="f")


def test_expectations_that_are_met_say_nothing() -> None:
    assert failures("request: {}, expect: {pool: plain}") == ()
    assert failures("request: {model: fast}, expect: {pool: only}") == ()
    assert failures("request: {prompt: a}, endpoint: completions, expect: {pool: plain}") == ()


def test_every_endpoint_can_be_tested() -> None:
    asked = "request: {tools: [{name: f}]}, expect:"
    assert failures(f"endpoint: messages, {asked} {{pool: ngram}}") == ()
    assert failures(f"endpoint: responses, {asked} {{pool: ngram}}") == ()
    for other in set(Endpoint) - {Endpoint.MESSAGES, Endpoint.RESPONSES}:
        assert failures(f"endpoint: {other}, {asked} {{pool: plain}}") == ()


def test_text_is_judged_in_any_body() -> None:
    fix = "Fix the typos, return the full text. teh teh"
    input_ = f"endpoint: responses, request: {{input: '{fix}'}}"
    messages = f"endpoint: messages, request: {{messages: [{{role: user, content: '{fix}'}}]}}"
    for body in (input_, messages):
        assert failures(f"{body}, expect: {{workload: edit, pool: ngram}}") == ()


def test_headers_and_keys_count_as_in_a_request() -> None:
    label = "headers: {X-Paceline-Workload: edit}"
    later = "headers: {x-paceline-priority: batch}"
    batch = "headers: {x-tier: batch}"

    assert failures(f"request: {{}}, {label}, expect: {{workload: edit, pool: ngram}}") == ()
    assert failures(f"request: {{}}, {later}, expect: {{pool: ngram}}") == ()
    assert failures("request: {}, key: team-a, expect: {pool: ngram}") == ()
    assert failures(f"request: {{}}, key: team-a, {batch}, expect: {{pool: plain}}") == ()


def test_a_rule_for_a_model_holds_for_its_aliases() -> None:
    asked = "request: {model: gpt}, key: team-a, headers: {x-tier: batch}"

    assert failures(f"{asked}, expect: {{pool: plain}}") == ()


def test_a_failure_says_where_what_and_why() -> None:
    (failure,) = failures(
        "request: {min_p: 0.1}, headers: {x-paceline-workload: edit}, "
        "expect: {workload: chat, pool: ngram}"
    )

    assert failure.startswith(
        "f:25: expected workload chat, pool ngram, got workload edit, pool plain "
        "(100% sure because of client-label, no-text; copy ratio "
    )
    assert "not edits: pool ngram may not take this request" in failure
    assert "not ngram: min_p cannot be used with speculative decoding" in failure


def test_what_a_caller_would_be_refused_is_a_failure() -> None:
    (refused,) = failures("request: {model: fast, min_p: 0.1}, expect: {pool: only}")
    (unknown,) = failures(
        "request: {}, headers: {x-paceline-workload: poem}, expect: {pool: plain}"
    )

    assert "got an error: no pool of model fast can serve this request" in refused
    assert "got an error: x-paceline-workload may be code, chat, edit; not 'poem'" in unknown
