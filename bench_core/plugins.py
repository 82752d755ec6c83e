"""The plugin manager, and look-up by name.

All plugins share one pluggy manager, and each hook is called once for all of them. ``tryfirst``,
``set_blocked`` and tracing therefore work as in pluggy's manual. By default this distribution's
plugins come first, then others by name, then modules of ``-p``.

An invalid plugin is unregistered and listed with its error: an import or a hook fails, a value
lacks a required member, or a name is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, wraps
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, entry_points
from inspect import isroutine
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bench_core.errors import UsageError, option, unknown

if TYPE_CHECKING:
    import pluggy

    from bench_core.costs.model import CostModel
    from bench_core.protocols import (
        BudgetedLearner,
        ColumnsOf,
        CompleteDataset,
        Dataset,
        Export,
        Metric,
        Report,
        SectionOf,
        SuiteKey,
    )

GROUP = "bench"
COMMANDS = "bench.commands"
INTERFACE = 1
"""Version of hooks and protocols. It increases when older plugins may break. A plugin may declare
the version it was made for: ``bench_interface = 1``."""
SLOW = 1.0  # seconds to import a plugin; lists report slower ones
OURS = "budget-bench"
FAULTS = (Exception, SystemExit)
"""Errors of a plugin's code, including scripts that call ``sys.exit``."""
HOOKS = {
    "bench_learners": ("learner", "learners"),
    "bench_datasets": ("data set", "datasets"),
    "bench_metrics": ("metric", "metrics"),
    "bench_cost_models": ("cost model", "cost_models"),
    "bench_reports": ("report", "reports"),
    "bench_suites": ("suite", "suite_files"),
    "bench_suite_keys": ("suite key", "suite_keys"),
    "bench_report_sections": ("report section", "sections"),
    "bench_columns": ("columns", "columns"),
    "bench_exports": ("export", "exports"),
}
"""Name of a hook's values in messages, and the registry field that holds them by name."""
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
        """Unique name, prefixed with the distribution for third-party plugins."""
        return self.name if self.origin == OURS else f"{self.origin}:{self.name}"


class Given(NamedTuple):
    """One value that a plugin registers."""

    plugin: PluginInfo
    kind: str
    name: str
    value: Any


def new_manager() -> pluggy.PluginManager:
    """Return a pluggy manager with this benchmark's hooks and no plugins."""
    import pluggy

    from bench_core import hookspecs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    return manager


@dataclass(slots=True)
class Registry:
    """All registered objects by name, and the ``manager`` of the plugins. ``origin`` is keyed by
    kind and name. ``notes`` are remarks on valid plugins."""

    learners: dict[str, type[BudgetedLearner]] = field(default_factory=dict)
    datasets: dict[str, type[Dataset]] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    cost_models: dict[str, type[CostModel]] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)
    suite_files: dict[str, Path] = field(default_factory=dict)
    suite_keys: dict[str, SuiteKey] = field(default_factory=dict)
    sections: dict[str, SectionOf] = field(default_factory=dict)
    columns: dict[str, ColumnsOf] = field(default_factory=dict)
    exports: dict[str, Export] = field(default_factory=dict)
    plugins: list[PluginInfo] = field(default_factory=list)
    origin: dict[tuple[str, str], PluginInfo] = field(default_factory=dict)
    notes: dict[PluginInfo, list[str]] = field(default_factory=dict)
    manager: pluggy.PluginManager = field(default_factory=new_manager)
    errors: dict[PluginInfo, BaseException] = field(default_factory=dict)

    def learner(self, name: str) -> type[BudgetedLearner]:
        """Return the learner class of that name; UsageError lists the nearest names."""
        return self._look_up("learner", name, self.learners)

    def dataset(self, name: str) -> type[Dataset]:
        """Return the data-set class of that name; UsageError lists the nearest names."""
        return self._look_up("data set", name, self.datasets)

    def export(self, name: str) -> Export:
        """Return the export format of that name; UsageError lists the nearest names."""
        return self._look_up("format", name, self.exports)

    def about_dataset(self, name: str) -> CompleteDataset:
        """Members of the data-set class of that name, with all defaults."""
        from bench_core.contracts import dataset_of

        return dataset_of(self.dataset(name))

    def _look_up(self, kind: str, name: str, known: Mapping[str, _T]) -> _T:
        if name in known:
            return known[name]
        raise UsageError(self.unknown(kind, name, known))

    def unknown(self, kind: str, name: str, names: Iterable[str]) -> str:
        """Message for an unknown name, with plugins that failed to load and may have defined it,
        and a module of the current folder that is called like it."""
        broken = (p for p in self.plugins if p.error)
        may = (
            p
            for p in broken
            if kind == "name" or "data set" in kind or not p.module.endswith(".toml")
        )
        why = [f"{p.name} does not load: {p.error}" for p in may]
        module = str(name).replace("-", "_")
        if module.isidentifier() and Path(f"{module}.py").is_file():
            why += [f"if {module}.py defines it, give {option('plugins', like=module)}"]
        return unknown(kind, name, names, "; ".join(why))

    def warm_up(self, learners: Iterable[str], say: Say) -> None:
        """Warm up for these learners, each function once; failures are only noted."""
        functions = {getattr(self.learners.get(name), "warm_up", None): name for name in learners}
        for warm_up, name in functions.items():
            try:
                if warm_up is not None:
                    warm_up(say)
            except FAULTS as error:
                say(f"learner {name}: its warm_up fails: {one_line(error)}")

    def add(self, info: PluginInfo, values: Iterable[tuple[str, str, Any]]) -> None:
        """Register (kind, name, value) triples of one plugin, all or none.

        Raises UsageError, which names both plugins, if a name is taken.
        """
        given = [Given(info, *value) for value in values]
        self.claim(given)
        self.plugins.append(info)
        self.keep(given)

    def claim(self, objects: Iterable[Given]) -> None:
        """Record the owner of these names; UsageError if one is taken."""
        claimed = dict(self.origin)  # kept only if all names are free
        ours = [n for (kind, n), p in claimed.items() if (kind, p.origin) == ("metric", OURS)]
        built_in = {name.partition("@")[0] for name in ours}
        for info, kind, name, _ in objects:
            # this distribution's families of metrics are known at any cut-off
            family = name.partition("@")[0]
            if kind == "metric" and info.origin != OURS and family in built_in:
                raise UsageError(f"metric {name!r} is built in, at any cut-off: rename it")
            if owner := claimed.get((kind, name)):
                by = f"by two plugins, {owner.name!r} and {info.name!r}: uninstall or rename one"
                if owner == info:
                    by = f"twice by {owner.name!r}: list it once"
                raise UsageError(f"{kind} {name!r} is registered {by}")
            claimed[kind, name] = info
        self.origin = claimed

    def keep(self, given: Iterable[Given]) -> None:
        """Store values by kind and name."""
        fields = dict(HOOKS.values())
        for one in given:
            getattr(self, fields[one.kind])[one.name] = one.value


def load_registry(
    modules: Iterable[str] = (), manager: pluggy.PluginManager | None = None
) -> Registry:
    """Load all installed plugins that the ``manager`` does not block, then the modules of ``-p``.
    An error in a module of ``-p`` is raised."""
    registry = Registry(manager=manager or new_manager())
    plugins = _imported(registry, [*modules])
    for info, plugin in reversed(plugins.items()):  # pluggy calls the last one first
        if info not in registry.errors:
            _register(plugin, info, registry)
    answers = [answer for hook in HOOKS for answer in getattr(registry.manager.hook, hook)()]
    objects: list[Given] = [entry for answer in answers for entry in answer]
    # in loading order, so that the first of two plugins of one name keeps it
    for info in plugins:
        try:
            if error := registry.errors.get(info):
                raise error
            registry.claim(entry for entry in objects if entry.plugin == info)
        except FAULTS as error:
            registry.errors[info] = error
            if registry.manager.has_plugin(info.key):
                registry.manager.unregister(name=info.key)
            if info.origin == "-p":
                raise _refused(info, error) from error
            info = replace(info, error=one_line(error))
        registry.plugins.append(info)
    registry.keep(entry for entry in objects if entry.plugin not in registry.errors)
    return registry


def _imported(registry: Registry, modules: Sequence[str]) -> dict[PluginInfo, Any]:
    """The module of each plugin, or None for one with an error."""
    from bench_core import contracts, hookspecs  # noqa: F401 - keep it out of plugins' import times

    # blocked plugins are not imported
    points = {about(point): point.load for point in installed()}
    loaders: dict[PluginInfo, Callable[[], Any]] = {
        info: load for info, load in points.items() if not registry.manager.is_blocked(info.key)
    }
    installed_modules = {info.module for info in points}
    for module in modules:
        if module not in installed_modules:
            loaders[PluginInfo(module, "-p", "", module)] = partial(import_module, module)
    plugins: dict[PluginInfo, Any] = {}
    for info, load in loaders.items():
        begun = perf_counter()
        try:
            plugins[info] = load()
        except FAULTS as error:
            plugins[info], registry.errors[info] = None, error
        # installed plugins only: the user of -p is developing the module
        if (seconds := perf_counter() - begun) > SLOW and info.origin not in (OURS, "-p"):
            line = f"took {seconds:.1f} s to import: import slow modules inside functions"
            registry.notes.setdefault(info, []).append(line)
    for module in modules:
        _check_place(module)
    return plugins


def _check_place(module: str) -> None:
    """Raise UsageError if the module in the current folder is not what was loaded."""
    loaded = getattr(sys.modules.get(module), "__file__", None) or ""
    path = Path(*module.split("."))
    here = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    if here and Path(loaded).is_file() and here[0].read_bytes() != Path(loaded).read_bytes():
        raise UsageError(
            f"{option('plugins', module)}: {loaded} hides {here[0]} of this folder, which differs; "
            "rename the file, or install it with 'pip install -e'"
        )


def _refused(info: PluginInfo, error: BaseException) -> UsageError:
    """Error of a ``-p`` module that cannot be loaded."""
    if isinstance(error, UsageError):
        return error
    remedy = f"correct {getattr(sys.modules.get(info.module), '__file__', 'the module')}"
    if isinstance(error, ImportError):
        absent = error.name and f"{info.module}.".startswith(f"{error.name}.")
        remedy = f"install {error.name}, or correct the module"
        if absent:
            remedy = "give a dotted module name importable from the current folder"
    if (path := Path(info.module)).suffix == ".py":
        remedy = f"give a module of the current folder by its name, {path.stem}"
    return UsageError(
        f"{option('plugins', info.module)}: cannot load it ({one_line(error)}); {remedy}"
    )


def _register(plugin: ModuleType, info: PluginInfo, to: Registry) -> None:
    """Register the hooks of a module; errors are recorded."""
    # the hooks of ``hookspecs``
    hook_names = [name for name in vars(to.manager.hook) if not name.startswith("_")]
    hooks = ModuleType("hooks")  # hooks only, as pluggy is slow for each name
    try:
        made_for = vars(plugin).get("bench_interface", INTERFACE)
        if made_for != INTERFACE:
            older = isinstance(made_for, int) and made_for < INTERFACE
            update = f"update {info.name if older else OURS}"
            raise UsageError(f"made for plugin interface {made_for}, this is {INTERFACE}: {update}")
        for name, function in vars(plugin).items():
            if isroutine(function) and hasattr(function, f"{GROUP}_impl"):
                if name not in hook_names:
                    raise TypeError(unknown("hook", name, hook_names))
                setattr(hooks, name, _guarded(function, name, info, to.errors))
            elif name in hook_names and callable(function):
                raise TypeError(f"{name} is not marked: write @hookimpl above it")
        if info.origin == "-p" and not set(vars(hooks)) & set(hook_names):
            raise TypeError("it has no hooks, as bench_learners; 'bench new' writes a module")
        to.manager.register(hooks, name=info.key)
    except FAULTS as error:
        to.errors[info] = error


def _guarded(
    function: Any, hook: str, info: PluginInfo, errors: dict[PluginInfo, BaseException]
) -> Any:
    """Wrap a plugin's hook so that it returns ``Given`` values, or records its error."""

    @wraps(function)
    def call(*arguments: Any) -> list[Given]:
        try:
            answer = function(*arguments)
            return [*_checked(info, hook, answer)]
        except FAULTS as error:
            errors.setdefault(info, error)
            return []

    return call


def _checked(info: PluginInfo, hook: str, answer: Any) -> Iterator[Given]:
    """Yield the values of a hook. Raises TypeError, ValueError or UsageError if invalid."""
    from bench_core.contracts import CONTRACTS, check, check_name

    kind, _ = HOOKS[hook]
    if answer is None:
        raise TypeError(f"{hook} gives nothing: return a list")
    if isinstance(answer, str | type) or not isinstance(answer, Iterable):
        raise TypeError(f"{hook} gives {answer!r}, which is not a list")
    objects: list[tuple[str, Any]] = []
    if isinstance(answer, Mapping):
        objects = [*answer.items()]
        if odd := [f"{name!r} is {one!r}" for name, one in objects if not callable(one)]:
            raise TypeError(f"{kind} {odd[0]}, which is not callable")
    elif kind == "suite":
        if absent := [folder for folder in answer if not Path(folder).is_dir()]:
            raise TypeError(f"{hook} gives {absent[0]}, which is not a folder")
        objects = [(p.stem, p) for folder in answer for p in sorted(Path(folder).glob("*.toml"))]
    else:
        for value in answer:
            check(value, CONTRACTS[hook], f"{hook} gives {value!r}")
            objects.append((value.name, value))
    for name, value in objects:
        check_name(kind, name)
        yield Given(info, kind, name, value)


def installed(group: str = GROUP) -> list[EntryPoint]:
    """Entry points of a group: this distribution's first, then by name."""
    points = entry_points(group=group)
    return sorted(points, key=lambda p: (about(p).origin != OURS, p.name, about(p).origin))


def about(point: EntryPoint) -> PluginInfo:
    """Description of an entry point, without loading it."""
    origin, version = _name_and_version(point.dist) if point.dist else ("?", "?")
    return PluginInfo(point.name, origin, version, point.value)


@lru_cache(maxsize=128)  # reading a distribution's metadata parses the full file
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    return distribution.name, distribution.version


def one_line(error: BaseException) -> str:
    """Error of a plugin as one line of a list."""
    kind = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())
