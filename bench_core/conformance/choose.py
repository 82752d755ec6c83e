"""The checks of a name, a plugin or a module of ``-p``."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_core.conformance import Case, cases_of, prices
from bench_core.contracts import learner_of
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import UsageError, blaming
from bench_core.parameters import expand
from bench_core.planning.settings import parse_setting, with_setting
from bench_core.plugins import Registry

KINDS = ("learner", "data set", "metric", "cost model", "report")

Found = tuple[str, str]
"""Kind and name of something that a plugin registers."""


def chosen_cases(
    registry: Registry,
    names: Sequence[str],
    modules: Sequence[str] = (),
    settings: Sequence[str] = (),
    kind: str = "",
    data_dir: Path | None = None,
) -> list[Case]:
    """The cases of these names (things, or plugins as a whole), or of all that ``modules`` give.

    ``settings`` are as those of ``bench run`` (``miser.trees=5``); a cost model takes its options
    from them. Raises UsageError for an unknown name, and where there is nothing to check.
    """
    tables = _tables(settings)
    found = [pair for name in names for pair in _named(registry, name, kind)]
    if not names:
        found = [pair for module in modules for pair in _given_by(registry, module)]
    if not found:
        given = ", ".join(modules) or "nothing is named"
        raise UsageError(f"{given}: no learner, data set, metric, cost model or report to check")
    if strange := set(tables) - {name for _, name in found}:
        raise UsageError(f"--set {sorted(strange)[0]}...: that is not checked here")
    source = DataFolder(data_dir)
    cases: list[Case] = []
    for what, name in dict.fromkeys(found):
        for value in _made(registry, what, name, tables.get(name, {})):
            cases += cases_of(what, value, source)
    return cases


def _tables(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The values set, by owner."""
    tables: dict[str, dict[str, Any]] = {}
    for setting in map(parse_setting, settings):
        with blaming(setting.given):
            own = tables.get(setting.owner, {})
            tables[setting.owner] = with_setting(own, setting.path, setting.value)
    return tables


def _named(registry: Registry, name: str, kind: str) -> list[Found]:
    """Everything of that name, or all that the plugin of that name registers."""
    kinds = [kind] if kind else KINDS
    if "learner" in kinds:
        name = registry.learner_name(name)
    if found := [(k, name) for k in kinds if (k, name) in registry.origin]:
        return found
    if own := _given_by(registry, name):
        return own
    for plugin in registry.plugins:
        if plugin.name == name and plugin.error:
            raise UsageError(f"plugin {name} does not load: {plugin.error}")
    known = {n for k, n in registry.origin if k in kinds} | {p.name for p in registry.plugins}
    raise UsageError(registry.unknown(kind or "name", name, known))


def _given_by(registry: Registry, plugin: str) -> list[Found]:
    """Everything that a plugin, or a module, registers."""
    return [
        (kind, name)
        for (kind, name), info in registry.origin.items()
        if plugin in (info.name, info.module) and kind in KINDS
    ]


def _made(registry: Registry, kind: str, name: str, table: Mapping[str, Any]) -> Iterable[Any]:
    """The instances to check; several where a setting is a grid."""
    if kind == "learner":
        learners = expand(registry.learner(name), table, registry, f"learner {name}")
        for learner in learners:
            learner_of(learner).stamp()  # a file or library that it lacks is one clear line
        return learners
    if kind == "data set":
        return expand(registry.dataset(name), table, registry, f"data set {name}")
    if kind == "cost model":
        return [_cost_model(registry.cost_models[name], table)]
    return [{"metric": registry.metrics, "report": registry.reports}[kind][name]]  # type: ignore[index]


def _cost_model(cls: Any, table: Mapping[str, Any]) -> Any:
    """A cost model of ten features, which are called 0 to 9."""
    try:
        return cls.from_options(prices(), table, int)
    except ValueError as error:
        example = f"--set '{cls.name}.{(cls.options or ('key',))[0]}=VALUE'"
        raise UsageError(f"cost model {cls.name}: {error}; give it by {example}") from error
