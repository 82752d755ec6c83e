"""The learners of a request, each with the instances to try: of its grid, or drawn.

``--set LEARNER.PARAMETER=VALUE`` replaces a value of a learner's table, or of a data set's options.

With ``--configs N`` all learners are searched alike. The first setting is the default: what the
suite's tables give, else the class's defaults. The others take the parameters that declare a
``search`` from a Sobol sequence without scrambling: it spreads evenly however many are drawn, the
first ten of twenty are the ten of ten, and every learner's ``tradeoff`` and ``learning_rate`` lie
at the same places of their ranges. A learner that stands on another (``search=inside()``) takes in
its k-th setting the k-th setting of that one, so that both have equal room and share their fits;
several such bases take turns.
"""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.contracts import check_name, learner_of, name_of
from bench_core.errors import BenchError, UsageError, blaming, option, unknown
from bench_core.parameters import (
    Parameter,
    Search,
    as_json,
    expand,
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


ALL = "all"
FIRST = ("gbrt", "budget-boosting", "cegb", "miser", "budget-prune", "greedy-order")
"""A first board: what is run of own data where nobody says which learners."""

TRADEOFFS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The default grid of a learner with a field ``tradeoff`` whose default is a number; dimensionless,
so it fits any costs."""

REFERENCES = ("own", "reference")
"""Roles of learners that others are compared with, a user's own model before all others."""


@dataclass(frozen=True)
class ChosenLearner:
    """A learner class with the instances that its grid spans."""

    name: str
    instances: tuple[Any, ...]
    named: bool  # asked for by name, or given as objects
    drawn: bool = False  # from declared ranges, not from a grid

    @cached_property
    def role(self) -> str:
        """That of its class."""
        return learner_of(self.instances[0]).role

    @cached_property
    def described(self) -> tuple[DescribedLearner, ...]:
        """Its instances as a plan needs to know them."""
        return tuple(map(DescribedLearner, self.instances))

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """Of each instance the parameters in which it differs from others."""
        return tuple(varied(self.instances))

    @cached_property
    def ends(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Values from which on a choice is at the edge of the search."""
        return search_ends(self.instances, self.drawn)


def choose_learners(
    request: RunRequest,
    suite: Suite,
    registry: Registry,
    settings: Sequence[Override],
    notify: Notify = lambda line, warning: None,
    dataset: str = "",
) -> list[ChosenLearner]:
    """The learners of a request with their grids, the reference first, the suite's baselines last.

    ``dataset``: apply the suite's ``[on.DATASET]`` tables. What they leave out runs only if the
    user named both, learner and data set. A learner whose package or file is missing (see ``stamp``
    in protocols) raises if the user named it, and is left out otherwise.
    """
    asked = list(request.learners or suite.learners or _first_board(registry, settings, notify))
    given = _instances([x for x in asked if not isinstance(x, str)], settings, registry)
    objects = {learner.name for learner in given}
    by_name = [x for x in asked if isinstance(x, str) and x != ALL]
    named = {*(by_name if request.learners else ()), request.reference}
    everything = sorted(registry.learners) if ALL in asked else ()
    names = (request.reference or suite.reference, *by_name, *everything, *suite.baselines)
    profile, on = suite.profile(request.profile), suite.on.get(dataset, {})
    configs = request.configs or profile.configs
    chosen: list[ChosenLearner] = []
    for name in dict.fromkeys(name for name in names if name and name not in objects):
        if on.get(name) is False:
            if name not in named:
                continue
            line = f"suite {suite.name} leaves {name} out on {dataset}"
            if not request.data:
                there = option("data", dataset)
                notify(f"{line}: name the data set too ({there}) to run it there", True)
                continue
            notify(f"{line}; it was asked for there, so it runs", True)
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
    if both := objects.intersection(by_name):
        raise UsageError(f"learner {min(both)!r} is asked for by name and as an object: keep one")
    return [*chosen, *given]


def _first_board(registry: Registry, settings: Sequence[Override], notify: Notify) -> Sequence[str]:
    """``FIRST``, learners of ``-p`` modules and those that a setting is for; all learners where
    none of these is registered."""
    own = {name for (kind, name), info in registry.origin.items() if info.origin == "-p"}
    wanted = dict.fromkeys([*FIRST, *sorted(own), *(setting.owner for setting in settings)])
    if not (found := [name for name in wanted if name in registry.learners]):
        return [ALL]
    more = f"(a first board); {option('learners', ALL)}: every one"
    notify(f"learners: {', '.join(found)} {more}", False)
    return found


def default_reference(learners: Sequence[ChosenLearner], registry: Registry, notify: Notify) -> str:
    """The learner of the first role of ``REFERENCES`` that any has, "" where there is none; of
    several that of this distribution, else the first. ``notify`` hears of the others.

    Not having a ``tradeoff`` does not make one: a saving is measured against a model that minds no
    cost, which a learner says by its role and a user by ``--reference``.
    """
    for role in REFERENCES:
        if found := [c.name for c in learners if c.role == role]:
            # a plugin must not take away what everybody's savings are measured against
            origins = {name: info.origin for (_, name), info in registry.origin.items()}
            first, *others = sorted(found, key=lambda name: origins.get(name) != OURS)
            if others:
                how = option("reference", others[0])
                notify(f"savings are against {first}; against another of that role: {how}", False)
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
    """``configs`` settings drawn from what the class declares, or the grid of the table (0)."""
    own = [setting for setting in settings if setting.owner == cls.name]
    fixed: dict[str, Any] = {}
    for setting in own:
        with blaming(setting.given):
            table, fixed = setting.applied(table), setting.applied(fixed)
    where = " ".join(setting.given for setting in own) or where
    if configs:
        return configurations(cls, table, fixed, configs, registry, where)
    return expand(cls, {**default_grid(cls), **table}, registry, where)


def default_grid(cls: type[Any]) -> dict[str, Any]:
    """The grid that is tried of a learner where nobody sets those parameters."""
    swept = any(p.name == "tradeoff" and p.default is not None for p in parameters(cls))
    return {"tradeoff": list(TRADEOFFS)} if swept else {}


def _instances(
    learners: Sequence[Any], settings: Sequence[Override], registry: Registry
) -> list[ChosenLearner]:
    """Learners given as objects, those of one name together."""
    given: dict[str, list[Any]] = {}
    for learner in learners:
        name = name_of(learner)
        if not name or not is_learner(learner):
            raise UsageError(
                f"learners: {learner!r} is neither a name nor a learner (a frozen dataclass with "
                "name, tasks and fit)"
            )
        if name not in registry.learners:  # of a shared name it goes by ``package:name``
            check_name("learner", name)
        with blaming(f"learner {name}"):
            try:
                given.setdefault(name, []).append(resolved(learner, registry.learner))
            except ValueError as error:
                raise UsageError(str(error)) from error
    for setting in settings:
        if setting.owner in given:
            raise UsageError(f"{setting.given}: {setting.owner} was given as an object")
    return [ChosenLearner(name, tuple(made), True) for name, made in given.items()]


def varied(instances: Sequence[Any]) -> list[str]:
    """For each instance of a grid the parameters in which it differs from others, in few words."""
    values = [_flat(as_json(instance)) for instance in instances]
    names = dict.fromkeys(name for own in values for name in own)
    seen = {name: [own[name] for own in values if name in own] for name in names}
    varied = [name for name, of in seen.items() if any(value != of[0] for value in of)]
    return [" ".join(f"{k}={_short(own[k])}" for k in varied if k in own) for own in values]


def _flat(values: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    """Parameters of a learner, and as ``base.trees`` those of the learners that it holds."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            inner = dict(value)
            found |= {of + name: inner.pop("learner", "...")} | _flat(inner, f"{of}{name}.")
        else:
            found[of + name] = value
    return found


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


SHARED = ("tradeoff", "learning_rate")
"""Parameters that have dimensions of their own, so that learners which share them try the same."""


def configurations(
    cls: type,
    table: Mapping[str, Any],
    fixed: Mapping[str, Any],
    count: int,
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    """``count`` different settings of a learner, fewer where there are no more.

    ``table`` are the suite's values with those of ``--set``, ``fixed`` the latter alone.
    """
    return tuple(_Space(cls, table, fixed, registry, where).settings(count))


class _Space:
    """The settings of one learner."""

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
        self.bases: dict[str, list[Any]] = {}  # by parameter: spaces, or values as they are
        for p in parameters(cls):
            value = self.start.get(p.name)
            if p.search and p.search.inside:
                self.bases[p.name] = list(self._stands_on(p, fixed.get(p.name, {})))
            elif p.search and p.name not in fixed:
                self.searched[p.name] = p, p.search
                if is_grid(p, value):  # it gives way to the search
                    del self.start[p.name]
            elif value and is_grid(p, value):
                self.searched[p.name] = p, Search(choices=tuple(value))
                self.start[p.name] = value[0]

    def _stands_on(self, p: Parameter, fixed: Any) -> Iterator[Any]:
        value = self.start.get(p.name, p.default)
        each = value if is_grid(p, value) else [value]
        for one, own in zip(
            each, fixed if isinstance(fixed, list) else repeat(fixed), strict=False
        ):
            if one == "none" or not isinstance(one, str | Mapping):
                yield one
                continue
            cls, table = held(p, one, self.registry, self.where)
            kept = {**own} if isinstance(own, Mapping) else {}
            kept.pop("learner", None)
            yield _Space(cls, table, kept, self.registry, self.where)

    @property
    def dimensions(self) -> int:
        """The dimensions next to the ``SHARED`` that it takes with the learners it stands on."""
        return self._below + sum(name not in SHARED for name in self.searched)

    @property
    def _below(self) -> int:
        spaces = (one for one in chain(*self.bases.values()) if isinstance(one, _Space))
        return max((one.dimensions for one in spaces), default=0)

    def settings(self, count: int) -> list[Any]:
        """At most ``count`` different instances."""
        bases = {name: _in_turn(each, count) for name, each in self.bases.items()}
        others = [name for name in self.searched if name not in SHARED]
        column = {name: SHARED.index(name) for name in self.searched if name in SHARED}
        column |= {name: len(SHARED) + self._below + k for k, name in enumerate(others)}
        found: list[Any] = []
        for shares in _draws(1 + max(column.values(), default=-1), 16 * count):
            drawn = {
                name: search.value(float(shares[column[name]]), float not in members(p.annotation))
                for name, (p, search) in self.searched.items()
                if shares is not None
            }
            stands_on = {name: each[len(found) % len(each)] for name, each in bases.items()}
            made = expand(self.cls, self.start | drawn | stands_on, self.registry, self.where)
            found += [one for one in made if one not in found]
            if len(found) >= count or not (self.searched or self.bases):
                break
        return found[:count]


def _in_turn(bases: Sequence[Any], count: int) -> list[Any]:
    """Settings of several bases: the first of each, the second of each, ..."""
    each = [one.settings(count) if isinstance(one, _Space) else [one] for one in bases]
    turns: list[Any] = []
    for k in range(count):
        turns += [own[k] for own in each if k < len(own) and own[k] not in turns]
    return turns[:count]


def _draws(dimensions: int, count: int) -> Iterator[FloatArray | None]:
    """None, for the default setting, then points (dimensions,) of the sequence after its first,
    which is 0."""
    yield None
    if not dimensions:
        yield from np.zeros((count, 0))
        return
    from scipy.stats.qmc import Sobol

    yield from Sobol(dimensions, scramble=False).fast_forward(1).random(count)


def search_ends(
    instances: Sequence[Any], drawn: bool
) -> dict[str, tuple[float | None, float | None]]:
    """By varied parameter the values from which on a choice is at the edge of what was tried: the
    least and the most of a grid, a twentieth of the way from the ends of a range that settings were
    ``drawn`` from. None where the parameter cannot go further."""
    found = {}
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
        found[p.name] = None if least <= floor else low, None if most >= ceiling else high
    return found
