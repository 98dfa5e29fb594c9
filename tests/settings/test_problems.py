"""What is refused in a file, where, and in which words."""

import re

import pytest

from paceline.errors import ConfigurationError
from paceline.settings import parse

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


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        parse(text, {}, name="f")
    return caught.value.problems


def test_all_problems_come_at_once_in_file_order() -> None:
    text = """
listen: {port: 99999}
models:
  - name: m
    pools:
      - name: ngram
        workrs: []
      - {name: plain, workers: [{url: "a:1"}]}
routing:
  rules:
    - {name: edits, when: {workload: edits}, then: {prefer: ngrm}}
auth: {keys: [{name: a}]}
routin: {}
"""
    assert problems(text) == (
        "f:2: listen.port: must be at most 65535, not 99999",
        "f:4: models[0].default_pool: required with more than one pool; one of ngram, plain",
        'f:7: models[0].pools[0].workrs: unknown key; did you mean "workers"?',
        'f:8: models[0].pools[1].workers[0].url: must begin with http:// or https://, not "a:1"',
        'f:11: routing.rules[0].when.workload: unknown workload "edits"; did you mean "edit"?',
        'f:11: routing.rules[0].then.prefer: unknown pool "ngrm"; did you mean "ngram"?',
        "f:12: auth.keys[0]: needs exactly one of key and key_sha256, not 0",
        'f:13: routin: unknown key; did you mean "routing"?',
    )


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("listen: {port: true}", "listen.port: must be a whole number, not true"),
        ("listen: {port: 80.0}", "listen.port: must be a whole number, not 80.0"),
        ('listen: {port: "80"}', 'listen.port: must be a whole number, not "80"'),
        ("listen: {port: -1}", "listen.port: must be at least 0, not -1"),
        ("listen: {port: 8081}", "listen.port: 8081 is the port of both listen and admin"),
        ("listen: {host: 5}", "listen.host: must be text, not 5; put it in quotes"),
        ('listen: {host: "http://x"}', "listen.host: must be a host name or address"),
        ("listen: {hots: x}", 'listen.hots: unknown key; did you mean "host"?'),
        ("listen: null", "listen: must be a mapping, not null"),
        ("listen: []", "listen: must be a mapping, not a list"),
        ("auth: {keys: {}}", "auth.keys: must be a list such as [{name: team-a, key: "),
        ("auth: {keys: [hush]}", "auth.keys[0]: must be a mapping such as {name: team-a, key: "),
        ("auth: hush", "auth: must be a mapping, not the value given"),
        ("admin: hush", "admin: must be a mapping, not the value given"),
        ("auth: {open: 1}", "auth.open: must be true or false, not 1"),
        ("limits: {body_bytes: 0}", "limits.body_bytes: must be at least 1, not 0"),
        ("timeouts: {connect_s: 0}", "timeouts.connect_s: must be more than 0, not 0"),
        ("timeouts: {connect_s: true}", "timeouts.connect_s: must be a number, not true"),
        ("timeouts: {connect_s: .nan}", 'timeouts.connect_s: must be a number, not ".nan"'),
        ("timeouts: {shutdown_s: -1}", "timeouts.shutdown_s: must be at least 0, not -1"),
        ("timeouts: {first_byte_s: 1e9}", "timeouts.first_byte_s: must be at most 86400, not"),
        ("routing: {mode: statik}", 'routing.mode: unknown mode "statik"; did you mean "static"?'),
        ("routing: {rules: [{}]}", "routing.rules[0].then: required, but missing"),
        ("what: 1", "what: unknown key; known: listen, admin, auth, models, routing, limits,"),
        ('"a\\x1b b": 1', '["a\\u001b b"]: unknown key'),
    ],
)
def test_a_wrong_value_is_shown_with_what_would_be_right(section: str, problem: str) -> None:
    (found,) = problems(section + MODELS)

    assert found.startswith(f"f:1: {problem}")
    assert "hush" not in found


@pytest.mark.parametrize(
    ("section", "known"),
    [
        ("limits: {rmp: 60}", "body_bytes"),
        ("log: {contents: true}", "decisions"),
        ("admin: {writeable: true}", "host, port, key"),
        ("routing: {shadw: true}", "mode, rules, tests"),
        ("routing: {rules: [{then: {pool: plain, priorty: 1}}]}", "pool, prefer, forbid, weight"),
    ],
)
def test_no_key_is_proposed_that_does_not_exist_yet(section: str, known: str) -> None:
    (found,) = problems(section + MODELS)

    assert found.endswith(f": unknown key; known: {known}")


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "app.example.com",
        "https://app.example.com/",
        "https://App.example.com",
        "https://",
    ],
)
def test_an_origin_is_written_as_browsers_send_it(origin: str) -> None:
    (found,) = problems(f'listen: {{cors_origins: ["{origin}"]}}\n' + MODELS)

    assert "must be an origin such as" in found


def test_an_origin_leaves_out_its_default_port() -> None:
    (found,) = problems('listen: {cors_origins: ["https://a.example:443"]}\n' + MODELS)

    assert "must leave out :443" in found


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("routing: {shadow: true}", "routing.shadow"),
        ("routing: {rules: [{then: {priority: batch}}]}", "routing.rules[0].then.priority"),
        ("limits: {queue: 256}", "limits.queue"),
        ("limits: {queue_timeout_s: 30}", "limits.queue_timeout_s"),
        ("limits: {rpm: 60}", "limits.rpm"),
        ("limits: {tpm: 60}", "limits.tpm"),
        ("log: {content: true}", "log.content"),
        ("admin: {writable: true}", "admin.writable"),
    ],
)
def test_what_does_not_exist_yet_is_refused_and_not_ignored(section: str, path: str) -> None:
    (found,) = problems(section + MODELS)

    assert found.startswith(f"f:1: {path}: not in this version")


def test_a_worker_that_drafts_nothing_cannot_be_told_how_much() -> None:
    text = MODELS.replace('{url: "http://a:1"}', '{url: "http://a:1", per_request_k: true}', 1)

    assert problems(text) == (
        "f:7: models[0].pools[0].workers[0].per_request_k: true needs a pool that speculates; "
        "this one drafts nothing",
    )


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("name: m, pools: []", "pools: must have at least one entry"),
        ("name: m", "pools: required, but missing"),
        (PLAIN, "name: required, but missing"),
        (f"name: 'a b', {PLAIN}", "name: must be a model's name"),
        (f"name: m, aliases: [m], {PLAIN}", 'aliases[0]: the same model name or alias "m" as'),
        (f"name: m, default_pool: q, {PLAIN}", 'default_pool: unknown pool "q"; known: p'),
        ("name: m, pools: [{name: p, workers: []}]", "pools[0].workers: must have at least one"),
        (
            "name: m, default_pool: p, pools: [{name: p, workers: [{url: 'http://a'}]},"
            " {name: p, workers: [{url: 'http://b'}]}]",
            'pools[1].name: the same pool name "p" as models[0].pools[0].name',
        ),
        (
            "name: m, default_pool: p, pools: [{name: p, workers: [{url: 'http://a:1'}]},"
            " {name: q, workers: [{url: 'http://A:1/'}]}]",
            'pools[1].workers[0].url: the same worker URL "http://a:1" as models[0].pools[0].',
        ),
    ],
)
def test_models(model: str, problem: str) -> None:
    (found,) = problems(f"models:\n  - {{{model}}}")

    assert found.startswith(f"f:2: models[0].{problem}")


@pytest.mark.parametrize(
    ("pool", "problem"),
    [
        (
            "workers: ['http://a:1']",
            'workers[0]: must be a mapping such as {url: "http://…"}, not "h',
        ),
        (
            "workers: 'http://a:1'",
            'workers: must be a list such as [{url: "http://…"}], not "http:',
        ),
        (
            "workers: {url: 'http://a'}",
            'workers: must be a list such as [{url: "http://…"}], not a',
        ),
        ("workers: ['http://u:hush@a']", 'workers[0]: must be a mapping such as {url: "http://…"}'),
        ("workers: [{url: 'http://a', p: 1}]", "workers[0].p: unknown key; known: url, key"),
    ],
)
def test_workers(pool: str, problem: str) -> None:
    (found,) = problems(f"models: [{{name: m, pools: [{{name: p, {pool}}}]}}]")

    assert found.startswith(f"f:1: models[0].pools[0].{problem}")
    assert "hush" not in found


@pytest.mark.parametrize("key", ["", ", key: other"])
def test_models_that_share_a_worker_give_it_one_key(key: str) -> None:
    shared = "models:\n- {{name: a, {0}}}\n- {{name: b, {1}}}"
    first = PLAIN.replace("a:1'", "a:1', key: hush")
    second = PLAIN.replace("http://a:1'", f"HTTP://A:01/'{key}")

    assert len(parse(shared.format(first, first), {}).models) == 2
    assert problems(shared.format(first, second)) == (
        "f:3: models[1].pools[0].workers[0].key: the same worker as models[0].pools[0].workers[0] "
        "with another key; a worker has one",
    )


def test_two_models_may_share_workers_and_pool_names_but_no_name() -> None:
    assert len(parse(f"models: [{{name: a, {PLAIN}}}, {{name: b, {PLAIN}}}]", {}).models) == 2
    assert problems(f"models:\n- {{name: a, {PLAIN}}}\n- {{name: b, aliases: [a], {PLAIN}}}") == (
        'f:3: models[1].aliases[0]: the same model name or alias "a" as models[0].name',
    )


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://127.0.0.1:8101", "http://127.0.0.1:8101"),
        ("https://gpu-1.example.org", "https://gpu-1.example.org"),
        ("http://vllm_ngram:80", "http://vllm_ngram:80"),
        ("HTTP://GPU-1:080/", "http://gpu-1:80"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("http://[fd00::1]:8000", "http://[fd00::1]:8000"),
        ("http://[FD00:0:0::0001]", "http://[fd00::1]"),
    ],
)
def test_worker_urls(written: str, url: str) -> None:
    settings = parse(
        f"models: [{{name: m, pools: [{{name: p, workers: [{{url: '{written}'}}]}}]}}]", {}
    )

    assert settings.models[0].pools[0].workers[0].url == url


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("127.0.0.1:8101", 'must begin with http:// or https://, not "127.0.0.1:8101"'),
        ("ftp://a", 'must begin with http:// or https://, not "ftp://a"'),
        ("http://a:0", 'must have a port from 1 to 65535 after the colon, not "http://a:0"'),
        (
            "http://a:65536",
            'must have a port from 1 to 65535 after the colon, not "http://a:65536"',
        ),
        ("http://a:", 'must have a port from 1 to 65535 after the colon, not "http://a:"'),
        ("http://a:x", 'must have a port from 1 to 65535 after the colon, not "http://a:x"'),
        ("http://", 'must have a host name or address after ://, not "http://"'),
        ("http://:80", 'must have a host name or address after ://, not "http://:80"'),
        ("http://a b", 'must have a host name or address after ://, not "http://a b"'),
        ("http://::1:80", "must have one colon at most, before the port, and an IPv6 address in b"),
        ("http://[::1", "must have one colon at most, before the port, and an IPv6 address in bra"),
        ("http://[a]:80", 'must have an IPv6 address between its brackets, not "http://[a]:80"'),
        ("http://a/v1", "must be http(s)://host[:port] without a path (the gateway adds /v1/…"),
        ("http://a?x", "must be http(s)://host[:port] without a query or fragment, not"),
        ("http://u:hush@a", "must be http(s)://host[:port] without a user or password"),
    ],
)
def test_wrong_worker_urls(url: str, problem: str) -> None:
    (found,) = problems(f"models: [{{name: m, pools: [{{name: p, workers: [{{url: '{url}'}}]}}]}}]")

    assert found.startswith(f"f:1: models[0].pools[0].workers[0].url: {problem}")
    assert "hush" not in found


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("auth: {keys: [{name: a}]}", "auth.keys[0]: needs exactly one of key and key_sha256"),
        (
            f"auth: {{keys: [{{name: a, key: x, key_sha256: '{'0' * 64}'}}]}}",
            "auth.keys[0]: needs exactly one of key and key_sha256, not 2",
        ),
        (
            "auth: {keys: [{name: a, key: x}, {name: a, key: y}]}",
            'auth.keys[1].name: the same key name "a" as auth.keys[0].name',
        ),
        (
            "auth: {keys: [{name: a, key: test}, {name: b, key_sha256: "
            "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08}]}",
            "auth.keys[1].key_sha256: the same secret as auth.keys[0].key",
        ),
        ("auth: {keys: [{name: a, key: ''}]}", "auth.keys[0].key: must be 1 to 512 printable"),
        ("auth: {keys: [{name: a, key: 'hush hush'}]}", "auth.keys[0].key: must be 1 to 512"),
        ("auth: {keys: [{name: a, key: 123456}]}", "auth.keys[0].key: must be text, not the value"),
        (
            "auth: {keys: [{name: a, key: 0123456}]}",
            "auth.keys[0].key: YAML readers disagree",
        ),
        ("auth: {keys: [{name: a, key_sha256: hush}]}", "auth.keys[0].key_sha256: must be 64 hex"),
        ("auth: {open: true, keys: [{name: a, key: x}]}", "auth.open: true would let everybody"),
        ("listen: {host: 0.0.0.0}", 'listen.host: "0.0.0.0" is open to other machines; add auth.'),
        ("admin: {host: 10.0.0.1}", "admin.key: required when admin.host is not loopback"),
        ("listen: {port: 8081, host: '::'}\nauth: {open: true}", "listen.port: 8081 is the port"),
        ("admin: {host: example.org, key: ''}", "admin.key: required when admin.host is not"),
    ],
)
def test_keys_and_who_may_reach_us(section: str, problem: str) -> None:
    (found,) = problems(section + MODELS)

    assert found.startswith(f"f:1: {problem}")
    assert not re.search("hush|123456", found)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_loopback_needs_no_key(host: str) -> None:
    parse(f'listen: {{host: "{host}"}}\nadmin: {{host: "{host}"}}\n{MODELS}', {})


def test_open_off_loopback_must_be_asked_for() -> None:
    settings = parse(f"listen: {{host: 0.0.0.0}}\nauth: {{open: true}}\n{MODELS}", {})

    assert settings.auth.open


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("then: {}", "then: needs exactly one of pool, prefer, forbid, weight, not 0"),
        ("then: {pool: plain, prefer: only}", "then: needs exactly one of pool, prefer, forbid,"),
        ("then: {pool: plane}", 'then.pool: unknown pool "plane"; did you mean "plain"?'),
        ("then: {forbid: [plain, x]}", 'then.forbid[1]: unknown pool "x"; known: plain, ngram, o'),
        ("then: {forbid: x}", 'then.forbid: unknown pool "x"; known: plain, ngram, only'),
        ("then: {forbid: []}", "then.forbid: must name at least one pool"),
        ("then: {weight: {}}", "then.weight: must name at least one pool"),
        ("then: {weight: {plain: 0}}", "then.weight: shares must add up to more than 0"),
        ("then: {weight: {x: 1}}", 'then.weight.x: unknown pool "x"; known: plain, ngram, only'),
        ("then: {weight: {plain: -1}}", "then.weight.plain: must be at least 0, not -1"),
        ("then: {weight: {plain: true}}", "then.weight.plain: must be a number, not true"),
        ("when: {model: other}, then: {pool: plain}", 'then.pool: unknown pool "plain"; known: on'),
        ("when: [], then: {pool: plain}", "when: must be a mapping, not a list"),
        ("name: 'a b', then: {pool: plain}", "name: must be 1 to 64 letters, digits"),
    ],
)
def test_rules(rule: str, problem: str) -> None:
    (found,) = problems(f"routing: {{rules: [{{{rule}}}]}}{MODELS}")

    assert found.startswith(f"f:1: routing.rules[0].{problem}")


def test_a_rule_may_name_the_pools_of_any_model_it_is_for() -> None:
    parse(f"routing: {{rules: [{{then: {{pool: only}}}}]}}{MODELS}", {})
    parse(
        f"routing: {{rules: [{{when: {{model: [gpt, other]}}, then: {{pool: only}}}}]}}{MODELS}", {}
    )


def test_a_rule_is_for_the_models_that_its_conditions_leave() -> None:
    def forbidding(when: str, *pools: str) -> str:
        then = f"then: {{forbid: [{', '.join(pools)}]}}"
        return f"routing: {{rules: [{{when: {{{when}}}, {then}}}]}}{MODELS}"

    parse(forbidding("model: {not: other}", "ngram"), {})
    parse(forbidding("not: {model: [other, gpt]}", "plain"), {})
    (found,) = problems(forbidding("model: {not: other}", "only"))
    assert found.endswith('forbid[0]: unknown pool "only"; known: plain, ngram')


@pytest.mark.parametrize(
    ("when", "forbid", "model"),
    [
        ("", "[plain, ngram]", "m"),
        ("", "only", "other"),
        ("model: m", "[ngram, plain]", "m"),
        ("model: gpt, stream: true", "[plain, ngram]", "m"),
        ("not: {model: gpt}", "[plain, ngram]", "m"),
        ("model: {not: other}", "[plain, ngram]", "m"),
        ("model: [gpt, other]", "[only]", "other"),
    ],
)
def test_a_rule_cannot_forbid_all_that_a_model_has(when: str, forbid: str, model: str) -> None:
    rule = f"{{when: {{{when}}}, then: {{forbid: {forbid}}}}}"

    (found,) = problems(f"routing: {{rules: [{rule}]}}{MODELS}")

    assert found.startswith(
        f'f:1: routing.rules[0].then.forbid: forbids every pool of model "{model}", where it could'
    )


def test_a_model_that_is_not_known_says_nothing_of_what_is_forbidden() -> None:
    rule = "{when: {model: othr}, then: {forbid: [only]}}"

    (found,) = problems(f"routing: {{rules: [{rule}]}}{MODELS}")

    assert "unknown model" in found


def test_a_generated_name_can_collide_and_that_is_said() -> None:
    rules = "[{then: {pool: plain}}, {name: rule-1, then: {pool: plain}}]"

    assert problems(f"routing: {{rules: {rules}}}{MODELS}") == (
        'f:1: routing.rules[1].name: the same rule name "rule-1" as routing.rules[0].name',
    )


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("expect: {pool: plain}", "request: required, but missing"),
        ("request: {}", "expect: required, but missing"),
        ("request: {}, expect: {}", "expect: needs workload, pool or both"),
        ("request: {}, expect: {pool: only}", 'expect.pool: unknown pool "only"; known: plain, n'),
        ("request: {model: other}, expect: {pool: plain}", 'expect.pool: unknown pool "plain"'),
        ("request: {model: x}, expect: {pool: plain}", 'request.model: unknown model "x"; known:'),
        ("request: {model: null}, expect: {pool: plain}", "request.model: unknown model null; kn"),
        ("request: {model: 1}, expect: {pool: plain}", "request.model: unknown model 1; known: m"),
        ("request: {}, expect: {workload: edti}", 'expect.workload: unknown workload "edti"; did'),
        ("request: {}, endpoint: chat, expect: {pool: plain}", 'endpoint: unknown endpoint "chat"'),
        ("request: {}, key: a, expect: {pool: plain}", 'key: unknown key "a"'),
        ("request: {}, headers: {a: 1}, expect: {pool: plain}", "headers.a: must be text, not 1"),
    ],
)
def test_routing_tests_are_checked_too(test: str, problem: str) -> None:
    (found,) = problems(f"routing: {{tests: [{{{test}}}]}}{MODELS}")

    assert found.startswith(f"f:1: routing.tests[0].{problem}")
