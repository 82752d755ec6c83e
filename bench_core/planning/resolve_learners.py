"""The learners of a request, each with the instances that its grid spans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

from bench_core.contracts import check_name, learner_of, name_of
from bench_core.errors import BenchError, UsageError, blaming, option
from bench_core.parameters import as_json, expand, parameters, resolved
from bench_core.planning.plan import Notify
from bench_core.planning.request import RunRequest
from bench_core.planning.search_space import configurations, search_ends
from bench_core.planning.settings import Setting, with_setting
from bench_core.planning.suites import Suite
from bench_core.plugins import Registry

ALL = "all"
FIRST = ("gbrt", "cegb", "miser", "budget-prune", "greedy-order")
"""A first board: what is run of own data where nobody says which learners."""

TRADEOFFS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The default grid of a learner with a field ``tradeoff`` whose default is a number; dimensionless,
so it fits any costs."""

Ends = Mapping[str, tuple[float | None, float | None]]
"""``search_ends``."""

REFERENCES = ("own", "reference")
"""Roles of learners that others are compared with, a user's own model before all others."""


@dataclass(frozen=True)
class ChosenLearner:
    """A learner class with the instances that its grid spans; ``named`` if asked for by name."""

    name: str
    instances: tuple[Any, ...]
    named: bool
    drawn: bool = False  # from declared ranges, not from a grid

    @cached_property
    def role(self) -> str:
        """That of its class."""
        return learner_of(self.instances[0]).role

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """Of each instance the parameters in which it differs from others."""
        return tuple(described(self.instances))

    @cached_property
    def ends(self) -> Ends:
        """Values from which on a choice is at the edge of the search."""
        return search_ends(self.instances, self.drawn)


def choose_learners(
    request: RunRequest,
    suite: Suite,
    registry: Registry,
    settings: Sequence[Setting],
    notify: Notify = lambda line, warning: None,
    dataset: str = "",
) -> list[ChosenLearner]:
    """The learners of a request with their grids, the reference first, the suite's baselines last.

    ``dataset``: apply the suite's ``[on.DATASET]`` tables. What they leave out runs only if the
    user named both, learner and data set. A learner whose package or file is missing (see ``stamp``
    in protocols) raises if the user named it, and is left out otherwise.
    """
    asked = list(request.learners or suite.learners or _first_board(registry, settings, notify))
    by_name = [x for x in asked if isinstance(x, str) and x != ALL]
    named = {*(by_name if request.learners else ()), request.reference}
    if ALL in asked:
        by_name += sorted(registry.learners)
    objects = {name_of(x) for x in asked if not isinstance(x, str)}
    by_name += [n for n in suite.baselines if n not in objects]
    first = [n for n in (request.reference or suite.reference,) if n and n not in objects]
    on, profile = suite.on.get(dataset, {}), suite.profile(request.profile)
    configs = request.configs or profile.configs
    chosen: list[ChosenLearner] = []
    for name in dict.fromkeys([*first, *by_name]):
        own = on.get(name, {})  # or False
        if own is False:
            line = f"suite {suite.name} leaves {name} out on {dataset}"
            if name in named and not request.data:
                notify(
                    f"{line}: name the data set too ({option('data', dataset)}) to run it there",
                    True,
                )
            if name not in named or not request.data:
                continue
            notify(f"{line}; it was asked for there, so it runs", True)
        where = f"{suite.place}, [learners.{name}]" if suite.place else f"learner {name}"
        with blaming(_origin(name, suite, request, named)):
            cls = registry.learner(name)
        table = {**suite.learners.get(name, {}), **(own or {}), **profile.learners.get(name, {})}
        lack = "" if name in named else _no_default(cls, table, registry)
        instances: tuple[Any, ...] = ()
        if not lack:
            instances = instances_of(cls, table, settings, configs, registry, where)
            lack = "" if name in named else _lack(instances)
        if lack:
            notify(f"left out: {lack}", False)
        else:
            chosen.append(ChosenLearner(name, instances, name in named, configs > 0))
    return [*chosen, *_instances(asked, [c.name for c in chosen], settings, registry)]


def with_registered_names(
    request: RunRequest, suite: Suite, registry: Registry
) -> tuple[RunRequest, Suite]:
    """Both with learners' names as the registry spells them: ``package:name`` tells learners of one
    name apart. UsageError for a name that several packages have; unknown names stay."""

    def names(given: Any) -> tuple[Any, ...]:
        return tuple(registry.learner_name(x) if isinstance(x, str) else x for x in given)

    def keys(tables: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip(names(tables), tables.values(), strict=True))

    with blaming(option("learners")):
        request = replace(request, learners=names(request.learners))
    with blaming(option("reference")):
        request = replace(request, reference=registry.learner_name(request.reference))
    if not suite.place:
        return request, suite
    with blaming(suite.place):
        return request, replace(
            suite,
            learners=keys(suite.learners),
            baselines=names(suite.baselines),
            reference=registry.learner_name(suite.reference),
            on={name: keys(tables) for name, tables in suite.on.items()},
            profiles={
                name: replace(profile, learners=keys(profile.learners))
                for name, profile in suite.profiles.items()
            },
        )


def _first_board(registry: Registry, settings: Sequence[Setting], notify: Notify) -> Sequence[str]:
    """``FIRST``, learners of ``-p`` modules and those that a setting is for; all learners where
    none of these is registered."""
    own = {name for (kind, name), info in registry.origin.items() if info.origin == "-p"}
    wanted = dict.fromkeys([*FIRST, *sorted(own), *(setting.owner for setting in settings)])
    if not (found := [name for name in wanted if name in registry.learners]):
        return [ALL]
    notify(
        f"learners: {', '.join(found)} (a first board); {option('learners', 'all')}: every one",
        False,
    )
    return found


def _no_default(cls: type[Any], table: Mapping[str, Any], registry: Registry) -> str:
    """The unregistered learner that one stands on by default, in one line, or ""."""
    for p in parameters(cls):
        stands_on = p.default if p.holds_learner and p.name not in table else None
        if isinstance(stands_on, str) and stands_on not in registry.learners:
            return f"{name_of(cls)}: its {p.name}, {stands_on}, is not registered"
    return ""


def _lack(instances: Sequence[Any]) -> str:
    """The package or file that one of these learners lacks, in one line, or ""."""
    try:
        for instance in instances:
            learner_of(instance).stamp()
    except BenchError as error:
        return str(error)
    return ""


def default_reference(learners: Sequence[ChosenLearner]) -> str:
    """The only learner of the first role of ``REFERENCES`` that any has; "" where there is none or
    more than one.

    Not having a ``tradeoff`` does not make one: a saving is measured against a model that minds no
    cost, which a learner says by its role and a user by ``--reference``.
    """
    for role in REFERENCES:
        if found := [c.name for c in learners if c.role == role]:
            return found[0] if len(found) == 1 else ""
    return ""


def _origin(name: str, suite: Suite, request: RunRequest, named: set[str]) -> str:
    """The place of a learner's name, for messages."""
    if name == request.reference and name not in request.learners:
        return option("reference")
    if not suite.place or name in named:
        return option("learners")
    if name == suite.reference:
        return f"{suite.place}, key 'reference'"
    key = "key 'baselines'" if name in suite.baselines else f"[learners.{name}]"
    return f"{suite.place}, {key}"


def instances_of(
    cls: Any,
    table: Mapping[str, Any],
    settings: Sequence[Setting],
    configs: int,
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    """``configs`` settings drawn from what the class declares, or the grid of the table (0)."""
    table = dict(table)
    fixed: dict[str, Any] = {}
    own = [setting for setting in settings if setting.owner == cls.name]
    for setting in own:
        with blaming(setting.given):
            table = with_setting(table, setting.path, setting.value)
            fixed = with_setting(fixed, setting.path, setting.value)
    if own:
        where = " ".join(setting.given for setting in own)
    if configs:
        return configurations(cls, table, fixed, configs, registry, where)
    return expand(cls, {**default_grid(cls), **table}, registry, where)


def default_grid(cls: type[Any]) -> dict[str, Any]:
    """The grid that is tried of a learner where nobody sets those parameters."""
    swept = any(p.name == "tradeoff" and p.default is not None for p in parameters(cls))
    return {"tradeoff": list(TRADEOFFS)} if swept else {}


def _instances(
    asked: Sequence[Any], names: Sequence[str], settings: Sequence[Setting], registry: Registry
) -> list[ChosenLearner]:
    """Learners given as objects, those of one name together."""
    given: dict[str, list[Any]] = {}
    for learner in asked:
        if isinstance(learner, str):
            continue
        name = name_of(learner)
        if not name or not hasattr(learner, "fit") or not is_dataclass(learner):
            raise UsageError(
                f"learners: {learner!r} is neither a name nor a learner (a frozen dataclass with "
                "name, tasks and fit)"
            )
        if name not in registry.learners:  # of a shared name it goes by ``package:name``
            check_name("learner", name)
        if name in names:
            raise UsageError(f"learner {name!r} is asked for by name and as an object: keep one")
        try:
            given.setdefault(name, []).append(resolved(learner, registry.learner))
        except ValueError as error:
            raise UsageError(f"learner {name}: {error}") from error
    for setting in settings:
        if setting.owner in given:
            raise UsageError(f"{setting.given}: {setting.owner} was given as an object")
    return [ChosenLearner(name, tuple(made), True) for name, made in given.items()]


def described(instances: Sequence[Any]) -> list[str]:
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
