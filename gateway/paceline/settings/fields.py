"""The types of single values in the configuration, with messages that say what would be right.

A validator raises one of three errors, which `translate` turns into a problem's line:
`must` (the value is shown), `choice` (the nearest right one is shown) and `refused` (as it is).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,255}\Z")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252}[A-Za-z0-9_])?\Z")
_SECRET = re.compile(r"[\x21-\x7e]{1,512}\Z")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}\Z")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<rest>.*)\Z", re.I | re.DOTALL)
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(:(?P<port>[^:]*))?\Z")
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?)(:(?P<port>[0-9]{1,5}))?\Z"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_PORT = re.compile(r"[0-9]{1,5}\Z")


class Section(BaseModel):
    """One mapping of the file. Strict: `"8080"` is no number, `1` is not true, keys are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def must(message: str) -> PydanticCustomError:
    return PydanticCustomError("must", "{text}", {"text": message})


def refused(message: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{text}", {"text": message})


def _matching(pattern: re.Pattern[str], message: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not pattern.match(text):
            raise must(message)
        return text

    return check


def one_of(what: str, choices: Iterable[str]) -> AfterValidator:
    known = list(choices)

    def check(text: str) -> str:
        if text not in known:
            raise PydanticCustomError("choice", "{what}", {"what": what, "choices": known})
        return text

    return AfterValidator(check)


class NotOffered(BeforeValidator):
    """On a key that is known only to be refused: no message may propose it."""


def offered(section: type[BaseModel]) -> tuple[str, ...]:
    """The keys of `section` that can be used."""
    return tuple(
        name
        for name, field in section.model_fields.items()
        if not any(isinstance(item, NotOffered) for item in field.metadata)
    )


def not_yet(*allowed: Any) -> NotOffered:
    """For a key whose behaviour does not exist: nothing but the values that say so."""

    def check(value: Any) -> Any:
        if any(type(value) is type(off) and value == off for off in allowed):
            return value
        only = f"; it can only be {' or '.join(map(_yaml, allowed))}" if allowed else ""
        raise refused(f"not in this version{only}")

    return NotOffered(check)


def _yaml(value: Any) -> str:
    return "null" if value is None else str(value).lower()


def host(text: str) -> str:
    """A host name or address to listen on."""
    if not is_host(text):
        raise must('must be a host name or address such as "127.0.0.1"')
    return text


def is_host(text: str) -> bool:
    return _HOST.match(text) is not None or _address(text) is not None


def is_loopback(text: str) -> bool:
    """Whether only this machine can reach a listener on that host."""
    address = _address(text)
    return text.lower() == "localhost" if address is None else address.is_loopback


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def worker_url(text: str) -> str:
    """`text` as `scheme://host[:port]`: in lower case, IPv6 in its short form, no slash at the end.

    Raises PydanticCustomError, a ValueError, that says what exactly is wrong.
    """
    found = _URL.match(text)
    if found is None:
        raise must("must begin with http:// or https://")
    _refuse_excess(found["authority"], found["rest"])
    parts = _AUTHORITY.match(found["authority"])
    if parts is None:
        raise must("must have one colon at most, before the port, and an IPv6 address in brackets")
    return f"{found['scheme'].lower()}://{_url_host(parts['host'])}{_url_port(parts['port'])}"


def _refuse_excess(authority: str, rest: str) -> None:
    """What a URL may have and a worker's address may not."""
    if "@" in authority:
        excess = "a user or password (its key has a field of its own in the configuration)"
    elif "?" in rest or "#" in rest:
        excess = "a query or fragment"
    elif rest not in ("", "/"):
        excess = "a path (the gateway adds /v1/… itself)"
    else:
        return
    raise must(f"must be http(s)://host[:port] without {excess}")


def _url_host(text: str) -> str:
    inner = text.removeprefix("[").removesuffix("]")
    if inner != text:
        address = _address(inner)
        if address is None or address.version != 6:
            raise must("must have an IPv6 address between its brackets")
        return f"[{address}]"
    if not is_host(text):
        raise must("must have a host name or address after ://")
    return text.lower()


def _url_port(digits: str | None) -> str:
    if digits is None:
        return ""
    if not _PORT.match(digits) or not 1 <= int(digits) <= 65535:
        raise must("must have a port from 1 to 65535 after the colon")
    return f":{int(digits)}"


def origin(text: str) -> str:
    """A page's origin, exactly as a browser sends it, since it is compared as a whole."""
    found = _ORIGIN.match(text)
    if found is None:
        raise must(
            'must be an origin such as "https://app.example.com", in lower case, without a path; '
            '"*" is not possible'
        )
    if found["port"] is not None and found["port"] == _DEFAULT_PORTS.get(found["scheme"]):
        raise must(f"must leave out :{found['port']}, as browsers do")
    return text


def _no_key(text: str | None) -> str | None:
    return text or None


def secret(text: str) -> str:
    if not _SECRET.match(text):
        raise refused("must be 1 to 512 printable ASCII characters without spaces")
    return text


def _sha256(text: str) -> str:
    if not _SHA256.match(text):
        raise refused("must be 64 hexadecimal digits, such as sha256sum prints")
    return text.lower()


def _positive(number: float) -> float:
    if number <= 0:
        raise must("must be more than 0")
    return number


def is_header_name(text: str) -> bool:
    return _HEADER.match(text) is not None


DAY_S: Final = 86400.0

Name = Annotated[
    str,
    AfterValidator(
        _matching(_NAME, "must be 1 to 64 letters, digits, dots, _ or -, a letter or digit first")
    ),
]
ModelName = Annotated[
    str,
    AfterValidator(_matching(_MODEL, 'must be a model\'s name such as "meta-llama/Llama-3.1-8B"')),
]
Host = Annotated[str, AfterValidator(host)]
Origin = Annotated[str, AfterValidator(origin)]
WorkerUrl = Annotated[str, AfterValidator(worker_url)]
Secret = Annotated[str, AfterValidator(secret)]
OptionalSecret = Annotated[Secret | None, BeforeValidator(_no_key)]
"""An empty text is no key, so that `"${WORKER_KEY:-}"` can be written where a key is optional."""
Sha256 = Annotated[str, AfterValidator(_sha256)]
ListenPort = Annotated[int, Field(ge=0, le=65535)]
"""0 lets the system choose a free port, as tests do."""
WaitS = Annotated[float, AfterValidator(_positive), Field(le=DAY_S)]
GraceS = Annotated[float, Field(ge=0, le=DAY_S)]
