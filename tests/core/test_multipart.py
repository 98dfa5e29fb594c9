"""A form's model found as the worker's server finds it, and exchanged: not a byte more changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from starlette.datastructures import FormData, Headers
from starlette.formparsers import MultiPartParser

from paceline.core.multipart import MAX_PARTS, Form, read_form, rewrite_form
from paceline.errors import InvalidRequest

BOUNDARY = b"----b7MA4YWxkTrZu0gW"
TYPE = "multipart/form-data; boundary=" + BOUNDARY.decode()


def part(disposition: bytes, value: bytes, *headers: bytes) -> bytes:
    lines = [b"Content-Disposition: form-data; " + disposition, *headers]
    return b"--" + BOUNDARY + b"\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + value + b"\r\n"


def field(name: bytes, value: bytes) -> bytes:
    return part(b'name="' + name + b'"', value)


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"


AUDIO = part(
    b'name="file"; filename="model.wav"',
    b"RIFF\r\n--\r\n\x00\xff model=x\r\n\r\n",
    b"Content-Type: audio/wav",
)


def starlettes(raw: bytes, content_type: str = TYPE) -> FormData:
    """What the worker's server makes of it."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield raw

    async def parsed() -> FormData:
        data = await MultiPartParser(Headers({"content-type": content_type}), stream()).parse()
        await data.close()
        return data

    return asyncio.run(parsed())


def test_the_model_is_found_and_exchanged() -> None:
    raw = form(AUDIO, field(b"model", b"whisper"), field(b"stream", b"true"))
    found = read_form(raw, TYPE)
    ((start, end),) = found.models
    assert raw[start:end] == b"whisper"
    assert found == Form(model="whisper", stream=True, models=((start, end),))
    expected = form(AUDIO, field(b"model", "größer/v3".encode()), field(b"stream", b"true"))
    assert rewrite_form(raw, found, model="größer/v3") == expected
    assert rewrite_form(raw, found, model="whisper") is raw


values = st.binary(max_size=12) | st.sampled_from(
    [b"\r\n", b"\r\n--", b"--", b"\r\n--" + BOUNDARY[:-1], b"\r", b"\n\r\n", b"a\r\n\r\nb"]
)
names = st.sampled_from([b"model", b"stream", b"file", b"prompt", b"Model", b"model[]"])


@given(
    fields=st.lists(st.tuples(names, values), max_size=5),
    model=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)
@settings(deadline=None, max_examples=200)
def test_both_servers_see_the_same_and_only_models_change(
    fields: list[tuple[bytes, bytes]], model: str
) -> None:
    fields = [*fields, (b"model", model.encode())]
    assume(not any(BOUNDARY in value for _, value in fields))
    raw = form(AUDIO, *(field(name, value) for name, value in fields))
    found = read_form(raw, TYPE)
    theirs = starlettes(raw)
    assert found.model == theirs["model"] == model
    assert found.stream == (str(theirs.get("stream", "")).lower() in TRUE)

    exchanged = rewrite_form(raw, found, model="up/7B")
    expected = ((name, b"up/7B" if name == b"model" and value else value) for name, value in fields)
    assert exchanged == form(AUDIO, *(field(name, value) for name, value in expected))


TRUE = ("1", "true", "t", "yes", "y", "on")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(word.encode(), True) for word in TRUE]
    + [(b"TRUE", True), (b"false", False), (b"0", False), (b"", False), (b"maybe", False)],
)
def test_stream_reads_as_the_worker_reads_it(value: bytes, expected: bool) -> None:
    raw = form(field(b"stream", value), field(b"model", b"m"))
    assert read_form(raw, TYPE).stream is expected
    assert read_form(form(field(b"model", b"m")), TYPE).stream is False


def test_of_two_models_the_last_counts_and_both_are_exchanged() -> None:
    raw = form(field(b"model", b"a"), AUDIO, field(b"model", b"b"))
    found = read_form(raw, TYPE)
    assert found.model == starlettes(raw)["model"] == "b"
    assert rewrite_form(raw, found, model="up") == form(
        field(b"model", b"up"), AUDIO, field(b"model", b"up")
    )


@pytest.mark.parametrize(
    "disposition",
    [b"name=model", b'NAME="model"', b'x="y"; name="model"', b' name = "model"', b'name="mod\\el"'],
)
def test_odd_headers_read_as_in_the_worker(disposition: bytes) -> None:
    raw = form(part(disposition, b"a"), AUDIO)
    try:
        theirs = starlettes(raw).get("model")
    except Exception:
        theirs = None
    try:
        ours: str | None = read_form(raw, TYPE).model
    except InvalidRequest:
        ours = None
    assert ours == theirs


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "does not end"),
        (b"{}", "not a valid form"),
        (form(AUDIO), "must name a model"),
        (form(field(b"model", b"")), "must name a model"),
        (form(field(b"model", b"a"), field(b"model", b"")), "must name a model"),
        (form(field(b"model", b"\xff")), "not UTF-8"),
        (form(part(b'name="model"; filename="m"', b"a")), "text, not a file"),
        (form(part(b'nom="model"', b"a")), "a part without a name"),
        (form(field(b"model", b"a"))[:-6], "does not end"),
        (field(b"model", b"a"), "does not end"),
        (form(field(b"model", b"a")).replace(b"; name", b"\r; name"), "not a valid form"),
        (form(part(b'name="model"', b"a", *[b"x: y"] * 20)), "not a valid form"),
        (form(part(b'name="model"', b"a", b"x: " + b"y" * 10_000)), "not a valid form"),
    ],
)
def test_what_is_no_form_with_a_model_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        read_form(raw, TYPE)


@pytest.mark.parametrize(
    ("content_type", "why"),
    [
        ("application/json", "multipart/form-data"),
        ("", "multipart/form-data"),
        ("multipart/form-data", "boundary"),
        ("multipart/form-data; boundary=", "boundary"),
        ("multipart/form-data; boundary=" + "b" * 71, "boundary"),
        (TYPE + "; charset=utf-16", "charset"),
    ],
)
def test_a_content_type_that_fits_no_form_is_refused(content_type: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        read_form(form(field(b"model", b"m")), content_type)


@pytest.mark.parametrize(
    "content_type",
    [TYPE.replace("=", '="') + '"', TYPE + "; charset=UTF-8", "Multipart/Form-Data" + TYPE[19:]],
)
def test_content_types_come_in_other_spellings(content_type: str) -> None:
    assert read_form(form(field(b"model", b"m")), content_type).model == "m"


def test_many_parts_and_no_more_than_that() -> None:
    many = [field(b"x", b"y")] * (MAX_PARTS - 1)
    assert read_form(form(*many, field(b"model", b"m")), TYPE).model == "m"
    with pytest.raises(InvalidRequest, match="more than 1000 parts"):
        read_form(form(*many, field(b"model", b"m"), field(b"x", b"y")), TYPE)


@given(raw=st.binary(max_size=200), cut=st.integers(0, 400), at=st.integers(0, 400))
@settings(deadline=None, max_examples=200)
def test_anything_else_is_refused_and_never_fails(raw: bytes, cut: int, at: int) -> None:
    whole = form(field(b"model", b"m"), AUDIO)
    for broken in (raw, whole[:cut], whole[:at] + raw + whole[at + len(raw) :]):
        with contextlib.suppress(InvalidRequest):
            assert read_form(broken, TYPE).model


def test_mebibytes_of_audio_pass_untouched() -> None:
    audio = part(b'name="file"; filename="a"', bytes(range(256)) * 2**14)
    raw = form(audio, field(b"model", b"m"))
    changed = rewrite_form(raw, read_form(raw, TYPE), model="up")
    assert changed == form(audio, field(b"model", b"up"))
