"""Which data sets and learners a request means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import BenchError, InputError, UsageError
from bench_core.parameters import Setting, expand, parameters, parse_setting, with_setting
from bench_core.protocols import Source
from bench_core.registry import Registry, unknown

if TYPE_CHECKING:
    from bench_core.plan import RunRequest
    from bench_core.suites import Profile, Suite

ALL = "all"
TRADEOFFS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The default grid of a learner with a field ``tradeoff``; dimensionless, so it fits any costs."""

Tell = Callable[[str, bool], None]  # a line, and whether it is a warning


@dataclass(frozen=True, slots=True)
class ChosenDataset:
    """A data set to run on: ``label`` is its name in all results, ``replaces`` the licensed one
    that it stands in for."""

    label: str
    dataset: Any
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class ChosenLearner:
    """A learner class with the instances that its grid spans; ``named`` if asked for by name."""

    name: str
    instances: tuple[Any, ...]
    named: bool

    @property
    def cls(self) -> type[Any]:
        """The learner's class."""
        return type(self.instances[0])


def read_settings(request: RunRequest, registry: Registry) -> tuple[Setting, ...]:
    """The ``--set`` options; their owners must be learners or data sets."""
    settings = tuple(parse_setting(text) for text in request.settings)
    instances = {getattr(x, "name", "") for x in request.learners if not isinstance(x, str)}
    known = [*registry.learners, *registry.datasets, *instances]
    for setting in settings:
        if setting.owner not in known:
            what = unknown("learner or data set", setting.owner, known)
            raise UsageError(f"--set {setting.text}: {what}")
    return settings


def check_owners(
    settings: Sequence[Setting],
    learners: Sequence[ChosenLearner],
    datasets: Sequence[ChosenDataset],
) -> None:
    """Refuse a ``--set`` that nothing in this run would heed."""
    names = [learner.name for learner in learners]
    used = {*names, *(d.replaces for d in datasets), *(d.dataset.name for d in datasets)}
    for setting in settings:
        if setting.owner not in used:
            raise UsageError(
                f"--set {setting.text}: {setting.owner} takes no part in this run "
                f"({', '.join(names)}): add it to --learners, or leave this out"
            )


@contextmanager
def blaming(place: str) -> Iterator[None]:
    """Begin the messages of errors with a place."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def choose_datasets(
    request: RunRequest,
    suite: Suite | None,
    registry: Registry,
    source: Source,
    settings: Sequence[Setting],
    tell: Tell,
) -> tuple[list[ChosenDataset], tuple[str, ...]]:
    """The data sets of a request, stand-ins in place of what is licensed and absent.

    Of a suite of several, those whose files are not there are left out and named second.
    """
    if suite is None:
        return _own_data(request, registry, settings), ()
    from bench_core.formats.publisher import is_there

    _refuse_file_options(request, "with a suite")
    _known_data(request, suite, registry)
    chosen: list[ChosenDataset] = []
    absent: dict[str, tuple[str, ...]] = {}
    for entry in suite.datasets:
        with blaming(f"{suite.place}, key 'datasets'"):
            cls = registry.dataset(entry.name)
        stand_in = _stand_in(entry.name, cls, registry, source) if suite.stand_ins else None
        if request.data and not {entry.name, *_replacements(entry.name, registry)} & {
            *request.data
        }:
            continue
        wanted = [n for n in _replacements(entry.name, registry) if n in request.data]
        if wanted:
            cls, stand_in = registry.dataset(wanted[0]), None
        if stand_in is not None:
            if request.strict_data:
                source.find(*cls.files[:1])  # says which file is missing
            tell(
                f"STAND-IN: {cls.files[0]} of {entry.name} is not there, so {stand_in.name} takes "
                "its place; a stand-in proves that the chain works, never that a method does",
                True,
            )
        cls = stand_in or cls
        shared = {p.name for p in parameters(cls)} if cls.name != entry.name else entry.options
        options = {k: v for k, v in entry.options.items() if k in shared}
        where = f"{suite.place}, data set {entry.name}"
        label, dataset = _instance(cls, options, settings, registry, where, entry.name)
        replaces = entry.name if cls.name != entry.name else ""
        optional = len(suite.datasets) > 1 and not request.data and not request.strict_data
        if optional and not is_there(dataset, source):
            absent[entry.name] = dataset.files
        else:
            chosen.append(ChosenDataset(label, dataset, replaces))
    if absent:
        line = _missing(absent, source)
        if not chosen:
            raise InputError(f"suite {suite.name} has no data to run on, {line}")
        tell(f"skipped data sets, as {line}", True)
    return chosen, tuple(absent)


def _known_data(request: RunRequest, suite: Suite, registry: Registry) -> None:
    """Refuse a restriction to what is not in the suite."""
    known = [e.name for e in suite.datasets]
    known += [n for e in suite.datasets for n in _replacements(e.name, registry)]
    for name in request.data:
        if name not in known:
            what = unknown("data set", name, known)
            raise UsageError(f"--data with suite {suite.name} restricts it: {what}")


def _missing(absent: Mapping[str, Sequence[str]], source: Source) -> str:
    """Which files of which data sets are to be put where."""
    files = ", ".join(f"{name} ({_first(names)})" for name, names in absent.items())
    folder = getattr(source, "folder", "the data folder")
    return (
        f"their files are not in {folder}: {files}; put them there, 'bench show NAME' and "
        "'bench data fetch NAME' help"
    )


def _first(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _replacements(name: str, registry: Registry) -> list[str]:
    return [n for n, c in sorted(registry.datasets.items()) if c.stand_in_for == name]


def _stand_in(name: str, cls: Any, registry: Registry, source: Source) -> Any:
    """The class that stands in for an absent data set, or None where that is there."""
    replacements = _replacements(name, registry)
    if not replacements or not cls.files or source.has(cls.files[0]):
        return None
    return registry.dataset(replacements[0])


def _own_data(
    request: RunRequest, registry: Registry, settings: Sequence[Setting]
) -> list[ChosenDataset]:
    chosen, files = [], []
    for name in request.data:
        if name in registry.datasets:
            cls = registry.dataset(name)
            chosen.append(ChosenDataset(*_instance(cls, {}, settings, registry, name)))
        else:
            files.append(name)
    if not files:
        _refuse_file_options(request, "with a registered data set")
    for name in files:
        if not Path(name).exists():
            what = registry.unknown("data set or file", name, registry.datasets)
            raise UsageError(f"--data: {what}")
    if len(files) > 1 or (files and chosen):
        raise UsageError(
            f"--data: {', '.join(request.data)}: give one file (with --valid and --test), "
            "or registered data sets"
        )
    if files:
        from bench_core.formats.files import FileData

        dataset = FileData(
            train=files[0],
            valid=request.valid,
            test=request.test,
            label=request.label,
            query=request.query,
            split=request.split,
            task=request.task,
            index_base=request.index_base,
        )
        chosen.append(ChosenDataset(dataset.name, dataset))
    if not chosen:
        raise UsageError("nothing to run: give --suite NAME or --data NAME_OR_FILE")
    return chosen


_FILE_OPTIONS = ("test", "valid", "label", "query", "split", "task")


def _refuse_file_options(request: RunRequest, why: str) -> None:
    for option in _FILE_OPTIONS:
        if getattr(request, option):
            raise UsageError(f"--{option} means nothing {why}: it belongs to --data FILE")


def _instance(
    cls: Any,
    options: Mapping[str, Any],
    settings: Sequence[Setting],
    registry: Registry,
    where: str,
    also_called: str = "",
) -> tuple[str, Any]:
    """A data set with its options, and the label that tells it from others."""
    table = dict(options)
    for setting in settings:
        if setting.owner in (cls.name, also_called):
            table = with_setting(table, setting.path, setting.value)
    made = expand(cls, table, registry, where)
    if len(made) != 1:
        raise UsageError(f"{where}: an option of a data set takes one value, not a grid")
    inside = ",".join(f"{k}={v}" for k, v in sorted(table.items()))
    return (f"{cls.name}({inside})" if inside else cls.name), made[0]


def choose_learners(
    request: RunRequest,
    suite: Suite | None,
    profile: Profile | None,
    registry: Registry,
    settings: Sequence[Setting],
    tell: Tell = lambda line, warning: None,
    dataset: str = "",
) -> list[ChosenLearner]:
    """The learners of a request with their grids, the suite's reference first, its rungs last.

    ``dataset`` heeds what the suite says of them on that data set.
    One that lacks what it needs (see ``stamp`` in protocols) is an error where it was asked for by
    name, else left out.
    """
    asked = list(request.learners) or (list(suite.learners) if suite else [ALL])
    by_name = [x for x in asked if isinstance(x, str) and x != ALL]
    named = set(by_name) if request.learners else set()
    if ALL in asked:
        by_name += [n for n in sorted(registry.learners) if n not in by_name]
    reference = suite.reference if suite else ""
    if reference:
        by_name = [reference, *(n for n in by_name if n != reference)]
    objects = {getattr(x, "name", "") for x in asked if not isinstance(x, str)}
    by_name += [n for n in (suite.rungs if suite else ()) if n not in objects]
    on = suite.on.get(dataset, {}) if suite else {}
    chosen = []
    for name in dict.fromkeys(by_name):
        own = on.get(name, {})
        if own is False and name not in named:
            continue
        where = f"{suite.place}, [learners.{name}]" if suite else f"learner {name}"
        with blaming(_origin(name, suite, named)):
            cls = registry.learner(name)
        table = {**_table(suite.learners if suite else {}, name)}
        table |= {**(own or {}), **_table(profile.learners if profile else {}, name)}
        instances = _grid(cls, table, settings, registry, where)
        if name not in named and (lack := _lack(instances)):
            tell(f"left out: {lack}", False)
            continue
        chosen.append(ChosenLearner(name, instances, name in named))
    return chosen + _instances(asked, [c.name for c in chosen], settings)


def _lack(instances: Sequence[Any]) -> str:
    """What one of these learners lacks, in one line, or nothing."""
    from bench_core.keys import stamp_of

    try:
        for instance in instances:
            stamp_of(instance)
    except BenchError as error:
        return str(error)
    return ""


def lone_blind(learners: Sequence[ChosenLearner]) -> str:
    """What a run without a suite compares with: the one learner, if it is one, of the role
    ``reference``; else the one that has no ``tradeoff`` and is no rung."""
    meant = [c.name for c in learners if role(c.cls) == "reference"]
    blind = [
        c.name
        for c in learners
        if not role(c.cls) and not any(p.name == "tradeoff" for p in parameters(c.cls))
    ]
    found = meant or blind
    return found[0] if len(found) == 1 else ""


def role(cls: type[Any]) -> str:
    """``reference``, ``rung`` or nothing; see ``BudgetedLearner``."""
    return str(getattr(cls, "role", ""))


def _origin(name: str, suite: Suite | None, named: set[str]) -> str:
    """Where a learner's name was read."""
    if suite is None or name in named:
        return "--learners"
    for key, names in (("reference", [suite.reference]), ("rungs", suite.rungs)):
        if name in names:
            return f"{suite.place}, key '{key}'"
    return f"{suite.place}, [learners.{name}]"


def _table(tables: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return tables.get(name, {})


def _grid(
    cls: Any,
    table: Mapping[str, Any],
    settings: Sequence[Setting],
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    table = dict(table)
    for setting in settings:
        if setting.owner == cls.name:
            where = f"--set {setting.text}"
            table = with_setting(table, setting.path, setting.value)
    if "tradeoff" not in table and any(p.name == "tradeoff" for p in parameters(cls)):
        table["tradeoff"] = list(TRADEOFFS)
    return expand(cls, table, registry, where)


def _instances(
    asked: Sequence[Any], names: Sequence[str], settings: Sequence[Setting]
) -> list[ChosenLearner]:
    """Learners given as objects, those of one name together."""
    given: dict[str, list[Any]] = {}
    for learner in asked:
        if isinstance(learner, str):
            continue
        name = getattr(learner, "name", "")
        if not name or not callable(getattr(learner, "fit", None)) or not is_dataclass(learner):
            raise UsageError(
                f"learners: {learner!r} is neither a name nor a learner (a frozen dataclass with "
                "name, tasks, needs and fit)"
            )
        if name in names:
            raise UsageError(f"learner {name!r} is asked for by name and as an object: keep one")
        given.setdefault(name, []).append(learner)
    for setting in settings:
        if setting.owner in given:
            raise UsageError(f"--set {setting.text}: {setting.owner} was given as an object")
    return [ChosenLearner(name, tuple(made), True) for name, made in given.items()]


def describe(instance: Any, among: Sequence[Any]) -> str:
    """The parameters in which an instance differs from the others of its grid, in few words."""
    from bench_core.parameters import as_json

    mine, others = as_json(instance), [as_json(other) for other in among]
    varied = [k for k in mine if any(o.get(k) != mine[k] for o in others)]
    return " ".join(f"{k}={_short(mine[k])}" for k in varied)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return str(value.get("learner", "..."))
    return str(value).replace(" ", "")


def check_folds(dataset: Any, label: str, folds: Sequence[int]) -> None:
    """Refuse folds that a data set does not have."""
    count = getattr(dataset, "folds", 1)
    for fold in folds:
        if not 0 <= fold < count:
            has = f"folds 0 to {count - 1}" if count > 1 else "only fold 0"
            raise UsageError(f"data set {label} has {has}, not {fold}: choose by --folds")
