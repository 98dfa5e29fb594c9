"""`paceline explain`: a decision for people and for programs, from a configuration alone."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from paceline.__main__ import main

CONFIG = """\
routing: {mode: adaptive, rules: [{name: wish, when: {workload: edit}, then: {prefer: ngram}}]}
models:
  - name: m
    default_pool: plain
    pools:
      - name: ngram
        speculation:
          {method: ngram, num_speculative_tokens: 5, prompt_lookup_min: 2, prompt_lookup_max: 4}
        workers: [{url: "http://a:1"}]
      - name: plain
        speculation: null
        workers: [{url: "http://b:1"}]
"""
TEXT = "Teh river was wide and the wind was cold, but nobody on the boat minded becuase of the sun."
BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": f"Fix the typos, return it whole:\n\n{TEXT}"}],
}


@pytest.fixture
def run(tmp_path: Path):
    def explain(body: object, *more: str, config: str = CONFIG) -> int:
        (tmp_path / "gateway.yaml").write_text(config)
        (tmp_path / "body.json").write_text(body if isinstance(body, str) else json.dumps(body))
        at = ["--config", str(tmp_path / "gateway.yaml")]
        return main(["explain", str(tmp_path / "body.json"), *at, *more])

    return explain


def test_people_see_pool_k_every_term_the_runner_up_and_the_reason(run, capsys) -> None:
    """What an operator reads, word for word: a change of it is a change of what they know."""
    assert run(BODY) == 0

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0].startswith("edit, ")
    assert "→ ngram plain" in lines
    table = lines[lines.index("→ ngram plain") + 1 :]
    assert [row.rpartition(" ")[0].rstrip("0123456789.x ") for row in table[:-1]] == [
        "k, draft tokens a pass",
        "tokens a pass",
        "running beside it",
        "a pass, ms",
        "without it, ms",
        "output expected, tokens",
        "wait, s",
        "prefill, s",
        "decode, s",
        "lost by others, s",
        "preference",
        "cost, s",
        "tokens/s expected",
    ]
    assert any(line.startswith("ngram with k = 5: least expected cost; ") for line in lines)
    assert "rule wish: matched" in lines


def test_programs_get_the_same_as_json(run, capsys) -> None:
    assert run(BODY, "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert (said["pool"], said["k"], said["runner_up"], said["reason"]) == (
        "ngram",
        5,
        "plain",
        "cost",
    )
    ngram = said["terms"]["ngram"]
    parts = sum(ngram[name] for name in ("wait_s", "prefill_s", "decode_s", "others_s"))
    assert ngram["cost_s"] == pytest.approx(parts * ngram["preference"], abs=1e-5)
    assert ngram["preference"] == 0.8


def test_a_header_counts_as_a_requests_does(run, capsys) -> None:
    assert run(BODY, "--json", "--header", "X-Paceline-Workload: chat") == 0

    assert json.loads(capsys.readouterr().out)["because"][0] == "client-label"


def test_rules_about_keys_are_explained_for_a_key(run, capsys) -> None:
    keyed = KEYED + CONFIG.replace("when: {workload: edit}", "when: {key: team}")
    assert run(BODY, "--json", "--key", "team", config=keyed) == 0
    assert json.loads(capsys.readouterr().out)["rules"] == {"wish": "matched"}

    assert run(BODY, "--json", config=keyed) == 0
    assert json.loads(capsys.readouterr().out)["rules"] == {"wish": "key is team, but it is absent"}

    assert run(BODY, "--key", "taem", config=keyed) == 1
    assert "there is no key named 'taem'; did you mean \"team\"?" in capsys.readouterr().err


KEYED = "auth: {keys: [{name: team, key: secret-of-the-team}]}\n"


def test_static_mode_has_rules_and_no_costs(run, capsys) -> None:
    assert run(BODY, config=CONFIG.replace("adaptive", "static")) == 0

    out = capsys.readouterr().out
    assert "ngram: rule wish names or prefers it" in out
    assert "cost" not in out


@pytest.mark.parametrize(
    ("body", "more", "says"),
    [
        ("{", (), "body.json: is not JSON"),
        ("[]", (), "must be a JSON object"),
        ({"model": "x"}, (), "no model 'x'"),
        (BODY, ("--header", "x-paceline-workload: poetry"), "may be code, chat, edit"),
        (BODY, ("--header", "nothing"), "write it as 'name: value'"),
        (BODY, ("--key", "team"), "there is no key named 'team'"),
    ],
)
def test_what_cannot_be_explained_says_why(run, capsys, body, more, says) -> None:
    assert run(body, *more) == 1

    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(tmp_path: Path, capsys) -> None:
    assert main(["explain", str(tmp_path / "nowhere.json")]) == 1

    assert "nowhere.json: cannot be read: No such file or directory" in capsys.readouterr().err


def test_an_address_without_its_scheme_is_named(tmp_path: Path, capsys) -> None:
    (tmp_path / "body.json").write_text(json.dumps(BODY))
    assert main(["explain", str(tmp_path / "body.json"), "--admin", "127.0.0.1:8081"]) == 1

    said = capsys.readouterr().err
    assert said == "paceline: --admin 127.0.0.1:8081: must begin with http:// or https://\n"


def test_a_wrong_admin_key_says_how_to_give_one(tmp_path: Path, capsys, monkeypatch) -> None:
    (tmp_path / "body.json").write_text(json.dumps(BODY))
    refused = httpx.Response(401, text="send the admin key as `Authorization: Bearer KEY`")
    monkeypatch.setattr(httpx, "post", lambda *_, **__: refused)
    assert main(["explain", str(tmp_path / "body.json")]) == 1

    assert "; say it with --admin-key, or in $PACELINE_ADMIN_KEY" in capsys.readouterr().err


def test_an_unknown_endpoint_lists_those_there_are(run, capsys) -> None:
    with pytest.raises(SystemExit):
        run(BODY, "--endpoint", "chat")

    assert "choose from" in (said := capsys.readouterr().err)
    assert "chat_completions" in said


def test_a_preference_that_was_outweighed_is_told(run, capsys) -> None:
    assert run(BODY, "--header", "x-paceline-workload: edit", config=DEAR) == 0

    assert "although rule wish prefers plain" in " ".join(capsys.readouterr().out.split())


DEAR = CONFIG.replace("prefer: ngram", "prefer: plain")


def test_no_gateway_to_ask_is_said(tmp_path: Path, capsys) -> None:
    (tmp_path / "body.json").write_text(json.dumps(BODY))

    assert main(["explain", str(tmp_path / "body.json"), "--admin", "http://127.0.0.1:9"]) == 1

    assert "no gateway answers at http://127.0.0.1:9" in capsys.readouterr().err
