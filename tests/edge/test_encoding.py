"""Compressed bodies come out whole at any split, one member or several, and bombs do not."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.edge.encoding import FREE_BYTES, MAX_RATIO, Inflater, TooLong


def inflated(inflater: Inflater, pieces: list[bytes]) -> bytes:
    return b"".join(inflater.feed(piece) for piece in pieces)


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    st.lists(st.integers(0, 2000), max_size=6),
)
def test_every_split_of_every_number_of_members_is_the_same(
    members: list[bytes], cuts: list[int]
) -> None:
    packed = b"".join(map(gzip.compress, members))
    edges = sorted({0, *(min(cut, len(packed)) for cut in cuts), len(packed)})
    inflater = Inflater(b"gzip")
    assert inflated(inflater, [packed[a:b] for a, b in pairwise(edges)]) == b"".join(members)
    assert inflater.complete


def test_deflate_is_one_stream_and_nothing_behind_it() -> None:
    packed = zlib.compress(b"text")
    assert inflated(Inflater(b"deflate"), [packed]) == b"text"
    with pytest.raises(ValueError, match="behind"):
        inflated(Inflater(b"deflate"), [packed, packed])


def test_a_second_member_that_is_cut_is_not_complete() -> None:
    inflater = Inflater(b"gzip")
    inflated(inflater, [gzip.compress(b"one") + gzip.compress(b"two")[:-4]])
    assert not inflater.complete


@pytest.mark.parametrize("limit", [None, 2**30])
def test_a_bomb_is_refused_with_a_limit_and_without(limit: int | None) -> None:
    bomb = gzip.compress(b" " * (FREE_BYTES + 2**25))
    assert len(bomb) * MAX_RATIO < 2**25
    with pytest.raises(TooLong):
        inflated(Inflater(b"gzip", limit_bytes=limit), [bomb])


def test_the_limit_holds_to_the_byte() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert len(inflated(Inflater(b"gzip", limit_bytes=1000), [packed])) == 1000
    with pytest.raises(TooLong):
        inflated(Inflater(b"gzip", limit_bytes=999), [packed])
    with pytest.raises(TooLong):
        inflated(Inflater(None, limit_bytes=2), [b"ab", b"c"])


def test_an_encoding_that_nobody_offered_is_not_known() -> None:
    with pytest.raises(LookupError):
        Inflater(b"br")
