"""Settings: ``--set LEARNER.PARAMETER=VALUE``, as texts and applied to tables of parameters."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench_core.contracts import name_of
from bench_core.errors import UsageError, blaming, option, unknown
from bench_core.planning.invocation import toml_literal
from bench_core.planning.request import RunRequest
from bench_core.plugins import Registry


class GivenAs(str):
    """The text of a setting that was given otherwise: ``given`` is how, for messages."""

    given: str

    @classmethod
    def of(cls, text: str, given: str) -> "GivenAs":
        """The text ``miser.trees=3``, given as ``learners={'miser': {'trees': 3}}``."""
        made = cls(text)
        made.given = given
        return made


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting taken apart; ``given`` is how its user wrote it."""

    owner: str
    path: tuple[str, ...]
    value: Any
    given: str


def parse_setting(text: str) -> Setting:
    """Read ``miser.trees=300``: the value is a TOML literal, a bare word is a string."""
    given = text.given if isinstance(text, GivenAs) else option("set", text)
    name, equals, value = text.partition("=")
    owner, *path = [part.strip() for part in name.split(".")]
    if not equals or not owner or not path or not all(path):
        raise UsageError(f"{given}: write it as LEARNER.PARAMETER=VALUE, as miser.trees=300")
    return Setting(owner, tuple(path), _value(value.strip(), text), given)


def _value(text: str, setting: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        beginning = option("set", f"{setting[:20]}...")
        raise UsageError(f"{beginning}: {error}; correct it") from error
    return read["value"] if set(read) == {"value"} else text


def with_setting(table: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of a table in which the value at a (nested) path is replaced."""
    key, *rest = path
    if not rest:
        return {**table, key: value}
    inner = table.get(key, {})
    if isinstance(inner, str):
        inner = {"learner": inner}
    if isinstance(inner, list):  # a grid of learners: the setting holds for each
        changed: Any = [with_setting({key: one}, path, value)[key] for one in inner]
        return {**table, key: changed}
    if not isinstance(inner, Mapping):
        raise UsageError(f"parameter {key!r} holds no learner, so {'.'.join(rest)} means nothing")
    return {**table, key: with_setting(inner, tuple(rest), value)}


def read_settings(request: RunRequest, registry: Registry) -> tuple[Setting, ...]:
    """The settings of a request; UsageError for an owner that is neither a learner nor a data
    set."""
    instances = {name_of(x) for x in request.learners if not isinstance(x, str)}
    known = [*registry.learners, *registry.datasets, *instances]
    found = []
    for setting in map(parse_setting, request.settings):
        with blaming(setting.given):
            owner = registry.learner_name(setting.owner)
            if owner not in known:
                raise UsageError(unknown("learner or data set", owner, known))
        found.append(replace(setting, owner=owner))
    return tuple(found)


def check_owners(
    settings: Sequence[Setting], learners: Sequence[str], datasets: Iterable[str]
) -> None:
    """Refuse a setting for a learner or data set that is not in the run."""
    used = {*learners, *datasets}
    for setting in settings:
        if setting.owner in used:
            continue
        what = f"{setting.given}: {setting.owner!r} is not in this run"
        for other in settings:
            if other.value == setting.owner:  # early-exit.base=imported: set what stands there
                path = other.path[:-1] if other.path[-1] == "learner" else other.path
                inner = ".".join((other.owner, *path, *setting.path))
                remedy = option("set", f"{inner}={toml_literal(setting.value)}")
                raise UsageError(f"{what} by itself: write {remedy}")
        listed = f"(learners: {', '.join(learners)})"
        add = option("learners")
        raise UsageError(f"{what} {listed}. Add it with {add}, or drop the option")
