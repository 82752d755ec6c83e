"""The plugin manager, and look-up by name.

Plugins are loaded one by one into one pluggy manager: those of this distribution first, then by
name; those that are blocked there are left out. One that is invalid in any way (it does not import,
a hook raises, a value lacks what its contract requires, a name is taken) is taken out again and
becomes a row with its error. Learners of one name from several packages are the exception: they
are told apart as ``package:name``, and the name alone means that of this distribution, if it has
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from bench_core._io.entry_points import (
    EndedError,
    answers,
    contained,
    entry_points,
    hooks_of,
    loaded,
    module_of,
)
from bench_core.errors import UsageError, option, unknown

if TYPE_CHECKING:
    import pluggy

    from bench_core.costs.model import CostModel
    from bench_core.protocols import (
        BudgetedLearner,
        CompleteDataset,
        Dataset,
        Metric,
        Report,
        SectionOf,
        SuiteKey,
    )

GROUP = "bench"
COMMANDS = "bench.commands"
INTERFACE = 1
"""The version of hooks and contracts. It rises when a plugin made for the one before may no longer
be sound; a plugin may say which it was made for: ``bench_interface = 1``."""
SLOW = 1.0  # seconds that importing a plugin may take before lists say so
OURS = "budget-bench"
_T = TypeVar("_T")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin as ``bench list plugins`` shows it."""

    name: str
    origin: str  # distribution or "-p"
    version: str
    module: str
    error: str = ""

    @property
    def key(self) -> str:
        """Its name among all plugins, which are of several distributions."""
        return self.name if self.origin == OURS else f"{self.origin}:{self.name}"


def new_manager() -> pluggy.PluginManager:
    """A pluggy manager with the hooks of this benchmark and no plugin."""
    import pluggy

    from bench_core import hookspecs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    return manager


@dataclass(slots=True)
class Registry:
    """Everything that plugins registered, by name, and the ``manager`` that has all of them.
    ``origin`` is by kind and name, ``notes`` are what is odd of plugins that work, ``shared`` the
    spellings of a learner's name that several packages have."""

    learners: dict[str, type[BudgetedLearner]] = field(default_factory=dict)
    datasets: dict[str, type[Dataset]] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    cost_models: dict[str, type[CostModel]] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)
    suite_files: dict[str, Path] = field(default_factory=dict)
    suite_keys: dict[str, SuiteKey] = field(default_factory=dict)
    sections: dict[str, SectionOf] = field(default_factory=dict)
    plugins: list[PluginInfo] = field(default_factory=list)
    origin: dict[tuple[str, str], PluginInfo] = field(default_factory=dict)
    notes: dict[PluginInfo, list[str]] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)
    manager: pluggy.PluginManager = field(default_factory=new_manager)

    def learner(self, name: str) -> type[BudgetedLearner]:
        """The learner class of that name, or UsageError with the nearest names."""
        return self._look_up("learner", self.learner_name(name), self.learners)

    def learner_name(self, name: str) -> str:
        """The registered spelling of a learner's name, which may be ``package:name`` where the name
        alone would do. UsageError offers the spellings where several packages have the name."""
        if (spellings := self.shared.get(name)) and name not in self.learners:
            raise UsageError(
                f"learner {name!r} is in several packages: write {' or '.join(spellings)}"
            )
        package, _, bare = name.partition(":")
        owner = self.origin.get(("learner", bare))
        return bare if owner is not None and package in (owner.origin, owner.module) else name

    def about_dataset(self, name: str) -> CompleteDataset:
        """What the data-set class of that name says of itself, with all defaults."""
        from bench_core.contracts import dataset_of

        return dataset_of(self.dataset(name))

    def dataset(self, name: str) -> type[Dataset]:
        """The data-set class of that name, or UsageError with the nearest names."""
        return self._look_up("data set", name, self.datasets)

    def warm_up(self, learners: Iterable[str], say: Say) -> None:
        """Let the plugins of these learners get ready, each once; one that fails is only noted."""
        for info in dict.fromkeys(self.origin.get(("learner", name)) for name in learners):
            if info is not None:
                try:
                    with contained():
                        self.hook(info, "bench_warm_up")(say=say)
                except Exception as error:
                    say(f"plugin {info.name}: its bench_warm_up fails: {one_line(error)}")

    def hook(self, info: PluginInfo, name: str) -> pluggy.HookCaller:
        """A hook that asks one plugin alone."""
        own = self.manager.get_plugin(info.key)
        others = [plugin for plugin in self.manager.get_plugins() if plugin is not own]
        return self.manager.subset_hook_caller(name, others)

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> str:
        """As the function ``unknown``, with what does not load and may have had the name."""
        broken = (f"{p.name} does not load: {p.error}" for p in self.plugins if p.error)
        return unknown(kind, name, known, "; ".join(broken))

    def add(self, info: PluginInfo, given: Iterable[tuple[str, str, Any]]) -> None:
        """Register (kind, name, value) triples of one plugin, all or none.

        Raises UsageError naming both plugins where a name is taken; see ``_apart`` for learners.
        """
        values = list(given)
        seen: dict[tuple[str, str], PluginInfo] = dict(self.origin)
        for at, (kind, name, value) in enumerate(values):
            if kind == "learner":
                if self._tells_apart(name, info):
                    name = f"{info.origin}:{name}"
                values[at] = kind, name, value
            if kind == "metric" and info.origin != OURS and self._is_built_in(name):
                raise UsageError(f"metric {name!r} is built in, at any cut-off: rename it")
            if (kind, name) in seen or (kind == "learner" and name in self.shared):
                owner = seen[kind, name].name if (kind, name) in seen else self.shared[name][0]
                by = f"by two plugins, {owner!r} and {info.name!r}: uninstall or rename one"
                if owner == info.name:
                    by = f"twice by {owner!r}: list it once"
                raise UsageError(f"{kind} {name!r} is registered {by}")
            seen[kind, name] = info
        self.origin = seen
        self.plugins.append(info)
        for kind, name, value in values:
            self.of_kind(kind)[name] = _renamed(value, name) if kind == "learner" else value
            if kind == "learner" and ":" in name:
                self._share(name, info)

    def _is_built_in(self, metric: str) -> bool:
        """Whether a metric's family is one of this distribution, which is known at any cut-off."""
        ours = (
            name
            for (kind, name), by in self.origin.items()
            if (kind, by.origin) == ("metric", OURS)
        )
        return metric.partition("@")[0] in {name.partition("@")[0] for name in ours}

    def of_kind(self, kind: str) -> dict[str, Any]:
        """All of one kind, by name."""
        by_kind: dict[str, dict[str, Any]] = {
            "learner": self.learners,
            "data set": self.datasets,
            "metric": self.metrics,
            "cost model": self.cost_models,
            "report": self.reports,
            "suite": self.suite_files,
            "suite key": self.suite_keys,
            "report section": self.sections,
        }
        return by_kind[kind]

    def _tells_apart(self, name: str, info: PluginInfo) -> bool:
        """Whether a learner's name is that of another installed package."""
        owner = self.origin.get(("learner", name))
        other = name in self.shared or (owner is not None and owner.origin != info.origin)
        return other and "-p" not in (info.origin, owner.origin if owner else "")

    def _share(self, name: str, info: PluginInfo) -> None:
        """Let another third party's learner of the same name go by ``package:name`` too."""
        bare = name.partition(":")[2]
        owner = self.origin.get(("learner", bare))
        if owner is None or owner.origin == OURS:
            where = "of this benchmark" if owner else "of other packages too"
        else:
            where = f"of {owner.origin} too"
            other = f"{owner.origin}:{bare}"
            self.learners[other] = _renamed(self.learners.pop(bare), other)
            self.origin["learner", other] = self.origin.pop(("learner", bare))
            self.shared[bare] = [other]
            self.note(owner, f"learner {bare!r} is of {info.origin} too: write {other}")
        if bare in self.shared:
            self.shared[bare].append(name)
        self.note(info, f"learner {bare!r} is {where}: write {name}")

    def note(self, info: PluginInfo, line: str) -> None:
        """Remember what is odd of a plugin that works."""
        self.notes.setdefault(info, []).append(line)

    def _look_up(self, kind: str, name: str, known: Mapping[str, _T]) -> _T:
        if name in known:
            return known[name]
        raise UsageError(self.unknown(kind, name, known))


def load_registry(
    modules: Iterable[str] = (),
    without: Sequence[str] = (),
    manager: pluggy.PluginManager | None = None,
) -> Registry:
    """Load every installed plugin, but those of this distribution in the packages ``without`` and
    those that the ``manager`` blocks, then the modules named by ``-p``, which must be sound."""
    from bench_core import contracts, hookspecs  # noqa: F401 - so that no plugin's time counts it

    registry = Registry(manager=manager or new_manager())
    for point in installed():
        info = about(point)
        try:
            if info.origin == OURS and module_of(point).partition(".")[0] in without:
                continue
            if registry.manager.is_blocked(info.key):
                continue
            with contained():
                _load(point, info, registry)
        except Exception as error:
            registry.plugins.append(replace(info, error=one_line(error)))
    for module in modules:
        _load_module(module, registry)
    return registry


def of_module(module: str) -> PluginInfo:
    """A module of ``-p`` as a plugin."""
    return PluginInfo(module, "-p", "", module)


def _load(point: EntryPoint, info: PluginInfo, to: Registry) -> None:
    begun = perf_counter()
    plugin = loaded(point)
    seconds = perf_counter() - begun
    _register(plugin, info, to)
    if seconds > SLOW and info.origin != OURS:
        to.note(info, f"took {seconds:.1f} s to import: import what is heavy inside functions")


def installed(group: str = GROUP) -> list[EntryPoint]:
    """The entry points of a group: those of this distribution first, then by name."""
    points = entry_points(group=group)
    return sorted(points, key=lambda p: (about(p).origin != OURS, p.name, about(p).origin))


def about(point: EntryPoint) -> PluginInfo:
    """An entry point's description, known without loading it."""
    origin, version = _name_and_version(point.dist) if point.dist else ("?", "?")
    return PluginInfo(point.name, origin, version, point.value)


@lru_cache(maxsize=128)  # reading the metadata of a distribution parses its whole file
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    return distribution.name, distribution.version


def one_line(error: BaseException) -> str:
    """An error of a plugin as a row shows it."""
    error = error.error if isinstance(error, EndedError) else error
    kind = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())


def _renamed(cls: type[BudgetedLearner], name: str) -> type[BudgetedLearner]:
    """A learner's class by another name: a class of ours, since nothing is written into others'."""
    if cls.name == name:
        return cls
    about = {n: getattr(cls, n) for n in ("__module__", "__qualname__", "__doc__")}
    made: Any = type(cls)
    renamed: type[BudgetedLearner] = made(cls.__name__, (cls,), {**about, "name": name})
    return renamed


def _load_module(module: str, to: Registry) -> None:
    try:
        with contained():
            plugin = import_module(module)
    except Exception as error:  # also of a script that ends itself
        remedy = "give a dotted module name importable from the current folder"
        lacking = error.name if isinstance(error, ImportError) else None
        if lacking and not f"{module}.".startswith(f"{lacking}."):
            remedy = f"install {lacking}, or correct the module"
        raise UsageError(
            f"{option('plugin', module)}: cannot import it ({one_line(error)}); {remedy}"
        ) from error
    if any(p.module == module and not p.error for p in to.plugins):
        return
    try:
        with contained():
            _register(plugin, of_module(module), to)
    except UsageError:
        raise
    except Exception as error:
        why = f"its hooks fail ({one_line(error)}); correct {getattr(plugin, '__file__', module)}"
        raise UsageError(f"{option('plugin', module)}: {why}") from error


def _register(plugin: ModuleType, info: PluginInfo, to: Registry) -> None:
    from bench_core.contracts import check_name

    _check_interface(plugin, info)
    to.manager.register(hooks_of(plugin, to.manager), name=info.key)
    try:
        for kind, name, _ in (found := list(_given(partial(to.hook, info)))):
            check_name(kind, name)
        to.add(info, found)
    except BaseException:
        to.manager.unregister(name=info.key)
        raise


def _check_interface(plugin: ModuleType, info: PluginInfo) -> None:
    """Refuse a plugin that says it was made for another version of hooks and contracts."""
    made_for = vars(plugin).get("bench_interface", INTERFACE)
    if made_for != INTERFACE:
        older = isinstance(made_for, int) and made_for < INTERFACE
        update = f"update {info.name if older else OURS}"
        raise UsageError(f"made for plugin interface {made_for}, this is {INTERFACE}: {update}")


def _given(hook: Callable[[str], pluggy.HookCaller]) -> Iterator[tuple[str, str, Any]]:
    """(kind, name, value) of all that one plugin gives, each checked."""
    from bench_core.contracts import CONTRACTS, check

    for name, (kind, contract) in CONTRACTS.items():
        for answer in answers(hook(name)):
            for value in answer:
                check(value, contract, f"{name} gives {value!r}")
                yield kind, value.name, value
    for folders in answers(hook("bench_suites")):
        for folder in map(Path, folders):
            if not folder.is_dir():
                raise TypeError(f"bench_suites gives {folder}, which is no folder")
            yield from (("suite", p.stem, p) for p in sorted(folder.glob("*.toml")))
    for kind, found in (
        ("suite key", answers(hook("bench_suite_keys"))),
        ("report section", answers(hook("bench_report_sections"))),
    ):
        for answer in found:
            for name, function in answer.items():
                if not callable(function):
                    raise TypeError(f"{kind} {name!r} is {function!r}, which cannot be called")
                yield kind, name, function
