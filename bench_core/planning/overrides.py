"""The options ``--set OWNER.PATH=VALUE``: reading them, and putting them into tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_core._io.text import toml_fault
from bench_core.contracts import name_of
from bench_core.errors import UsageError

if TYPE_CHECKING:
    from bench_core.planning.request import RunRequest
    from bench_core.plugins import Registry


@dataclass(frozen=True, slots=True)
class Setting:
    """``--set owner.path=value`` taken apart."""

    owner: str
    path: tuple[str, ...]
    value: Any
    text: str


def parse_setting(text: str) -> Setting:
    """Read ``miser.trees=300``: the value is a TOML literal, a bare word is a string."""
    name, equals, value = text.partition("=")
    owner, *path = [part.strip() for part in name.split(".")]
    if not equals or not owner or not path or not all(path):
        raise UsageError(f"--set {text}: write it as LEARNER.PARAMETER=VALUE, as miser.trees=300")
    return Setting(owner, tuple(path), _literal(value.strip()), text)


def _literal(text: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--set {text[:20]}...: {toml_fault(error)}; correct it") from error
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
    """The ``--set`` options of a request; UsageError for an owner that is neither a learner nor a
    data set."""
    from bench_core.errors import unknown

    settings = tuple(parse_setting(text) for text in request.settings)
    instances = {name_of(x) for x in request.learners if not isinstance(x, str)}
    known = [*registry.learners, *registry.datasets, *instances]
    for setting in settings:
        if setting.owner not in known:
            what = unknown("learner or data set", setting.owner, known)
            raise UsageError(f"--set {setting.text}: {what}")
    return settings


def check_owners(
    settings: Sequence[Setting], learners: Sequence[str], datasets: Iterable[str]
) -> None:
    """Refuse a ``--set`` for a learner or data set that is not in the run."""
    used = {*learners, *datasets}
    for setting in settings:
        if setting.owner in used:
            continue
        what = f"--set {setting.text}: {setting.owner!r} is not in this run"
        for other in settings:
            if other.value == setting.owner:  # early-exit.base=imported: set what stands there
                place = other.text.partition("=")[0].strip().removesuffix(".learner")
                rest = setting.text.partition(".")[2]
                raise UsageError(f"{what} by itself: write --set {place}.{rest}")
        listed = f"(learners: {', '.join(learners)})"
        raise UsageError(f"{what} {listed}. Add it with --learners, or drop the option")
