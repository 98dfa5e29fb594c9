"""Validated sections → the frozen values that the gateway runs on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paceline.core.rules import Action, Rule
from paceline.core.types import Endpoint, Workload
from paceline.settings.checks import rule_name
from paceline.settings.conditions import conditions
from paceline.settings.names import Names, names_in
from paceline.settings.problems import Problems
from paceline.settings.schema import (
    AdminSection,
    AuthSection,
    FileSection,
    KeySection,
    ModelSection,
    PoolSection,
    RoutingTestSection,
    RuleSection,
    ThenSection,
    WorkerSection,
)
from paceline.settings.speculation import speculation
from paceline.settings.values import (
    Admin,
    ApiKey,
    Auth,
    Learning,
    Limits,
    Listen,
    Log,
    Mode,
    ModelSettings,
    PoolSettings,
    RoutingTest,
    Settings,
    Timeouts,
    WorkerSettings,
)


def build(file: FileSection, data: Any, problems: Problems, folder: Path) -> Settings:
    """The settings; `data` is what `file` was made from, and `problems` has its line numbers.

    Paths in the file are relative to `folder`.
    """
    names = names_in(data)
    return Settings(
        listen=Listen(
            host=file.listen.host,
            port=file.listen.port,
            metrics=file.listen.metrics,
            cors_origins=tuple(file.listen.cors_origins),
        ),
        admin=_admin(file.admin),
        auth=_auth(file.auth),
        models=tuple(_model(section) for section in file.models),
        mode=Mode(file.routing.mode),
        learning=_learning(file, folder),
        log=Log(decisions=_path(folder, file.log.decisions)),
        rules=tuple(
            _rule(section, index, names, problems)
            for index, section in enumerate(file.routing.rules)
        ),
        tests=tuple(
            _test(section, problems.line(("routing", "tests", index)))
            for index, section in enumerate(file.routing.tests)
        ),
        limits=Limits(body_bytes=file.limits.body_bytes),
        timeouts=Timeouts(**file.timeouts.model_dump()),
    )


def _admin(section: AdminSection) -> Admin:
    return Admin(host=section.host, port=section.port, key=section.key)


def _learning(file: FileSection, folder: Path) -> Learning | None:
    section = file.learning
    if section is None:
        return Learning() if file.routing.mode == Mode.ADAPTIVE else None
    return Learning(
        state=_path(folder, section.state),
        half_life_s=section.half_life_s,
        exploration=section.exploration,
        replay=section.replay,
    )


def _path(folder: Path, written: str | None) -> Path | None:
    return None if written is None else folder / written


def _auth(section: AuthSection) -> Auth:
    return Auth(keys=tuple(_key(key) for key in section.keys), open=section.open)


def _key(section: KeySection) -> ApiKey:
    if section.key is not None:
        digest = ApiKey.digest(section.key)
    else:
        digest = bytes.fromhex(section.key_sha256 or "")
    return ApiKey(name=section.name, sha256=digest, debug=section.debug)


def _model(section: ModelSection) -> ModelSettings:
    return ModelSettings(
        name=section.name,
        aliases=tuple(section.aliases),
        upstream_name=section.upstream_name or section.name,
        default_pool=section.default_pool or section.pools[0].name,
        pools=tuple(_pool(pool) for pool in section.pools),
    )


def _pool(section: PoolSection) -> PoolSettings:
    return PoolSettings(
        name=section.name,
        speculation=speculation(section.speculation) if section.speculation else None,
        workers=tuple(map(_worker, section.workers)),
        max_num_seqs=section.max_num_seqs,
    )


def _worker(section: WorkerSection) -> WorkerSettings:
    return WorkerSettings(url=section.url, key=section.key, per_request_k=section.per_request_k)


def _rule(section: RuleSection, index: int, names: Names, problems: Problems) -> Rule:
    when = conditions(section.when, ("routing", "rules", index, "when"), names, problems)
    name = rule_name(section.name, index)
    return Rule(name=name, when=when, then=_action(section.then))


def _action(section: ThenSection) -> Action:
    return Action(
        pool=section.pool,
        prefer=section.prefer,
        forbid=tuple(section.forbid or ()),
        weight=section.weight or {},
    )


def _test(section: RoutingTestSection, line: int) -> RoutingTest:
    workload = section.expect.workload
    return RoutingTest(
        request=section.request,
        endpoint=Endpoint(section.endpoint),
        headers={name.lower(): value for name, value in section.headers.items()},
        key=section.key,
        expect_workload=None if workload is None else Workload(workload),
        expect_pool=section.expect.pool,
        line=line,
    )
