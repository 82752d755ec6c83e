"""The learners of a request, each with the instances that its grid spans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench_core.contracts import check_name, learner_of, name_of
from bench_core.errors import BenchError, UsageError, blaming, option
from bench_core.parameters import as_json, expand, is_learner, parameters, resolved
from bench_core.planning.keys import DescribedLearner
from bench_core.planning.plan import Notify
from bench_core.planning.request import RunRequest
from bench_core.planning.search_space import configurations, search_ends
from bench_core.planning.settings import Override
from bench_core.planning.suites import Suite
from bench_core.plugins import OURS, Registry

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
