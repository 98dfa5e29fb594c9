"""Named rewrites on the client's own bytes: what is meant changes, and not one byte more."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.rewrite import UsageAdded, rewrite, usage_to_add, wants_k, wants_usage_added
from paceline.core.splices import MAX_MEMBERS, without_member
from paceline.core.splices import members as members_from
from paceline.core.types import Endpoint
from paceline.errors import InvalidRequest

USAGE = b'"include_usage":true'


def rewritten(raw: bytes, *, model: str = "up", add_usage: bool = False) -> bytes:
    return rewrite(raw, orjson.loads(raw), model=model, add_usage=add_usage)


def with_usage(raw: bytes) -> bytes:
    """As the gateway does it: usage is added where it is wanted."""
    body = orjson.loads(raw)
    return rewrite(raw, body, model=body["model"], add_usage=wants_usage_added(body))


# ---- any body, oddly spelled ---------------------------------------------------------------------


@dataclass(frozen=True)
class Spelled:
    """Bytes as the client sent them, and as the worker must get them."""

    before: bytes
    after: bytes

    def __add__(self, other: Spelled) -> Spelled:
        return Spelled(self.before + other.before, self.after + other.after)


def same(raw: bytes) -> Spelled:
    return Spelled(raw, raw)


NOTHING = same(b"")


class Speller:
    """Writes JSON in ways that no library does: odd spaces, needless escapes, odd numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def space(self) -> bytes:
        return self.random.choice([b"", b"", b"", b" ", b"\n", b"\t", b"\r\n  "])

    def string(self, text: str) -> bytes:
        """Now and then each character by its number; `\\/` for a slash."""
        escaping = self.random.choice([0.0, 0.0, 0.3, 1.0])
        return b'"' + b"".join(self._character(char, escaping) for char in text) + b'"'

    def _character(self, char: str, escaping: float) -> bytes:
        if char in '"\\/' and self.random.random() < 0.7:
            return b"\\" + char.encode()
        if char < " " or char in '"\\' or self.random.random() < escaping:
            units = char.encode("utf-16-be").hex()
            units = units.upper() if self.random.random() < 0.5 else units
            return b"".join(f"\\u{units[at : at + 4]}".encode() for at in range(0, len(units), 4))
        return char.encode()

    def value(self, value: Any) -> bytes:
        match value:
            case str():
                return self.string(value)
            case dict():
                return self.object(self.members(value.items())).before
            case list():
                inner = [self.space() + self.value(item) + self.space() for item in value]
                return b"[" + b",".join(inner) + b"]" if inner else b"[" + self.space() + b"]"
            case bool() | None:
                return json.dumps(value).encode()
        return self.random.choice(
            [b"1.0E+2", b"-0", b"1e-7", b"0.10", b"100.00", b"12345678901234"]
        )

    def members(self, items: Iterable[tuple[str, Any]]) -> list[tuple[str, Spelled]]:
        """Members that no rewrite may touch."""
        return [(key, same(self.value(value))) for key, value in items]

    def object(self, members: list[tuple[str, Spelled]], closing: Spelled = NOTHING) -> Spelled:
        """An object of spelled values; `closing` stands before its last brace."""
        spelled = same(b"{" + self.space())
        for index, (key, value) in enumerate(members):
            comma = b"," if index else b""
            head = comma + self.space() + self.string(key) + self.space() + b":" + self.space()
            spelled = spelled + same(head) + value + same(self.space())
        return spelled + closing + same(b"}")


words = st.sampled_from(
    ["model", '"model"', '"model":"x"', '\\"model\\"', '","', ": {", "stream_options"]
) | st.just("include_usage")
texts = words | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.just(1.5) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
others = st.lists(st.tuples(texts, json_values), max_size=4).map(
    lambda members: [member for member in members if member[0] not in ("model", "stream_options")]
)


@given(parts=st.lists(others, min_size=2, max_size=3), names=st.data(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=200)
def test_only_the_values_of_top_level_models_change(
    parts: list, names: st.DataObject, seed: int
) -> None:
    speller = Speller(Random(seed))
    members = speller.members(parts[0])
    for part in parts[1:]:
        name = speller.string(names.draw(texts))
        members += [("model", Spelled(name, b'"target/7B"')), *speller.members(part)]
    body = speller.object(members)
    assert rewritten(body.before, model="target/7B") == body.after


@given(parts=st.lists(others, min_size=1, max_size=3), kinds=st.data(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=200)
def test_only_include_usage_is_added(parts: list, kinds: st.DataObject, seed: int) -> None:
    speller = Speller(Random(seed))
    members = [("stream", same(b"true")), *speller.members(parts[0])]
    for part in parts[1:]:
        kind = kinds.draw(st.sampled_from(["null", "with", "without"]))
        options = speller.members(member for member in part if member[0] != "include_usage")
        members += [("stream_options", spelled_options(speller, kind, options))]
    added = b',"stream_options":{' + USAGE + b"}" if len(parts) == 1 else b""
    body = speller.object(members, closing=Spelled(b"", added))
    assert rewritten(body.before, add_usage=True) == body.after
    assert orjson.loads(body.after)["stream_options"]["include_usage"] is True


def spelled_options(speller: Speller, kind: str, members: list) -> Spelled:
    if kind == "null":
        return Spelled(b"null", b"{" + USAGE + b"}")
    if kind == "with":
        turned = [("include_usage", Spelled(off, b"true")) for off in (b"false", b"null")]
        return speller.object([*members, *turned])
    return speller.object(members, closing=Spelled(b"", (b"," if members else b"") + USAGE))


def pairs(raw: bytes) -> Any:
    """JSON with nothing lost: objects as pairs, duplicates kept, numbers as they were spelled."""
    keep = {"parse_int": str, "parse_float": str}
    return json.loads(raw, object_pairs_hook=lambda members: ("object", members), **keep)


@given(members=st.lists(st.tuples(texts, json_values), max_size=6), seed=st.integers(0, 2**32))
def test_a_body_reads_the_same_apart_from_the_rewrites(members: list, seed: int) -> None:
    speller = Speller(Random(seed))
    members = [*members, ("stream", True), ("model", "m")]
    raw = speller.object(speller.members(members)).before
    add = wants_usage_added(orjson.loads(raw))
    out = rewritten(raw, add_usage=add)

    kind, read = pairs(out)
    assert kind == "object"
    assert [value for key, value in read if key == "model"] == ["up"] * sum(
        key == "model" for key, _ in members
    )
    untouched = ("model", "stream_options")
    assert [member for member in read if member[0] not in untouched] == [
        member for member in pairs(raw)[1] if member[0] not in untouched
    ]
    again = orjson.loads(out)
    assert not wants_usage_added(again)
    assert rewrite(out, again, model="up", add_usage=False) is out


@given(members=st.lists(st.tuples(texts, json_values), max_size=6), seed=st.integers(0, 2**32))
def test_members_are_those_that_were_written(members: list, seed: int) -> None:
    speller = Speller(Random(seed))
    spelled = speller.members(members)
    raw = speller.space() + speller.object(spelled).before
    found = [
        (member.key, raw[member.start : member.end])
        for member in members_from(raw, raw.index(b"{"))
    ]
    assert found == [(key, value.before) for key, value in spelled]


# ---- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"model":"a"}', b'{"model":"up"}'),
        (b'{ "model"\t:\r\n"a" }', b'{ "model"\t:\r\n"up" }'),
        (b'{"model":"model"}', b'{"model":"up"}'),
        (b'{"x":"model","model":"a"}', b'{"x":"model","model":"up"}'),
        (b'{"x":{"model":"b"},"model":"a"}', b'{"x":{"model":"b"},"model":"up"}'),
        (b'{"model":"a","x":[{"model":"b"}]}', b'{"model":"up","x":[{"model":"b"}]}'),
        (b'{"mod\\u0065l":"a"}', b'{"mod\\u0065l":"up"}'),
        (b'{"m\\u006Fdel":"a","x":{"model":"b"}}', b'{"m\\u006Fdel":"up","x":{"model":"b"}}'),
        (b'{"model":"b","\\u006dodel":"a"}', b'{"model":"up","\\u006dodel":"up"}'),
        (b'{"model":"b","model":"a"}', b'{"model":"up","model":"up"}'),
        (b'{"model":"\\"model\\":\\"b\\""}', b'{"model":"up"}'),
        (b'{"x":"\\"model\\":\\"b\\"","model":"a"}', b'{"x":"\\"model\\":\\"b\\"","model":"up"}'),
        (b'{"x":"\\"model","model":"a"}', b'{"x":"\\"model","model":"up"}'),
        (b'{"\\"model":"b","model":"a"}', b'{"\\"model":"b","model":"up"}'),
        (b'{"x\\\\":"model","model":"a"}', b'{"x\\\\":"model","model":"up"}'),
        (b'{"models":"b","model":"a","Model":"c"}', b'{"models":"b","model":"up","Model":"c"}'),
        (b'{"model":null,"x":"\\\\"}', b'{"model":"up","x":"\\\\"}'),
        (b'{"model":{"model":["}"]}}', b'{"model":"up"}'),
        (b' \n{"x":"}","model":"a"}\n ', b' \n{"x":"}","model":"up"}\n '),
    ],
)
def test_the_model_is_named_where_it_stands(raw: bytes, expected: bytes) -> None:
    assert rewritten(raw) == expected


@pytest.mark.parametrize(
    "raw", [b"{}", b'{"x":{"model":"b"}}', b'{"x":["model"],"y":"\\"model\\":"}']
)
def test_a_body_without_a_model_is_left_alone(raw: bytes) -> None:
    assert rewritten(raw) is raw


def test_a_name_is_written_as_json() -> None:
    name = 'a "quoted" \\ name/é'
    assert orjson.loads(rewritten(b'{"model":"a"}', model=name)) == {"model": name}


def test_nothing_to_do_gives_back_the_same_object() -> None:
    raw = b'{ "model" : "m", "stream_options": {} }'
    assert rewritten(raw, model="m") is raw


# ---- usage ---------------------------------------------------------------------------------------

STREAM = b'{"model":"m","stream":true'


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"", b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":null', b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":{}', b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":{ }', b',"stream_options":{ "include_usage":true}'),
        (b',"stream_options":{"include_usage":false}', b',"stream_options":{"include_usage":true}'),
        (
            b',"stream_options":{"include_usage": null }',
            b',"stream_options":{"include_usage": true }',
        ),
        (b',"stream_options":{"x":1}', b',"stream_options":{"x":1,"include_usage":true}'),
        (
            b',"stream_options":{"x":{"include_usage":false}}',
            b',"stream_options":{"x":{"include_usage":false},"include_usage":true}',
        ),
        (
            b',"stream_options":{"continuous_usage_stats":false}',
            b',"stream_options":{"continuous_usage_stats":false,"include_usage":true}',
        ),
        (
            b',"stream_options":{"include_usage":true,"include_us\\u0061ge":false}',
            b',"stream_options":{"include_usage":true,"include_us\\u0061ge":true}',
        ),
        (
            b',"stream_options":null,"stream\\u005foptions":{}',
            b',"stream_options":{"include_usage":true},"stream\\u005foptions":{"include_usage":true}',
        ),
        (
            b',"stream_options":7,"stream_options":{}',
            b',"stream_options":7,"stream_options":{"include_usage":true}',
        ),
    ],
)
def test_usage_is_added_where_the_client_did_not_ask(options: bytes, expected: bytes) -> None:
    assert with_usage(STREAM + options + b"}") == STREAM + expected + b"}"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"m"}',
        b'{"model":"m","stream":false}',
        b'{"model":"m","stream":null,"stream_options":{}}',
        STREAM + b',"stream_options":{"include_usage":true}}',
        STREAM + b',"stream_options":{"include_usage":false,"include_usage":true}}',
        STREAM + b',"stream_options":{"continuous_usage_stats":true}}',
        STREAM + b',"stream_options":{"continuous_usage_stats":true,"include_usage":false}}',
        STREAM + b',"stream_options":{"continuous_usage_stats":true,"include_usage":true}}',
        STREAM + b',"stream_options":{},"stream_options":{"include_usage":true}}',
        STREAM + b',"stream_options":"yes"}',
        STREAM + b',"stream_options":[]}',
        STREAM + b',"stream_options":{"include_usage":"no"}}',
    ],
)
def test_usage_is_not_added_where_it_was_asked_for_or_cannot_be(raw: bytes) -> None:
    assert with_usage(raw) is raw


def test_usage_comes_before_the_last_brace_whatever_stands_behind_it() -> None:
    raw = STREAM + b', "x": "}" }\r\n'
    expected = STREAM + b', "x": "}" ,"stream_options":{"include_usage":true}}\r\n'
    assert with_usage(raw) == expected


def test_both_rewrites_at_once() -> None:
    raw = b'{"stream_options":{},"model":"a","stream":true,"temperature":1.0E+2}'
    assert rewritten(raw, add_usage=True) == (
        b'{"stream_options":{"include_usage":true},"model":"up","stream":true,"temperature":1.0E+2}'
    )


# ---- what clients send----------------------------------------------------------------------------


def test_fields_outside_the_schema_reach_the_worker() -> None:
    raw = (
        b'{"model":"a","chat_template_kwargs":{"enable_thinking":false},"x":{"y":[1.50,{}]},'
        b'"tools":[{"type":"function","function":{"name":"now"}}],"messages":['
        b'{"role":"user","content":"hi"},'
        b'{"role":"assistant","tool_calls":[{"id":"c1","type":"function",'
        b'"function":{"name":"now","arguments":"{}"}}]},'
        b'{"role":"assistant","content":null},'
        b'{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"noon"}]}]}'
    )
    assert rewritten(raw) == raw.replace(b'"model":"a"', b'"model":"up"')


@pytest.mark.parametrize("text", ['"model"', "\\", '"', "[{", "é北", "\n", "plain "])
def test_a_mebibyte_of_anything_is_passed_through(text: str) -> None:
    content = json.dumps(text * (2**20 // len(text))).encode()
    head, tail = b'{"model":"', b'","stream":true,"prompt":' + content
    assert rewritten(head + b"a" + tail + b"}", add_usage=True) == (
        head + b"up" + tail + b',"stream_options":{"include_usage":true}}'
    )


def test_many_members_and_no_more_than_that() -> None:
    def many(count: int) -> bytes:
        return b",".join(b'"k%d":[{}]' % index for index in range(count))

    walked = b"{" + many(MAX_MEMBERS - 1) + b',"mod\\u0065l":"'
    assert rewritten(walked + b'a"}') == walked + b'up"}'
    with pytest.raises(InvalidRequest, match="more than 4096 members"):
        rewritten(b"{" + many(MAX_MEMBERS) + b',"mod\\u0065l":"a"}')


def test_a_mebibyte_of_nested_values_is_passed_over() -> None:
    deep = b'"x":[' + b"[[],{}]," * 2**17 + b'0],"mod\\u0065l":"'
    assert rewritten(b"{" + deep + b'a"}') == b"{" + deep + b'up"}'


def test_what_is_nested_too_deeply_to_walk_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        rewritten(b'{"x":' + b"[" * 1000 + b"]" * 1000 + b',"mod\\u0065l":"a"}')


# ---- hints ---------------------------------------------------------------------------------------

CONTINUOUS = b'"continuous_usage_stats":true'
CHAT = Endpoint.CHAT_COMPLETIONS


def with_hints(raw: bytes) -> bytes:
    body = orjson.loads(raw)
    added = usage_to_add(CHAT, body, hints=True)
    return rewrite(
        raw,
        body,
        model=body["model"],
        add_usage=added.chunk,
        add_continuous_usage=added.members,
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"", b',"stream_options":{%b,%b}' % (USAGE, CONTINUOUS)),
        (b',"stream_options":null', b',"stream_options":{%b,%b}' % (USAGE, CONTINUOUS)),
        (b',"stream_options":{ }', b',"stream_options":{ %b,%b}' % (USAGE, CONTINUOUS)),
        (
            b',"stream_options":{"include_usage": true}',
            b',"stream_options":{"include_usage": true,%b}' % CONTINUOUS,
        ),
        (
            b',"stream_options":{"continuous_usage_stats": false ,"x":[1.0]}',
            b',"stream_options":{"continuous_usage_stats": true ,"x":[1.0],%b}' % USAGE,
        ),
        (
            b',"stream_options":{"continuous_usage_stats":true}',
            b',"stream_options":{%b,%b}' % (CONTINUOUS, USAGE),
        ),
        (
            b',"stream_options":{"include_usage":null,"continuous_usage_stats":null}',
            b',"stream_options":{%b,%b}' % (USAGE, CONTINUOUS),
        ),
        (
            b',"stream_options":{},"stream_options":{"x":1}',
            b',"stream_options":{%b,%b},"stream_options":{"x":1,%b,%b}'
            % (USAGE, CONTINUOUS, USAGE, CONTINUOUS),
        ),
    ],
)
def test_hints_want_usage_in_every_chunk(options: bytes, expected: bytes) -> None:
    assert with_hints(STREAM + options + b"}") == STREAM + expected + b"}"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"m"}',
        b'{"model":"m","stream":false}',
        STREAM + b',"stream_options":{"include_usage":true,"continuous_usage_stats":true}}',
        STREAM + b',"stream_options":{"include_usage":"yes"}}',
        STREAM + b',"stream_options":{"include_usage":true,"continuous_usage_stats":"yes"}}',
        STREAM + b',"stream_options":[]}',
    ],
)
def test_hints_add_nothing_where_all_was_asked_for_or_nothing_can_be(raw: bytes) -> None:
    assert with_hints(raw) is raw


@pytest.mark.parametrize(
    ("options", "hints", "added"),
    [
        (None, False, UsageAdded(chunk=True)),
        (None, True, UsageAdded(chunk=True, members=True)),
        ({"include_usage": True}, False, UsageAdded()),
        ({"include_usage": True}, True, UsageAdded(members=True)),
        ({"continuous_usage_stats": True}, False, UsageAdded()),
        ({"continuous_usage_stats": True}, True, UsageAdded(chunk=True, members=True)),
        ({"include_usage": True, "continuous_usage_stats": True}, True, UsageAdded()),
        ({"include_usage": False, "continuous_usage_stats": "x"}, True, UsageAdded()),
    ],
)
def test_what_was_added_is_what_the_client_did_not_ask_for(
    options: Any, hints: bool, added: UsageAdded
) -> None:
    body = {"stream": True, "stream_options": options}
    assert usage_to_add(Endpoint.COMPLETIONS, body, hints=hints) == added
    for other in set(Endpoint) - {Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS}:
        assert usage_to_add(other, body, hints=hints) == UsageAdded()


@given(parts=st.lists(others, min_size=1, max_size=3), kinds=st.data(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=200)
def test_a_body_with_hints_reads_the_same_apart_from_its_options(
    parts: list, kinds: st.DataObject, seed: int
) -> None:
    speller = Speller(Random(seed))
    flags = st.sampled_from([None, True, False])
    members: list[tuple[str, Any]] = [("model", "m"), ("stream", True), *parts[0]]
    for part in parts[1:]:
        given = {name: kinds.draw(flags) for name in ("include_usage", "continuous_usage_stats")}
        members.append(("stream_options", {**dict(part), **given}))
    raw = speller.object(speller.members(members)).before
    read, again = pairs(raw)[1], pairs(with_hints(raw))[1]
    assert [pair for pair in read if pair[0] != "stream_options"] == [
        pair for pair in again if pair[0] != "stream_options"
    ]
    options = orjson.loads(with_hints(raw))["stream_options"]
    assert options["include_usage"] is True
    assert options["continuous_usage_stats"] is True
    ours = ("include_usage", "continuous_usage_stats")
    rest = {key: value for key, value in options.items() if key not in ours}
    before = orjson.loads(raw).get("stream_options", {})
    assert rest == {key: value for key, value in before.items() if key not in ours}


# ---- a member cut out ----------------------------------------------------------------------------


@given(
    members=st.lists(st.tuples(texts | st.just("x"), json_values), max_size=6),
    seed=st.integers(0, 2**32),
)
def test_without_a_member_everything_else_reads_the_same(members: list, seed: int) -> None:
    speller = Speller(Random(seed))
    raw = speller.object(speller.members(members)).before
    left = without_member(raw, 0, "x")
    assert pairs(left) == ("object", [pair for pair in pairs(raw)[1] if pair[0] != "x"])
    if all(key != "x" for key, _ in members):
        assert left is raw


# --- how many tokens to draft ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model":"up"}', b'{"model":"up","vllm_xargs":{"paceline_k":3}}'),
        (
            b'{"vllm_xargs":null,"model":"up"}',
            b'{"vllm_xargs":{"paceline_k":3},"model":"up"}',
        ),
        (
            b'{"vllm_xargs": {} ,"model":"up"}',
            b'{"vllm_xargs": {"paceline_k":3} ,"model":"up"}',
        ),
        (
            b'{"vllm_xargs": {"a" : 1e3},"model":"up"}',
            b'{"vllm_xargs": {"a" : 1e3,"paceline_k":3},"model":"up"}',
        ),
    ],
)
def test_k_is_set_among_the_clients_own_xargs(before: bytes, after: bytes) -> None:
    assert rewrite(before, orjson.loads(before), model="up", k=3) == after


def test_k_and_usage_are_added_side_by_side() -> None:
    raw = b'{"model":"a","stream":true}'
    out = rewrite(raw, orjson.loads(raw), model="up", add_usage=True, k=0)
    assert out == (
        b'{"model":"up","stream":true,"stream_options":{"include_usage":true}'
        b',"vllm_xargs":{"paceline_k":0}}'
    )


@pytest.mark.parametrize(
    ("body", "endpoint", "expected"),
    [
        ({}, Endpoint.CHAT_COMPLETIONS, True),
        ({"vllm_xargs": {"other": 1}}, Endpoint.COMPLETIONS, True),
        ({"vllm_xargs": {"paceline_k": 2}}, Endpoint.CHAT_COMPLETIONS, False),
        ({"vllm_xargs": [1]}, Endpoint.CHAT_COMPLETIONS, False),
        ({}, Endpoint.MESSAGES, False),
    ],
)
def test_whose_k_it_is(body: dict[str, object], endpoint: Endpoint, expected: bool) -> None:
    assert wants_k(endpoint, body) is expected
