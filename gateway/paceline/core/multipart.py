"""The form of a transcription: which model it names and where, so that the name can be exchanged.

The rest of the form, the audio above all, goes upstream byte for byte. Boundaries and headers are
read by python-multipart, which is what vLLM's server (starlette) reads them with, so both see the
same parts. Of fields that occur twice the last counts, as there (FastAPI takes the last value of
starlette's multi-dict); every one is rewritten, but for empty ones, which name nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from paceline.core.splices import Splice, spliced
from paceline.errors import InvalidRequest

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_PARTS = 1000
"""Of one form; starlette takes as many fields, and as many files. Headers are bounded by the parser
as they are there: 8 to a part, 4 KiB each."""

_YES = frozenset({b"1", b"true", b"t", b"yes", b"y", b"on"})
"""What pydantic, which vLLM reads its forms with, takes for true; in any case of letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a form says, and where in the body its models stand (start and end of each value)."""

    model: str
    stream: bool
    models: tuple[tuple[int, int], ...]


def read_form(raw: bytes, content_type: str) -> Form:
    """The form in a whole body with this Content-Type.

    Raises InvalidRequest for what is no valid form, has more than MAX_PARTS parts, or no model.
    """
    reader = _Reader()
    parser = MultipartParser(_boundary(content_type), reader.callbacks())
    try:
        parser.write(raw)
        parser.finalize()
    except FormParserError as error:
        raise InvalidRequest(f"the body is not a valid form: {error}") from None
    if not reader.ended:
        raise InvalidRequest("the body is not a valid form: it does not end with its boundary")
    model, stream = (_last(raw, reader.places[name]) for name in (b"model", b"stream"))
    if not model:
        raise InvalidRequest("the form's field model must name a model", param="model")
    models = tuple(place for place in reader.places[b"model"] if place != _EMPTY)
    return Form(model=_text(model), stream=stream.lower() in _YES, models=models)


def rewrite_form(raw: bytes, form: Form, *, model: str) -> bytes:
    """`raw`, which `form` was read from, with its model named `model`; `raw` itself if it is so."""
    name = model.encode()
    places = (place for place in form.models if raw[place[0] : place[1]] != name)
    return spliced(raw, [Splice(start, end, name) for start, end in places])


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise InvalidRequest("send the audio as a form: Content-Type: multipart/form-data")
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"us-ascii"):
        raise InvalidRequest("a form's charset may be utf-8")
    boundary = options.get(b"boundary", b"")
    if not 1 <= len(boundary) <= 70:  # RFC 2046
        raise InvalidRequest("the Content-Type of a form needs a boundary of 1 to 70 characters")
    return boundary


def _last(raw: bytes, places: list[tuple[int, int]]) -> bytes:
    """The last of a field's values; empty where there is none."""
    start, end = places[-1] if places else _EMPTY
    return raw[start:end]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("the form's field model is not UTF-8", param="model") from None


_EMPTY = (0, 0)


class _Reader:
    """Told by the parser what it finds. A whole body is written at once, so the data of a part is
    one piece of it; of a part without data nothing is told."""

    def __init__(self) -> None:
        self.places: dict[bytes, list[tuple[int, int]]] = {b"model": [], b"stream": []}
        self.ended = False
        self._num_parts = 0
        self._header: tuple[bytes, bytes] = (b"", b"")
        self._disposition = b""
        self._data = _EMPTY

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._part_begins,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_ends,
            "on_part_data": self._part_data,
            "on_part_end": self._part_ends,
            "on_end": self._ends,
        }

    def _part_begins(self) -> None:
        self._num_parts += 1
        if self._num_parts > MAX_PARTS:
            raise InvalidRequest(f"the form has more than {MAX_PARTS} parts")
        self._disposition, self._data = b"", _EMPTY

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header = (data[start:end].lower(), b"")

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0], data[start:end])

    def _header_ends(self) -> None:
        name, value = self._header
        if name == b"content-disposition":
            self._disposition = value

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        self._data = (start, end)

    def _part_ends(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name")
        if name is None:
            raise InvalidRequest("the form has a part without a name")
        if name not in self.places:
            return
        if b"filename" in options:
            raise InvalidRequest(f"{name.decode()} must be text, not a file", param=name.decode())
        self.places[name].append(self._data)

    def _ends(self) -> None:
        self.ended = True
