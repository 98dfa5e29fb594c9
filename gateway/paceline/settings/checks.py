"""What the parts of a file must have in common: names, duplicates, keys, references.

Works on the plain data rather than on validated sections, so that a mistake in one place does not
hide those in others. What is not of the right type is passed over: `schema` has said so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import PydanticCustomError

from paceline.core.rules import Condition
from paceline.settings.conditions import conditions
from paceline.settings.fields import is_loopback, worker_url
from paceline.settings.names import EACH, Names, find, names_in, texts
from paceline.settings.problems import Path, Problems, did_you_mean, dotted
from paceline.settings.speculation_checks import check_speculation
from paceline.settings.values import Admin, ApiKey, Listen


def check(data: Any, problems: Problems) -> None:
    """Adds what is wrong between the parts of `data` to `problems`."""
    names = names_in(data)
    _check_planes(data, problems)
    _check_keys(data, problems)
    _check_models(data, problems)
    _check_rules(data, names, problems)
    _check_tests(data, names, problems)


def rule_name(written: Any, index: int) -> str:
    """A rule's name, or the one it gets: `rule-1` for the first."""
    return written if isinstance(written, str) and written else f"rule-{index + 1}"


def _check_planes(data: Any, problems: Problems) -> None:
    listen, admin, auth = (_section(data, name) for name in ("listen", "admin", "auth"))
    host, admin_host = listen.get("host", Listen().host), admin.get("host", Admin().host)
    if _is_remote(host) and not auth.get("keys") and auth.get("open") is not True:
        shown = problems.show(("listen", "host"), host)
        message = f"{shown} is open to other machines; add auth.keys, or write auth.open: true"
        problems.add(("listen", "host"), message)
    if auth.get("keys") and auth.get("open") is True:
        problems.add(("auth", "open"), "true would let everybody in, but there are keys; drop one")
    if _is_remote(admin_host) and not admin.get("key"):
        problems.add(("admin", "key"), "required when admin.host is not loopback")
    if host == admin_host or not _EVERY_HOST.isdisjoint((str(host), str(admin_host))):
        _check_ports(listen, admin, problems)


_EVERY_HOST = frozenset({"0.0.0.0", "::"})


def _check_ports(listen: dict[str, Any], admin: dict[str, Any], problems: Problems) -> None:
    port = admin.get("port", Admin().port)
    if port != 0 and port == listen.get("port", Listen().port):
        at = "admin" if "port" in admin else "listen"
        problems.add((at, "port"), f"{port} is the port of both listen and admin")


def _section(data: Any, name: str) -> dict[str, Any]:
    return next((value for _, value in find(data, name) if isinstance(value, dict)), {})


def _is_remote(host: Any) -> bool:
    return isinstance(host, str) and not is_loopback(host)


def _check_keys(data: Any, problems: Problems) -> None:
    _refuse_duplicates("key name", texts(data, "auth", "keys", EACH, "name"), problems)
    secrets = []
    for path, entry in find(data, "auth", "keys", EACH):
        if not isinstance(entry, dict):
            continue
        given = [name for name in ("key", "key_sha256") if entry.get(name) is not None]
        if len(given) != 1:
            problems.add(path, f"needs exactly one of key and key_sha256, not {len(given)}")
        secrets += [((*path, name), _digest(name, entry[name])) for name in given]
    _refuse_duplicates("secret", secrets, problems, show=False)


def _digest(name: str, value: Any) -> str:
    text = str(value)
    return ApiKey.digest(text).hex() if name == "key" else text.lower()


def _check_models(data: Any, problems: Problems) -> None:
    named = texts(data, "models", EACH, "name") + texts(data, "models", EACH, "aliases", EACH)
    _refuse_duplicates("model name or alias", named, problems)
    for path, model in find(data, "models", EACH):
        _refuse_duplicates("pool name", texts(model, "pools", EACH, "name", path=path), problems)
        urls = texts(model, "pools", EACH, "workers", EACH, "url", path=path)
        _refuse_duplicates("worker URL", _normal(urls), problems)
        _check_default_pool(model, path, problems)
        _check_per_request_k(model, path, problems)
        for at, raw in find(model, "pools", EACH, "speculation", path=path):
            if isinstance(raw, dict):
                check_speculation(raw, at, problems)
    _check_worker_keys(data, problems)


def _check_per_request_k(model: Any, path: Path, problems: Problems) -> None:
    for at, pool in find(model, "pools", EACH, path=path):
        if isinstance(pool, dict) and pool.get("speculation") is None:
            for worker_at, worker in find(pool, "workers", EACH, path=at):
                if isinstance(worker, dict) and worker.get("per_request_k") is True:
                    message = "true needs a pool that speculates; this one drafts nothing"
                    problems.add((*worker_at, "per_request_k"), message)


def _check_worker_keys(data: Any, problems: Problems) -> None:
    """Models may share a worker, which then is one worker and has one key."""
    first: dict[str, tuple[Path, Any]] = {}
    for path, worker in find(data, "models", EACH, "pools", EACH, "workers", EACH):
        for _, url in _normal(texts(worker, "url", path=path)):
            key = worker.get("key") or None
            other, its_key = first.setdefault(url, (path, key))
            if key != its_key and other[:2] != path[:2]:
                message = f"the same worker as {dotted(other)} with another key; a worker has one"
                problems.add((*path, "key"), message)


def _normal(urls: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for path, url in urls:
        try:
            yield path, worker_url(url)
        except PydanticCustomError:
            continue


def _check_default_pool(model: Any, path: Path, problems: Problems) -> None:
    if not isinstance(model, dict):
        return
    pools = dict.fromkeys(name for _, name in texts(model, "pools", EACH, "name"))
    default, at = model.get("default_pool"), (*path, "default_pool")
    if isinstance(default, str):
        _check_pool(default, at, pools, problems)
    elif default is None and len(pools) > 1:
        problems.add(at, f"required with more than one pool; one of {', '.join(pools)}")


def _check_pool(name: str, path: Path, pools: Iterable[str], problems: Problems) -> None:
    known = list(pools)
    if name not in known:
        shown = problems.show(path, name)
        problems.add(path, f"unknown pool {shown}{did_you_mean(name, known)}")


def _check_rules(data: Any, names: Names, problems: Problems) -> None:
    rules = [(path, rule) for path, rule in find(data, "routing", "rules", EACH)]
    rules = [(path, rule) for path, rule in rules if isinstance(rule, dict)]
    named = [((*path, "name"), rule_name(rule.get("name"), int(path[-1]))) for path, rule in rules]
    _refuse_duplicates("rule name", named, problems)
    for path, rule in rules:
        when, then = rule.get("when"), rule.get("then")
        read = conditions(when, (*path, "when"), names, problems) if isinstance(when, dict) else ()
        models = _models_for(read, names)
        if isinstance(then, dict):
            _check_then(then, (*path, "then"), _pools_of(models, names), problems)
            _check_forbidden(then, path, models, names, problems)


def _models_for(when: Iterable[Condition], names: Names) -> tuple[int, ...]:
    """The models that a rule may apply to, by their places in the file."""
    asked = [condition for condition in when if condition.field == "model"]
    return tuple(
        dict.fromkeys(
            index
            for name, index in names.models.items()
            if all((name in condition.any_of) != condition.negate for condition in asked)
        )
    )


def _pools_of(models: Iterable[int], names: Names) -> tuple[str, ...]:
    """The pools that a rule for these models may name; one that is for none may name any."""
    pools = (pool for index in models for pool in names.pools[index])
    return tuple(dict.fromkeys(pools)) or names.all_pools


def _check_forbidden(
    then: dict[str, Any], path: Path, models: tuple[int, ...], names: Names, problems: Problems
) -> None:
    """A rule may not forbid all pools of a model: for that model it would always be passed over."""
    asked = [(*path, "when", "model"), (*path, "when", "not", "model")]
    if any(map(problems.has_within, asked)):  # then it may well be for other models
        return
    forbidden = {name for _, name in texts(then, "forbid") + texts(then, "forbid", EACH)}
    for index in models:
        if names.pools[index] and forbidden.issuperset(names.pools[index]):
            model = problems.show(("models", index, "name"), names.first_name(index))
            other = ", or have when leave that model out" if len(models) > 1 else ""
            message = (
                f"forbids every pool of model {model}, where it could then never be carried out"
            )
            problems.add((*path, "then", "forbid"), f"{message}; leave a pool out{other}")


def _check_then(
    then: dict[str, Any], path: Path, pools: tuple[str, ...], problems: Problems
) -> None:
    given = [key for key in ("pool", "prefer", "forbid", "weight") if then.get(key) is not None]
    if len(given) != 1 and "priority" not in then:
        problems.add(path, f"needs exactly one of pool, prefer, forbid, weight, not {len(given)}")
    if then.get("forbid") == [] or then.get("weight") == {}:
        problems.add((*path, given[0]), "must name at least one pool")
    targets = [texts(then, key, path=path) for key in ("pool", "prefer", "forbid")]
    targets += [texts(then, "forbid", EACH, path=path)]
    for at, name in [found for listed in targets for found in listed]:
        _check_pool(name, at, pools, problems)
    _check_weight(then.get("weight"), (*path, "weight"), pools, problems)


def _check_weight(weight: Any, path: Path, pools: tuple[str, ...], problems: Problems) -> None:
    if not isinstance(weight, dict):
        return
    for name in weight:
        _check_pool(name, (*path, name), pools, problems)
    if weight and all(share == 0 for share in weight.values()):
        problems.add(path, "shares must add up to more than 0")


def _check_tests(data: Any, names: Names, problems: Problems) -> None:
    for path, test in find(data, "routing", "tests", EACH):
        for at, key in texts(test, "key", path=path):
            if key not in names.keys:
                shown = problems.show(at, key)
                problems.add(at, f"unknown key {shown}{did_you_mean(key, names.keys)}")
        for at, expect in find(test, "expect", path=path):
            if isinstance(expect, dict) and not any(expect.values()):
                problems.add(at, "needs workload, pool or both")
        _check_tested_pool(test, path, names, problems)


def _check_tested_pool(test: Any, path: Path, names: Names, problems: Problems) -> None:
    """The pool must be one of the model that the request names, or of the first."""
    asked = None
    for at, model in find(test, "request", "model", path=path):
        if not isinstance(model, str) or model not in names.models:
            shown = problems.show(at, model)
            problems.add(at, f"unknown model {shown}{did_you_mean(model, names.models)}")
            return
        asked = model
    for at, pool in texts(test, "expect", "pool", path=path):
        _check_pool(pool, at, names.pools_of(asked), problems)


def _refuse_duplicates(
    what: str, named: Iterable[tuple[Path, str]], problems: Problems, *, show: bool = True
) -> None:
    first: dict[str, Path] = {}
    for path, value in sorted(named, key=lambda item: problems.line(item[0])):
        if value in first:
            shown = f" {problems.show(path, value)}" if show else ""
            problems.add(path, f"the same {what}{shown} as {dotted(first[value])}")
        first.setdefault(value, path)
