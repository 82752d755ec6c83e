"""Settings: ``--set LEARNER.PARAMETER=VALUE``, as texts and applied to tables of parameters."""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench_core.errors import UsageError, option, unknown
from bench_core.planning.request import RunRequest
from bench_core.plugins import Registry


@dataclass(frozen=True, slots=True)
class Override:
    """A setting taken apart."""

    owner: str  # a learner or data set
    path: tuple[str, ...]  # several where the parameter is of a learner inside
    value: Any
    text: str

    @property
    def given(self) -> str:
        """The setting as its user may have written it, for messages."""
        return option("set", self.text)

    def applied(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of its owner's table with the value of this setting."""
        return with_setting(table, self.path, self.value)


def parse_setting(text: str) -> Override:
    """Read ``miser.trees=300``: the value is a TOML literal, a bare word is a string."""
    name, equals, value = text.partition("=")
    owner, *path = [part.strip() for part in name.split(".")]
    if not equals or not owner or not path or not all(path):
        remedy = "write it as LEARNER.PARAMETER=VALUE, as miser.trees=300"
        raise UsageError(f"{option('set', text)}: {remedy}")
    try:
        read = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        read = {}
    taken = read["value"] if set(read) == {"value"} else value.strip()
    return Override(owner, tuple(path), taken, text)


def with_setting(table: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of a table in which the value at a (nested) path is replaced."""
    key, *rest = path
    if not rest:
        return {**table, key: value}
    inner = table.get(key, {})
    if isinstance(inner, str):
        inner = {"learner": inner}
    if isinstance(inner, list):  # a grid of learners: the setting holds for each
        return {**table, key: [with_setting({key: one}, path, value)[key] for one in inner]}
    if not isinstance(inner, Mapping):
        raise UsageError(f"parameter {key!r} holds no learner, so {'.'.join(rest)} means nothing")
    return {**table, key: with_setting(inner, tuple(rest), value)}


def read_settings(request: RunRequest, registry: Registry) -> tuple[Override, ...]:
    """The settings of a request, their owners spelt as the registry does."""
    found = map(parse_setting, request.settings)
    return tuple(Override(registry.learner_name(s.owner), s.path, s.value, s.text) for s in found)


def check_owners(settings: Iterable[Override], names: Collection[str], registry: Registry) -> None:
    """Refuse a setting for a learner or data set that is not in the run, which has these."""
    known = {*registry.learners, *registry.datasets, *names}
    for setting in settings:
        if setting.owner not in known:
            what = unknown("learner or data set", setting.owner, known)
            raise UsageError(f"{setting.given}: {what}")
        if setting.owner not in names:
            remedy = f"add it with {option('learners')} or set the parameter that holds it"
            raise UsageError(f"{setting.given}: {setting.owner!r} is not in this run; {remedy}")
