"""What the compiled reader of heads accepts, httptools reads in the same way; the rest is None."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.edge.heads import by_name
from paceline.edge.protocol import MAX_HEAD_BYTES, MAX_HEADERS
from through import absent

NUM_MUTANTS = 20_000

REQUEST = (
    b"POST /v1/chat/completions?a=b HTTP/1.1\r\nHost: paceline:8000\r\nUser-Agent: a (b; c)\r\n"
    b"X-Own:\t of  mine\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\n[1,2]"
)
RESPONSE = (
    b"HTTP/1.1 200 OK\r\ndate: now\r\nserver: uvicorn\r\nConnection: keep-alive\r\n"
    b"Content-Type: application/json\r\nX-Own: of mine\r\nContent-Length: 5\r\n\r\n[1,2]"
)
BARE = b"GET / HTTP/1.1\r\nHost: a\r\n"

NASTY = [
    b"\r\n", b"\r", b"\n", b"\0", b" ", b"\t", b":", b",", b";", b"\r\n ", b"\r\n\t", b"\r\n\r\n",
    b"\x0b", b"\x7f", b"\x80", b"\xff", b"-", b"+", b"0", b"1", b"9", b"0x", b"#", b"?", b"%", b"@",
    b"GET ", b" HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"100", b"204", b"304", b"close",
    b"keep-alive", b"chunked", b"Host: b\r\n", b"Content-Length: 3\r\n", b"content-length:5\r\n",
    b"Transfer-Encoding: chunked\r\n", b"tRANSFER-eNCODING:chunked\r\n", b"Upgrade: h2c\r\n",
    b"Connection: upgrade\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n",
    b"Proxy-Connection: close\r\n", b"Trailer: a\r\n", b"Keep-Alive: 5\r\n", b"Empty:\r\n",
]  # fmt: skip


class Parsed:
    """What httptools finds in the first message of some bytes."""

    def __init__(self, kind: type[Any], data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.url = self.body = b""
        self.error: Exception | None = None
        self.complete = self.keep_alive = self.upgrade = False
        self.num_heads = 0
        self._parser = kind(self)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.error = error

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.num_heads += 1
        self.version = self._parser.get_http_version()
        self.keep_alive = self._parser.should_keep_alive()
        self.upgrade = self._parser.should_upgrade()
        if isinstance(self._parser, httptools.HttpRequestParser):
            self.method = self._parser.get_method().decode()
        else:
            self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True

    def is_plain(self) -> bool:
        is_one = self.error is None and self.num_heads == 1
        return is_one and self.version == "1.1" and self.keep_alive and not self.upgrade


@pytest.fixture(scope="session")
def heads() -> ModuleType:
    try:
        from paceline.native import heads
    except ImportError:
        absent("paceline.native.heads is not built: there was no C compiler at `make setup`")
    return heads


def agrees_on_request(heads: ModuleType, data: bytes) -> bool:
    """Whether it was accepted."""
    found = heads.read_request(data)
    if found is None:
        return False
    method, url, named, end, length = found
    assert data.find(b"\r\n\r\n") + 4 == end <= MAX_HEAD_BYTES
    body = data[end : end + length]
    parsed = Parsed(httptools.HttpRequestParser, data[: end + length])
    assert parsed.is_plain()
    assert (parsed.method, parsed.url, parsed.body) == (method, url, body)
    assert parsed.complete is (len(body) == length)
    assert list(by_name(parsed.headers).items()) == list(named.items())
    assert len(parsed.headers) == len(named)
    return True


def agrees_on_response(heads: ModuleType, data: bytes) -> bool:
    """Whether it was accepted."""
    found = heads.read_response(data)
    if found is None:
        return False
    status, headers, body = found
    parsed = Parsed(httptools.HttpResponseParser, data)
    assert parsed.is_plain()
    assert parsed.complete
    assert (parsed.status, parsed.headers, parsed.body) == (status, headers, body)
    return True


Agrees = Callable[[ModuleType, bytes], bool]
KINDS = pytest.mark.parametrize(
    ("agrees", "usual"),
    [(agrees_on_request, REQUEST), (agrees_on_response, RESPONSE)],
    ids=["request", "response"],
)


# -- what is accepted ------------------------------------------------------------------------------


@KINDS
def test_the_usual_is_read(heads: ModuleType, agrees: Agrees, usual: bytes) -> None:
    assert agrees(heads, usual)


def test_a_request_as_it_is_read(heads: ModuleType) -> None:
    named = {
        "host": "paceline:8000",
        "user-agent": "a (b; c)",
        "x-own": "of  mine",
        "connection": "Keep-Alive",
        "content-length": "5",
    }
    url = b"/v1/chat/completions?a=b"
    assert heads.read_request(REQUEST) == ("POST", url, named, len(REQUEST) - 5, 5)


def test_without_a_length_a_request_has_no_body(heads: ModuleType) -> None:
    data = BARE + b"\r\n"
    assert heads.read_request(data) == ("GET", b"/", {"host": "a"}, len(data), 0)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_methods(heads: ModuleType, method: str) -> None:
    data = REQUEST.replace(b"POST", method.encode())
    assert agrees_on_request(heads, data)
    assert heads.read_request(data)[0] == method


@pytest.mark.parametrize("data", [REQUEST[:-5], REQUEST[:-1], REQUEST + b"GET", REQUEST + b"\0"])
def test_a_request_may_go_on_or_have_something_behind_it(heads: ModuleType, data: bytes) -> None:
    assert agrees_on_request(heads, data)


@pytest.mark.parametrize("status", [200, 201, 400, 404, 429, 500, 503, 599])
@pytest.mark.parametrize("reason", [b"", b"Not Found"])
def test_statuses(heads: ModuleType, status: int, reason: bytes) -> None:
    assert agrees_on_response(heads, RESPONSE.replace(b"200 OK", b"%d %b" % (status, reason)))


# -- what is left to httptools ---------------------------------------------------------------------

UNUSUAL_FIELDS = {
    "a length and chunks": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    "chunks and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n",
    "chunks in odd case": b"tRaNsFeR-eNcOdInG: cHuNkEd\r\n",
    "an encoding that is none": b"Transfer-Encoding: identity\r\n",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 4\r\n",
    "two equal lengths": b"Content-Length: 3\r\ncontent-length: 3\r\n",
    "a list of lengths": b"Content-Length: 3, 3\r\n",
    "a length with a plus": b"Content-Length: +3\r\n",
    "a length with a minus": b"Content-Length: -3\r\n",
    "a hexadecimal length": b"Content-Length: 0x3\r\n",
    "a length in two parts": b"Content-Length: 1 3\r\n",
    "a length with a blank behind it": b"Content-Length: 3 \r\n",
    "a length with an underscore": b"Content-Length: 1_0\r\n",
    "no length": b"Content-Length:\r\n",
    "an endless length": b"Content-Length: 1000000000000000\r\n",
    "an end of the connection": b"Connection: close\r\n",
    "a list of options": b"Connection: keep-alive, upgrade\r\n",
    "an upgrade": b"Upgrade: h2c\r\n",
    "an expectation": b"Expect: 100-continue\r\n",
    "trailers": b"Trailer: a\r\n",
    "a word to proxies": b"Proxy-Connection: keep-alive\r\n",
    "a folded value": b"A: b\r\n c\r\n",
    "a fold with a tab": b"A: b\r\n\tc\r\n",
    "a fold at first": b" A: b\r\n",
    "a blank before the colon": b"Content-Length : 3\r\n",
    "a blank in a name": b"A b: c\r\n",
    "no name": b": b\r\n",
    "no colon": b"A\r\n",
    "no value": b"A:\r\n",
    "a blank behind a value": b"A: b \r\n",
    "a bare LF": b"A: b\nContent-Length: 3\r\n",
    "a bare CR": b"A: b\rContent-Length: 3\r\n",
    "CR CR LF": b"A: b\r\r\n",
    "NUL in a value": b"A: b\0c\r\n",
    "NUL in a name": b"A\0: b\r\n",
    "DEL": b"A: b\x7f\r\n",
    "a control character": b"A: b\x01c\r\n",
    "a value that is not ASCII": b"A: \xe9\r\n",
    "a name that is not ASCII": b"\xe9: b\r\n",
    "a name in quotes": b'"A": b\r\n',
    "a long name": b"a" * 65 + b": b\r\n",
}


@pytest.mark.parametrize("fields", UNUSUAL_FIELDS.values(), ids=UNUSUAL_FIELDS.keys())
def test_unusual_fields_are_not_read(heads: ModuleType, fields: bytes) -> None:
    assert heads.read_request(BARE + b"\r\n") is not None
    assert heads.read_request(BARE + fields + b"\r\nabc") is None
    assert heads.read_request(b"GET / HTTP/1.1\r\n" + fields + b"Host: a\r\n\r\nabc") is None


@pytest.mark.parametrize("fields", [b"Host: a\r\n", b"A: b\r\na: c\r\n"])
def test_nor_are_names_that_a_request_has_twice(heads: ModuleType, fields: bytes) -> None:
    assert heads.read_request(BARE + fields + b"\r\n") is None


def test_without_a_host_it_is_no_plain_request(heads: ModuleType) -> None:
    assert heads.read_request(b"GET / HTTP/1.1\r\nAccept: a\r\n\r\n") is None


@pytest.mark.parametrize("fields", UNUSUAL_FIELDS.values(), ids=UNUSUAL_FIELDS.keys())
def test_nor_are_they_of_a_response(heads: ModuleType, fields: bytes) -> None:
    length = b"" if b"Length: " in fields else b"Content-Length: 3\r\n"
    assert heads.read_response(b"HTTP/1.1 200 OK\r\n" + length + fields + b"\r\nabc") is None


@pytest.mark.parametrize(
    "line",
    [
        b"get / HTTP/1.1", b"GET  / HTTP/1.1", b"GET\t/ HTTP/1.1", b" GET / HTTP/1.1",
        b"\r\nGET / HTTP/1.1", b"GETS / HTTP/1.1", b"CONNECT / HTTP/1.1", b"TRACE / HTTP/1.1",
        b"PRI * HTTP/2.0", b"GET / HTTP/1.0", b"GET / HTTP/2.0", b"GET / HTTP/1.10",
        b"GET / HTTP/1,1", b"GET / http/1.1", b"GET / HTTP/1.1 ", b"GET /  HTTP/1.1",
        b"GET / a HTTP/1.1", b"GET /", b"GET http://a/ HTTP/1.1", b"GET a HTTP/1.1",
        b"GET * HTTP/1.1", b"GET  HTTP/1.1", b"GET /\x80 HTTP/1.1", b"GET /\x7f HTTP/1.1",
        b"GET /\0 HTTP/1.1", b"GET / ICE/1.1", b"GET / RTSP/1.1",
    ],
)  # fmt: skip
def test_unusual_request_lines_are_not_read(heads: ModuleType, line: bytes) -> None:
    assert heads.read_request(line + b"\r\nHost: a\r\n\r\n") is None


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/1.0 200 OK", b"HTTP/2.0 200 OK", b"http/1.1 200 OK", b"HTTP/1.1  200 OK",
        b"HTTP/1.1 200", b"HTTP/1.1 20 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1 +20 OK",
        b"HTTP/1.1 100 Continue", b"HTTP/1.1 101 Other", b"HTTP/1.1 204 Nothing",
        b"HTTP/1.1 304 As Before", b"HTTP/1.1 600 What", b"HTTP/1.1 200 \0", b"HTTP/1.1 200 \xe9",
        b"HTTP/1.1 200 O\rK", b"HTTP/1.1 200 O\nK", b"\r\nHTTP/1.1 200 OK",
    ],
)  # fmt: skip
def test_unusual_status_lines_are_not_read(heads: ModuleType, line: bytes) -> None:
    assert heads.read_response(line + b"\r\nContent-Length: 1\r\n\r\na") is None


def test_a_request_that_has_not_come_is_not_read(heads: ModuleType) -> None:
    end = REQUEST.index(b"\r\n\r\n") + 4
    for size in range(end):
        assert heads.read_request(REQUEST[:size]) is None


def test_nor_is_a_response_that_is_not_whole_or_has_something_behind_it(heads: ModuleType) -> None:
    for size in range(len(RESPONSE)):
        assert heads.read_response(RESPONSE[:size]) is None
    for behind in (b"\r\n", b"\0", b"H", RESPONSE):
        assert heads.read_response(RESPONSE + behind) is None


def test_nor_is_one_without_a_length(heads: ModuleType) -> None:
    assert heads.read_response(RESPONSE.replace(b"Content-Length: 5\r\n", b"")) is None


def test_long_heads_are_the_parsers(heads: ModuleType) -> None:
    assert heads.read_request(BARE + b"A: " + b"b" * MAX_HEAD_BYTES + b"\r\n\r\n") is None
    fields = b"".join(b"a%d: b\r\n" % number for number in range(MAX_HEADERS))
    assert heads.read_request(BARE + fields + b"\r\n") is None


@pytest.mark.parametrize("data", [b"", "GET", bytearray(BARE + b"\r\n"), None])
def test_only_bytes_are_read(heads: ModuleType, data: Any) -> None:
    assert heads.read_request(data) is None
    assert heads.read_response(data) is None


# -- laws ------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        b"Host",
        b"Content-Length",
        b"Connection",
        b"Accept",
        b"X-Own",
        b"te",
        b"a_b",
        b"!#$%&'*+-.^`|~",
    ]
) | st.from_regex(rb"[A-Za-z0-9-]{1,70}", fullmatch=True)
VALUES = st.sampled_from(
    [b"a", b"5", b"05", b"keep-alive", b"KEEP-ALIVE", b"close", b" 5", b"\ta\tb", b"a b", b'"a"']
) | st.binary(max_size=12)
FIELDS = st.lists(
    st.tuples(NAMES, st.sampled_from([b":", b": ", b":\t "]), VALUES).map(b"".join), max_size=8
)
BODIES = st.binary(max_size=8)


@settings(max_examples=500, deadline=None)
@given(
    line=st.sampled_from([b"POST /a HTTP/1.1", b"GET /?#a HTTP/1.1"])
    | st.binary(max_size=6).map(lambda part: b"GET /" + part + b" HTTP/1.1"),
    fields=FIELDS,
    body=BODIES,
)
def test_requests_are_read_alike(
    heads: ModuleType, line: bytes, fields: list[bytes], body: bytes
) -> None:
    agrees_on_request(heads, b"\r\n".join([line, b"Host: a", *fields, b"", body]))


@settings(max_examples=500, deadline=None)
@given(
    line=st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.1 503 "])
    | st.binary(max_size=6).map(lambda part: b"HTTP/1.1 404 " + part),
    fields=FIELDS,
    body=BODIES,
)
def test_responses_are_read_alike(
    heads: ModuleType, line: bytes, fields: list[bytes], body: bytes
) -> None:
    length = b"Content-Length: %d" % len(body)
    agrees_on_response(heads, b"\r\n".join([line, length, *fields, b"", body]))


def mutant(data: bytes, chance: random.Random) -> bytes:
    """`data` with one to three things wrong with it."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.choice([0, 0, 1, 1, 2, 8]))
        piece = chance.choice([b"", chance.choice(NASTY), bytes([chance.randrange(256)])])
        if chance.random() < 0.3:  # a piece of it once more, elsewhere
            start = chance.randrange(len(data) + 1)
            piece = data[start : start + chance.randrange(30)]
        if chance.random() < 0.3:  # where lines begin
            at = to = data.find(b"\r\n", at) + 2
        data = data[:at] + piece + data[to:]
    return data


def num_accepted(heads: ModuleType, agrees: Agrees, usual: bytes, chance: random.Random) -> int:
    return sum(agrees(heads, mutant(usual, chance)) for _ in range(NUM_MUTANTS))


@KINDS
def test_whatever_is_changed_both_read_the_same(
    heads: ModuleType, agrees: Agrees, usual: bytes
) -> None:
    accepted = num_accepted(heads, agrees, usual, random.Random(usual))
    assert NUM_MUTANTS / 20 < accepted < NUM_MUTANTS
