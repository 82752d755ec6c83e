"""The plugin manager, and look-up by name.

Plugins are loaded one by one: one that fails to import becomes a row with its error, never a
crash. Nothing depends on the order in which plugins load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from bench_core import hookspecs
from bench_core.errors import UsageError, unknown

if TYPE_CHECKING:
    from bench_core.costs.model import CostModel
    from bench_core.protocols import BudgetedLearner, Dataset, Metric

GROUP = "bench"
_T = TypeVar("_T")
_HOOKS = ("bench_learners", "bench_datasets", "bench_metrics", "bench_cost_models", "bench_suites")
_NEEDED = {
    "bench_learners": ("name", "tasks", "needs", "fit"),
    "bench_datasets": ("name", "task", "files", "prepare"),
    "bench_metrics": ("name", "tasks"),
    "bench_cost_models": ("name", "options", "feature_cost", "surrogate", "from_options"),
}


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin as ``bench list plugins`` shows it."""

    name: str
    origin: str  # distribution or "-p"
    version: str
    module: str
    error: str = ""


@dataclass(slots=True)
class Registry:
    """Everything that plugins registered, by name."""

    learners: dict[str, type[BudgetedLearner]] = field(default_factory=dict)
    datasets: dict[str, type[Dataset]] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    cost_models: dict[str, type[CostModel]] = field(default_factory=dict)
    suite_folders: list[Path] = field(default_factory=list)
    plugins: list[PluginInfo] = field(default_factory=list)
    origin: dict[tuple[str, str], str] = field(default_factory=dict)
    warm_ups: dict[str, Callable[[Callable[[str], None]], None]] = field(default_factory=dict)

    def learner(self, name: str) -> type[BudgetedLearner]:
        """The learner class of that name, or UsageError with the nearest names."""
        return self._look_up("learner", name, self.learners)

    def dataset(self, name: str) -> type[Dataset]:
        """The data-set class of that name, or UsageError with the nearest names."""
        return self._look_up("data set", name, self.datasets)

    def warm_up(self, learners: Iterable[str], say: Callable[[str], None]) -> None:
        """Let the plugins of these learners get ready, each once."""
        plugins = {self.origin.get(("learner", name), "") for name in learners}
        for name in sorted(plugins & set(self.warm_ups)):
            self.warm_ups[name](say)

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> str:
        """As the function ``unknown``, with what does not load and may have had the name."""
        broken = (f"{p.name} does not load: {p.error}" for p in self.plugins if p.error)
        return unknown(kind, name, known, "; ".join(broken))

    def add(self, kind: str, name: str, value: Any, info: PluginInfo) -> None:
        """Register a value under its name. Raises UsageError naming both plugins of a duplicate."""
        known = self._known(kind)
        if name in known:
            raise UsageError(
                f"{kind} {name!r} is registered by two plugins, "
                f"{self.origin[kind, name]!r} and {info.name!r}: uninstall or rename one"
            )
        known[name] = value
        self.origin[kind, name] = info.name

    def _known(self, kind: str) -> dict[str, Any]:
        by_kind: dict[str, dict[str, Any]] = {
            "learner": self.learners,
            "data set": self.datasets,
            "metric": self.metrics,
            "cost model": self.cost_models,
        }
        return by_kind[kind]

    def _look_up(self, kind: str, name: str, known: Mapping[str, _T]) -> _T:
        if name in known:
            return known[name]
        raise UsageError(self.unknown(kind, name, known))

    def suites(self) -> dict[str, Path]:
        """Suite files by name (the file's stem)."""
        return {p.stem: p for folder in self.suite_folders for p in sorted(folder.glob("*.toml"))}


def load_registry(modules: Iterable[str] = ()) -> Registry:
    """Load every installed plugin, then the modules named by ``-p`` (which must import)."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    registry = Registry()
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        _load_entry_point(point, manager, registry)
    for module in modules:
        _load_module(module, manager, registry)
    return registry


def _load_entry_point(point: EntryPoint, manager: pluggy.PluginManager, to: Registry) -> None:
    origin = point.dist.name if point.dist else "?"
    version = point.dist.version if point.dist else "?"
    info = PluginInfo(point.name, origin, version, point.value)
    try:
        _register(point.load(), info, manager, to)
    except UsageError:
        raise
    except Exception as error:  # a broken third-party plugin must not stop the others
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        to.plugins.append(PluginInfo(point.name, origin, version, point.value, line))


def _load_module(module: str, manager: pluggy.PluginManager, to: Registry) -> None:
    try:
        plugin = import_module(module)
    except (Exception, SystemExit) as error:  # a script that ends itself
        raise UsageError(
            f"-p {module}: cannot import it ({type(error).__name__}: {error}); "
            "give a dotted module name importable from the current folder"
        ) from error
    if manager.is_registered(plugin):
        return
    try:
        _register(plugin, PluginInfo(module, "-p", "", module), manager, to)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        where = getattr(plugin, "__file__", module)
        raise UsageError(
            f"-p {module}: its hooks fail ({type(error).__name__}: {error}); mend {where}"
        ) from error


def _register(
    plugin: ModuleType, info: PluginInfo, manager: pluggy.PluginManager, to: Registry
) -> None:
    manager.register(plugin, name=info.name)
    try:
        manager.check_pending()  # a misspelt hook is an error, not silence
        found = {hook: _call(manager, hook, plugin) for hook in _HOOKS}
        for hook, needed in _NEEDED.items():
            for value in found[hook]:
                _check(hook, value, needed)
    except Exception:
        manager.unregister(plugin)
        raise
    for learner in found["bench_learners"]:
        to.add("learner", learner.name, learner, info)
    for dataset in found["bench_datasets"]:
        to.add("data set", dataset.name, dataset, info)
    for metric in found["bench_metrics"]:
        to.add("metric", metric.name, metric, info)
    for model in found["bench_cost_models"]:
        to.add("cost model", model.name, model, info)
    to.suite_folders.extend(Path(p) for p in found["bench_suites"])
    for warm_up in _implementations(manager, "bench_warm_up", plugin):
        to.warm_ups[info.name] = warm_up
    to.plugins.append(info)


def _check(hook: str, value: Any, needed: Iterable[str]) -> None:
    missing = [name for name in needed if not hasattr(value, name)]
    if missing:
        raise TypeError(f"{hook} gives {value!r}, which has no {' and no '.join(missing)}")


def _call(manager: pluggy.PluginManager, hook: str, plugin: ModuleType) -> list[Any]:
    """What one plugin alone answers to a hook."""
    return [item for function in _implementations(manager, hook, plugin) for item in function()]


def _implementations(
    manager: pluggy.PluginManager, hook: str, plugin: ModuleType
) -> list[Callable[..., Any]]:
    known = getattr(manager.hook, hook).get_hookimpls()
    return [i.function for i in known if i.plugin is plugin]
