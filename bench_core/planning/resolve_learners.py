"""Learners of a request, each with the instances to try, from a grid or a search.

``--set LEARNER.PARAMETER=VALUE`` replaces a value of a learner's table, or of a data set's options.

With ``--configs N`` all learners have equal search budgets. The first setting is the default: the
suite's tables, else the class's defaults. The others draw the parameters that declare a ``search``
from an unscrambled Sobol sequence. It is evenly spread for any number of draws, and the first ten
of twenty equal the ten of ten. Every learner's ``tradeoff`` and ``learning_rate`` have the same
positions in their ranges. If a learner uses another (``search=inside()``), its k-th setting uses
the other's k-th setting, so that both search equally and share fits. Several such bases take turns.
"""

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import chain, repeat, takewhile
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.contracts import check, check_name, learner_of, name_of
from bench_core.data import Task
from bench_core.errors import BenchError, UsageError, blaming, option, require, unknown
from bench_core.option_fields import short
from bench_core.parameters import (
    Parameter,
    Search,
    as_json,
    expand,
    flat,
    held,
    is_grid,
    is_learner,
    members,
    parameters,
    resolved,
)
from bench_core.planning.keys import DescribedLearner
from bench_core.planning.plan import Notify
from bench_core.planning.request import RunRequest
from bench_core.planning.suites import Suite
from bench_core.plugins import OURS, Registry
from bench_core.protocols import CompleteLearner


@dataclass(frozen=True, slots=True)
class Override:
    """A parsed setting."""

    owner: str  # learner or data set
    path: tuple[str, ...]  # several names for a nested learner's parameter
    value: Any
    text: str

    @property
    def given(self) -> str:
        """The setting as a user may have written it, for messages."""
        return option("settings", self.text)

    def applied(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the owner's table and apply this setting."""
        return with_setting(table, self.path, self.value)


def parse_setting(text: str) -> Override:
    """Parse ``miser.trees=300``: the value is a TOML literal, a bare word is a string."""
    name, equals, value = text.partition("=")
    owner, *path = [part.strip() for part in name.split(".")]
    if not equals or not owner or not path or not all(path):
        remedy = "write it as LEARNER.PARAMETER=VALUE, as miser.trees=300"
        raise UsageError(f"{option('settings', text)}: {remedy}")
    try:
        read = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        read = {}
    taken = read["value"] if set(read) == {"value"} else value.strip()
    return Override(owner, tuple(path), taken, text)


def parse_settings(texts: Iterable[str]) -> tuple[Override, ...]:
    """Parse settings. Raises UsageError if two give a parameter different values."""
    settings: dict[tuple[str, ...], Override] = {}
    for text in texts:
        setting = parse_setting(text)
        before = settings.setdefault((setting.owner, *setting.path), setting)
        if before.value != setting.value:
            grid = f"a list is a grid: {'.'.join((setting.owner, *setting.path))}=[...]"
            raise UsageError(f"{before.given} and {setting.given}: keep one of them ({grid})")
    return tuple(settings.values())


def with_setting(table: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Copy a table and replace the value at a (nested) path."""
    key, *rest = path
    if not rest:
        return {**table, key: value}
    inner = table.get(key, {})
    if isinstance(inner, str):
        inner = {"learner": inner}
    if isinstance(inner, list):  # a grid of learners: apply the setting to each
        return {**table, key: [with_setting({key: one}, path, value)[key] for one in inner]}
    if not isinstance(inner, Mapping):
        raise UsageError(f"parameter {key!r} is not a learner, so {'.'.join(rest)} is invalid")
    return {**table, key: with_setting(inner, tuple(rest), value)}


def check_owners(settings: Iterable[Override], names: Collection[str], registry: Registry) -> None:
    """Raise UsageError for a setting of a learner or data set that is not in the run."""
    known = {*registry.learners, *registry.datasets, *names}
    for setting in settings:
        if setting.owner not in known:
            what = unknown("learner or data set", setting.owner, known)
            raise UsageError(f"{setting.given}: {what}")
        if setting.owner in registry.learners and setting.owner in registry.datasets:
            remedy = "name the data set differently"
            raise UsageError(f"{setting.given}: a learner and a data set have this name; {remedy}")
        if setting.owner not in names:
            remedy = f"add it with {option('learners')} or set the parameter that holds it"
            raise UsageError(f"{setting.given}: {setting.owner!r} is not in this run; {remedy}")


ALL = "all"
FIRST = ("gbrt", "budget-boosting", "cegb", "miser", "budget-prune", "greedy-order")
"""Default learners for own data."""

FIRST_UNDER_CAPS = (*FIRST, "aaco-tree")
"""The same under caps, where features may help only together."""

FIRST_OF_CHOICE = ("best-single", "cascade", "router")
"""Default learners for a choice among services."""

TRADEOFFS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Default grid of a learner with a numeric field ``tradeoff`` and no ``tradeoffs`` of its own;
dimensionless, so it applies to any costs."""

REFERENCES = ("own", "reference")
"""Roles of learners that others are compared with; a user's own model comes first."""


@dataclass(frozen=True)
class ChosenLearner:
    """A learner class with the instances of its grid."""

    name: str
    instances: tuple[Any, ...]
    named: bool  # requested by name, or given as objects
    drawn: bool = False  # from declared ranges, not from a grid

    @cached_property
    def role(self) -> str:
        """Role of its class."""
        return learner_of(self.instances[0]).role

    @cached_property
    def described(self) -> tuple[DescribedLearner, ...]:
        """Descriptions of its instances for a plan."""
        return tuple(map(DescribedLearner, self.instances))

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """For each instance, the parameters in which it differs from others."""
        return tuple(varied(self.instances))

    @cached_property
    def ends(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Parameter values at the edges of the search."""
        return search_ends(self.instances, self.drawn)


def choose_learners(
    request: RunRequest,
    suite: Suite,
    registry: Registry,
    settings: Sequence[Override],
    notify: Notify = lambda line, warning: None,
    dataset: str = "",
) -> list[ChosenLearner]:
    """Return a request's learners with their grids, the reference first, baselines last.

    ``dataset``: apply the suite's ``[on.DATASET]`` tables. Learners excluded there run only if the
    user named both the learner and the data set. A learner with a missing package or file (see
    ``stamp`` in protocols) raises if the user named it, and is skipped otherwise.
    """
    entries = list(
        request.learners
        or suite.learners
        or _first_board(_first(request, registry), registry, settings, notify)
    )
    objects = _instances([x for x in entries if not isinstance(x, str)], settings, registry)
    object_names = {learner.name for learner in objects}
    by_name = [x for x in entries if isinstance(x, str) and x != ALL]
    named = {*(by_name if request.learners else ()), request.reference}
    everything = sorted(registry.learners) if ALL in entries else ()
    names = (request.reference or suite.reference, *by_name, *everything, *suite.baselines)
    profile, on = suite.profile(request.profile), suite.on.get(dataset, {})
    configs = request.configs or profile.configs
    chosen: list[ChosenLearner] = []
    for name in dict.fromkeys(name for name in names if name and name not in object_names):
        if on.get(name) is False:
            if name not in named:
                continue
            line = f"suite {suite.name} leaves {name} out on {dataset}"
            if not request.data:
                there = option("data", dataset)
                notify(f"{line}: name the data set too ({there}) to run it there", True)
                continue
            notify(f"{line}; it was requested there, so it runs", True)
        where = f"{suite.place}, [learners.{name}]" if suite.learners else f"learner {name}"
        source = option("reference" if name == request.reference else "learners")
        with blaming(source if name in named or not suite.place else suite.place):
            cls = registry.learner(name)
        tables = (suite.learners.get(name), on.get(name), profile.learners.get(name))
        table = {key: value for one in tables for key, value in (one or {}).items()}
        try:
            instances = instances_of(cls, table, settings, configs, registry, where)
            for instance in () if name in named else instances:
                learner_of(instance).stamp()
        except BenchError as error:
            wrong = table or any(setting.owner == cls.name for setting in settings)
            if name in named or (isinstance(error, UsageError) and wrong):
                raise
            notify(f"left out: {name}: {error}", False)
        else:
            chosen.append(ChosenLearner(cls.name, instances, name in named, configs > 0))
    if twice := object_names.intersection(by_name):
        raise UsageError(f"learner {min(twice)!r} is requested by name and as an object: keep one")
    return [*chosen, *objects]


def _first(request: RunRequest, registry: Registry) -> Sequence[str]:
    """Return the default learners for the data of a request."""
    named = [registry.datasets.get(d) if isinstance(d, str) else d for d in request.data]
    tasks = {getattr(dataset, "task", None) for dataset in named}
    choice = bool(request.choose) or Task.CHOICE in tasks
    if choice and tasks <= {Task.CHOICE, None}:
        return FIRST_OF_CHOICE
    first = FIRST_UNDER_CAPS if request.caps else FIRST
    return (*first, *FIRST_OF_CHOICE) if choice else first


def _first_board(
    first: Sequence[str], registry: Registry, settings: Sequence[Override], notify: Notify
) -> Sequence[str]:
    """Return the ``first``, learners of ``-p`` modules and learners with a setting; all learners if
    none of these is registered."""
    of_modules = {name for (kind, name), info in registry.origin.items() if info.origin == "-p"}
    wanted = dict.fromkeys([*first, *sorted(of_modules), *(setting.owner for setting in settings)])
    if not (names := [name for name in wanted if name in registry.learners]):
        return [ALL]
    more = f"(a first board); {option('learners', ALL)}: all learners"
    notify(f"learners: {', '.join(names)} {more}", False)
    return names


def default_reference(learners: Sequence[ChosenLearner], registry: Registry, notify: Notify) -> str:
    """Return the learner of the first role of ``REFERENCES`` that occurs, else ""; among several,
    this distribution's, else the first. ``notify`` reports the others.

    A missing ``tradeoff`` does not make a learner a reference. Savings need a cost-blind model,
    which must be declared by its role or by ``--reference``.
    """
    for role in REFERENCES:
        if found := [c.name for c in learners if c.role == role]:
            # a plugin must not replace the shipped reference of savings
            origins = {name: info.origin for (_, name), info in registry.origin.items()}
            first, *others = sorted(found, key=lambda name: origins.get(name) != OURS)
            if others:
                how = f"to choose another reference: {option('reference', others[0])}"
                notify(f"savings are relative to {first}; {how}", False)
            return first
    return ""


def instances_of(
    cls: Any,
    table: Mapping[str, Any],
    settings: Sequence[Override],
    configs: int,
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    """Return ``configs`` settings from the class's search ranges, or the grid of the table (0)."""
    overrides = [setting for setting in settings if setting.owner == cls.name]
    fixed: dict[str, Any] = {}
    for setting in overrides:
        with blaming(setting.given):
            require("parameter", setting.path[:1], [p.name for p in parameters(cls)])
            table, fixed = setting.applied(table), setting.applied(fixed)
    where = " ".join(setting.given for setting in overrides) or where
    if configs:
        return configurations(cls, table, fixed, configs, registry, where)
    return expand(cls, {**default_grid(cls), **table}, registry, where)


def default_grid(cls: type[Any]) -> dict[str, Any]:
    """Return the grid of a learner's parameters that are not set."""
    swept = any(p.name == "tradeoff" and p.default is not None for p in parameters(cls))
    return {"tradeoff": list(getattr(cls, "tradeoffs", ()) or TRADEOFFS)} if swept else {}


def require_learner(learner: Any, where: str) -> None:
    """Raise UsageError, in one line with the remedy, for an object that is no learner."""
    if isinstance(learner, type):
        if learner.__module__.startswith("sklearn."):
            with suppress(TypeError):  # it needs arguments
                require_learner(learner(), where)
        raise UsageError(f"{where}: {learner.__name__} is a class; give {learner.__name__}()")
    cls = type(learner)
    called, package = cls.__name__, cls.__module__.partition(".")[0]
    if not hasattr(learner, "fit"):
        fault = f"{short(learner)} is neither a name nor a learner (with name, tasks and fit)"
    elif package == "sklearn":
        public = takewhile(lambda part: not part.startswith("_"), cls.__module__.split("."))
        values, usual = learner.get_params(deep=False), signature(cls).parameters
        changed = {key: value for key, value in values.items() if value is not usual[key].default}
        table = {"estimator": ".".join([*public, called]), "arguments": changed}
        form = f"learner='sklearn', parameters={table}"
        if where == option("learners"):
            form = f"the learner 'sklearn', as {{'sklearn': {table}}}"
        fault = f"{called} is an estimator of scikit-learn: use {form}"
        try:
            json.dumps(changed)
        except TypeError:
            fault = f"{called} is made of other objects: 'bench new learner' writes a learner"
    elif hasattr(learner, "get_params") and not name_of(learner):
        fault = f"{called} is an estimator, not a learner: 'bench new learner' writes one"
    else:
        try:
            check(cls, CompleteLearner, f"{called} is given")
        except (TypeError, ValueError) as error:
            fault = f"{error}; 'bench new learner' writes a learner"
        else:
            if is_learner(learner):
                return
            fault = f"{called} has settings: write @dataclass(frozen=True) above its class, and "
            fault += "its settings as fields"
    raise UsageError(f"{where}: {fault}")


def _instances(
    learners: Sequence[Any], settings: Sequence[Override], registry: Registry
) -> list[ChosenLearner]:
    """Return learners given as objects, grouped by name."""
    by_name: dict[str, list[Any]] = {}
    for learner in learners:
        require_learner(learner, option("learners"))
        name = name_of(learner)
        check_name("learner", name)
        with blaming(f"learner {name}"):
            try:
                by_name.setdefault(name, []).append(resolved(learner, registry.learner))
            except ValueError as error:
                raise UsageError(str(error)) from error
    for setting in settings:
        if setting.owner in by_name:
            raise UsageError(f"{setting.given}: {setting.owner} was given as an object")
    return [ChosenLearner(name, tuple(instances), True) for name, instances in by_name.items()]


def varied(instances: Sequence[Any]) -> list[str]:
    """For each instance of a grid, describe the parameters in which it differs from others."""
    values = [flat(as_json(instance)) for instance in instances]
    names = dict.fromkeys(name for own in values for name in own)
    seen = {name: [own[name] for own in values if name in own] for name in names}
    varied = [name for name, of in seen.items() if any(value != of[0] for value in of)]
    return [" ".join(f"{k}={_short(own[k])}" for k in varied if k in own) for own in values]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


SHARED = ("tradeoff", "learning_rate")
"""Parameters with their own search dimensions, so that all learners try the same values."""


def configurations(
    cls: type,
    table: Mapping[str, Any],
    fixed: Mapping[str, Any],
    count: int,
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    """Return ``count`` distinct settings of a learner, or fewer if there are not enough.

    ``table`` has the values of the suite and of ``--set``, ``fixed`` only those of ``--set``.
    """
    return tuple(_Space(cls, table, fixed, registry, where).settings(count))


class _Space:
    """Settings of one learner."""

    def __init__(
        self,
        cls: type,
        table: Mapping[str, Any],
        fixed: Mapping[str, Any],
        registry: Registry,
        where: str,
    ) -> None:
        self.cls, self.registry, self.where = cls, registry, where
        self.start: dict[str, Any] = {**fixed, **table}  # values of the first setting
        self.searched: dict[str, tuple[Parameter, Search]] = {}
        self.bases: dict[str, list[Any]] = {}  # by parameter: spaces, or fixed values
        for p in parameters(cls):
            value = self.start.get(p.name)
            if p.search and p.search.inside:
                self.bases[p.name] = list(self._stands_on(p, fixed.get(p.name, {})))
            elif p.search and p.name not in fixed:
                self.searched[p.name] = p, p.search
                if is_grid(p, value):  # replaced by the search
                    del self.start[p.name]
            elif value and is_grid(p, value):
                self.searched[p.name] = p, Search(choices=tuple(value))
                self.start[p.name] = value[0]

    def _stands_on(self, p: Parameter, fixed: Any) -> Iterator[Any]:
        value = self.start.get(p.name, p.default)
        each = value if is_grid(p, value) else [value]
        tables = fixed if isinstance(fixed, list) else repeat(fixed)
        for base, changes in zip(each, tables, strict=False):
            if base == "none" or not isinstance(base, str | Mapping):
                yield base
                continue
            cls, table = held(p, base, self.registry, self.where)
            kept = {**changes} if isinstance(changes, Mapping) else {}
            kept.pop("learner", None)
            yield _Space(cls, table, kept, self.registry, self.where)

    @property
    def dimensions(self) -> int:
        """Dimensions besides the ``SHARED`` ones, including those of learners it uses."""
        return self._below + sum(name not in SHARED for name in self.searched)

    @property
    def _below(self) -> int:
        spaces = (one for one in chain(*self.bases.values()) if isinstance(one, _Space))
        return max((one.dimensions for one in spaces), default=0)

    def settings(self, count: int) -> list[Any]:
        """Return at most ``count`` distinct instances."""
        bases = {name: _in_turn(each, count) for name, each in self.bases.items()}
        unshared = [name for name in self.searched if name not in SHARED]
        column = {name: SHARED.index(name) for name in self.searched if name in SHARED}
        column |= {name: len(SHARED) + self._below + k for k, name in enumerate(unshared)}
        instances: list[Any] = []
        for shares in _draws(1 + max(column.values(), default=-1), 16 * count):
            drawn = {
                name: search.value(float(shares[column[name]]), float not in members(p.annotation))
                for name, (p, search) in self.searched.items()
                if shares is not None
            }
            stands_on = {name: each[len(instances) % len(each)] for name, each in bases.items()}
            candidates = expand(self.cls, self.start | drawn | stands_on, self.registry, self.where)
            instances += [candidate for candidate in candidates if candidate not in instances]
            if len(instances) >= count or not (self.searched or self.bases):
                break
        return instances[:count]


def _in_turn(bases: Sequence[Any], count: int) -> list[Any]:
    """Interleave settings of several bases: the first of each, the second of each, ..."""
    each = [one.settings(count) if isinstance(one, _Space) else [one] for one in bases]
    turns: list[Any] = []
    for k in range(count):
        turns += [own[k] for own in each if k < len(own) and own[k] not in turns]
    return turns[:count]


def _draws(dimensions: int, count: int) -> Iterator[FloatArray | None]:
    """Yield None for the default setting, then points (dimensions,) of the sequence but 0."""
    yield None
    if not dimensions:
        yield from np.zeros((count, 0))
        return
    from scipy.stats.qmc import Sobol

    yield from Sobol(dimensions, scramble=False).fast_forward(1).random(count)


def search_ends(
    instances: Sequence[Any], drawn: bool
) -> dict[str, tuple[float | None, float | None]]:
    """Return, for each varied parameter, the values at or beyond which a choice is at the edge of
    the search: the ends of a grid, or 5% inside the ends of a range from which settings were
    ``drawn``. None if the parameter cannot go further."""
    ends = {}
    for p in parameters(type(instances[0])):
        values = [getattr(instance, p.name) for instance in instances]
        numbers = {v for v in values if isinstance(v, int | float) and not isinstance(v, bool)}
        if len(numbers) < 2 or (drawn and p.search and p.search.choices):
            continue
        low, high = least, most = min(numbers), max(numbers)
        if drawn and p.search:
            least, most = p.search.least, p.search.most
            low, high = p.search.value(0.05), p.search.value(0.95)
        floor, ceiling = max(p.range.least, p.range.above), min(p.range.most, p.range.below)
        ends[p.name] = None if least <= floor else low, None if most >= ceiling else high
    return ends
