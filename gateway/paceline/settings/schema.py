"""The file's shape: which keys there are, and what each may hold by itself.

What several keys must have in common is `checks`' part, what `when` may say `conditions`', and
what vLLM demands of `speculation` stands in `speculation`. Keys of the design whose behaviour does
not exist yet are `not_yet`: known, and refused with that reason, so that nothing is ever ignored.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from paceline.core.types import Endpoint, Workload
from paceline.settings.fields import (
    DAY_S,
    GraceS,
    Host,
    ListenPort,
    ModelName,
    Name,
    OptionalSecret,
    Origin,
    Secret,
    Section,
    Sha256,
    WaitS,
    WorkerUrl,
    not_yet,
    one_of,
)
from paceline.settings.speculation import SpeculationSection, null_or_section
from paceline.settings.values import Mode


class ListenSection(Section):
    host: Host = "127.0.0.1"
    port: ListenPort = 8080
    metrics: bool = False
    cors_origins: list[Origin] = Field(default_factory=list)


class AdminSection(Section):
    host: Host = "127.0.0.1"
    port: ListenPort = 8081
    key: OptionalSecret = None
    writable: Annotated[bool, not_yet(False)] = False


class KeySection(Section):
    name: Name
    key: Secret | None = None
    key_sha256: Sha256 | None = None
    debug: bool = False


class AuthSection(Section):
    keys: list[KeySection] = Field(default_factory=list)
    open: bool = False


class WorkerSection(Section):
    url: WorkerUrl
    key: OptionalSecret = None
    per_request_k: bool = False


class PoolSection(Section):
    name: Name
    speculation: Annotated[SpeculationSection | None, BeforeValidator(null_or_section)] = None
    workers: Annotated[list[WorkerSection], Field(min_length=1)]
    max_num_seqs: Annotated[int, Field(ge=1)] | None = None


class ModelSection(Section):
    name: ModelName
    aliases: list[ModelName] = Field(default_factory=list)
    upstream_name: ModelName | None = None
    default_pool: str | None = None
    pools: Annotated[list[PoolSection], Field(min_length=1)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class ThenSection(Section):
    pool: str | None = None
    prefer: str | None = None
    forbid: Annotated[list[str], BeforeValidator(_listed)] | None = None
    weight: dict[str, Annotated[float, Field(ge=0, le=1e6)]] | None = None
    priority: Annotated[None, not_yet()] = None


class RuleSection(Section):
    name: Name | None = None
    when: dict[str, Any] = Field(default_factory=dict)
    then: ThenSection


class ExpectSection(Section):
    workload: Annotated[str, one_of("workload", Workload)] | None = None
    pool: str | None = None


class RoutingTestSection(Section):
    request: dict[str, Any]
    endpoint: Annotated[str, one_of("endpoint", Endpoint)] = Endpoint.CHAT_COMPLETIONS.value
    headers: dict[str, str] = Field(default_factory=dict)
    key: str | None = None
    expect: ExpectSection


class RoutingSection(Section):
    mode: Annotated[str, one_of("mode", Mode)] = Mode.STATIC.value
    shadow: Annotated[bool, not_yet(False)] = False
    rules: list[RuleSection] = Field(default_factory=list)
    tests: list[RoutingTestSection] = Field(default_factory=list)


class LimitsSection(Section):
    body_bytes: Annotated[int, Field(ge=1, le=2**30)] = 32 * 2**20
    queue: Annotated[None, not_yet(None)] = None
    queue_timeout_s: Annotated[None, not_yet(None)] = None
    rpm: Annotated[None, not_yet(None)] = None
    tpm: Annotated[None, not_yet(None)] = None


class TimeoutsSection(Section):
    connect_s: WaitS = 5.0
    hold_status_s: GraceS = 10.0
    first_byte_s: WaitS = 600.0
    between_bytes_s: WaitS = 120.0
    shutdown_s: GraceS = 30.0


class LearningSection(Section):
    state: Annotated[str, Field(min_length=1)] | None = None
    half_life_s: Annotated[float, Field(ge=1, le=30 * DAY_S)] = 1800.0
    exploration: Annotated[float, Field(ge=0, le=0.5)] = 0.02
    replay: bool = True


class LogSection(Section):
    decisions: Annotated[str, Field(min_length=1)] | None = None
    content: Annotated[bool, not_yet(False)] = False


class FileSection(Section):
    """The whole file."""

    listen: ListenSection = ListenSection()
    admin: AdminSection = AdminSection()
    auth: AuthSection = AuthSection()
    models: Annotated[list[ModelSection], Field(min_length=1)]
    routing: RoutingSection = RoutingSection()
    limits: LimitsSection = LimitsSection()
    timeouts: TimeoutsSection = TimeoutsSection()
    learning: LearningSection | None = None
    log: LogSection = LogSection()
