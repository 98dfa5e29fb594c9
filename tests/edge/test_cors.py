"""Pages of the origins named may call, and no others; who is not asked about them says nothing."""

from __future__ import annotations

from paceline.edge.cors import Cors

PAGE = "https://app.example.com"
ASKS = {"origin": PAGE, "access-control-request-method": "POST"}


def test_without_origins_nothing_is_said() -> None:
    assert Cors([]).headers({"origin": PAGE}) == []
    assert Cors([]).preflight(ASKS, b"POST") == []


def test_an_origin_is_compared_whole() -> None:
    cors = Cors([PAGE])
    assert (b"access-control-allow-origin", PAGE.encode()) in cors.headers({"origin": PAGE})
    for other in (PAGE + ".evil.example", "http://app.example.com", PAGE + ":8443", "null"):
        assert cors.headers({"origin": other}) == [(b"vary", b"origin")]


def test_a_preflight_allows_the_headers_it_was_asked_for() -> None:
    cors = Cors([PAGE])
    asked = {**ASKS, "access-control-request-headers": "authorization,content-type"}
    said = dict(cors.preflight(asked, b"POST, OPTIONS"))
    assert said[b"access-control-allow-methods"] == b"POST, OPTIONS"
    assert said[b"access-control-allow-headers"] == b"authorization,content-type"


def test_options_that_is_no_preflight_says_no_more_than_any_answer() -> None:
    cors = Cors([PAGE])
    asked = {"origin": PAGE}
    assert cors.preflight(asked, b"POST") == cors.headers(asked)
