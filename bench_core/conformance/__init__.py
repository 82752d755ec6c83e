"""Checks that third parties run on their own plugins.

``bench check -p my_module`` runs them all and says of each fault what was seen, what was expected
and how to fix it. In a test of yours, with the fixture of the pytest plugin that comes along::

    @pytest.mark.bench_check("my_module")
    def test_it_keeps_its_promises(promise):
        promise()

or for one object, at parameters that make a fit quick::

    from bench_core.conformance import check_learner

    def test_my_learner_keeps_its_promises():
        check_learner(MyLearner(trees=5))

``check_dataset``, ``check_metric``, ``check_cost_model`` and ``check_report`` are alike.
"""

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from bench_core.conformance import (
    cost_model_checks,
    dataset_checks,
    learner_checks,
    metric_checks,
    policy_checks,
    report_checks,
)
from bench_core.conformance.case import Case, ConformanceError, checks_of, examine, run_all
from bench_core.conformance.cost_model_checks import purchases
from bench_core.conformance.report_checks import finished_run
from bench_core.conformance.tasks import prices, task_splits, with_learners
from bench_core.contracts import learner_of, metric_of, name_of
from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import UsageError, blaming
from bench_core.parameters import expand
from bench_core.planning.resolve_learners import parse_setting, with_setting
from bench_core.plugins import Registry
from bench_core.protocols import Source

__all__ = [
    "Case",
    "ConformanceError",
    "check_cost_model",
    "check_dataset",
    "check_learner",
    "check_metric",
    "check_report",
    "chosen_cases",
    "examine",
    "learner_cases",
    "prices",
    "task_splits",
]

Found = tuple[str, str]
"""Kind and name of something that a plugin registers."""

_CHECKS: dict[str, tuple[ModuleType, ...]] = {
    "learner": (learner_checks, policy_checks),
    "data set": (dataset_checks,),
    "metric": (metric_checks,),
    "cost model": (cost_model_checks,),
    "report": (report_checks,),
}


def check_learner(learner: Any, tasks: Iterable[Task] | None = None) -> None:
    """Run every check; ConformanceError with the lines of each promise that is broken."""
    run_all(learner_cases(learner, tasks))


def check_dataset(dataset: Any, source: Source | None = None) -> None:
    """Run every check on a data set of profile quick; its files are looked for in ``source``."""
    run_all(_cases("data set", dataset, source))


def check_metric(metric: Any) -> None:
    """Run every check on small tasks of the kinds that the metric judges."""
    run_all(_cases("metric", metric))


def check_cost_model(costs: Any) -> None:
    """Run every check on a cost model, such as a cost file describes."""
    run_all(_cases("cost model", costs))


def check_report(report: Any) -> None:
    """Run every check on a report, which is an instance or a module."""
    run_all(_cases("report", report))


def learner_cases(learner: Any, tasks: Iterable[Task] | None = None) -> list[Case]:
    """Every promise on a small task of each kind that the learner, and all that it stands on, do
    (or of ``tasks``)."""
    return _cases("learner", learner, tasks=tasks)


def _cases(
    kind: str, value: Any, source: Source | None = None, tasks: Iterable[Task] | None = None
) -> list[Case]:
    """Every check of one plugin's thing, an instance of a kind, on each task that it does."""
    given: dict[str, tuple[Any, ...]]  # what checks get besides the thing, by task
    if kind == "learner":
        done = sorted(map(Task, _done(value) if tasks is None else tasks))
        given = {task: (task_splits(task),) for task in done}
    elif kind == "metric":
        done = [] if metric_of(value).pictures else sorted(map(Task, value.tasks))
        given = {task: (task, task_splits(task).test) for task in done}
    elif kind == "data set":
        given = {"": (source or DataFolder(),)}
    else:
        given = {"": purchases(value) if kind == "cost model" else finished_run()}
    cls = type(value)
    subject = f"{kind} {name_of(value) or '?'} (class {cls.__name__} of {cls.__module__})"
    checks = [check for module in _CHECKS[kind] for check in checks_of(module)]
    return [Case(subject, c, (value, *more), on) for on, more in given.items() for c in checks]


def _done(learner: Any) -> frozenset[Task]:
    learner = with_learners(learner)
    return frozenset(learner.tasks).intersection(*map(_done, learner_of(learner).needs()))


def chosen_cases(
    registry: Registry,
    names: Sequence[str],
    modules: Sequence[str] = (),
    settings: Sequence[str] = (),
    kind: str = "",
    data_dir: str = "",
) -> list[Case]:
    """The cases of these names (things, or plugins as a whole), or of all that ``modules`` give.

    ``settings`` are as those of ``bench run`` (``miser.trees=5``); a cost model takes its options
    from them. Raises UsageError for an unknown name, and where there is nothing to check.
    """
    # name -> its parameters, as {"miser": {"trees": 5}}
    tables: dict[str, dict[str, Any]] = {}
    for setting in map(parse_setting, settings):
        with blaming(setting.given):
            own = tables.get(setting.owner, {})
            tables[setting.owner] = with_setting(own, setting.path, setting.value)
    found = [pair for name in names for pair in _named(registry, name, kind)]
    if not names:  # all that the modules register
        found = [pair for module in modules for pair in _given_by(registry, module)]
    if not found:
        given = ", ".join(modules) or "nothing is named"
        raise UsageError(f"{given}: no learner, data set, metric, cost model or report to check")
    if strange := set(tables) - {name for _, name in found}:
        raise UsageError(f"--set {sorted(strange)[0]}...: that is not checked here")
    source = DataFolder(data_dir)
    return [
        case
        for what, name in dict.fromkeys(found)
        for value in _made(registry, what, name, tables.get(name, {}))
        for case in _cases(what, value, source)
    ]


def _named(registry: Registry, name: str, kind: str) -> list[Found]:
    """Everything of that name, or all that the plugin of that name registers."""
    kinds = [kind] if kind else list(_CHECKS)
    if "learner" in kinds:
        name = registry.learner_name(name)
    found = [(k, name) for k in kinds if (k, name) in registry.origin] or _given_by(registry, name)
    if not found:
        known = {n for k, n in registry.origin if k in kinds} | {p.name for p in registry.plugins}
        raise UsageError(registry.unknown(kind or "name", name, known))
    return found


def _given_by(registry: Registry, plugin: str) -> list[Found]:
    """Everything that a plugin, or a module, registers."""
    owners = registry.origin.items()
    return [pair for pair, p in owners if plugin in (p.name, p.module) and pair[0] in _CHECKS]


def _made(registry: Registry, kind: str, name: str, table: dict[str, Any]) -> Iterable[Any]:
    """The instances to check; several where a setting is a grid."""
    if kind == "learner":
        learners = expand(registry.learner(name), table, registry, f"learner {name}")
        for learner in learners:
            learner_of(learner).stamp()  # a file or library that it lacks is one clear line
        return learners
    if kind == "data set":
        return expand(registry.dataset(name), table, registry, f"data set {name}")
    if kind != "cost model":
        return [registry.metrics[name] if kind == "metric" else registry.reports[name]]
    cls: Any = registry.cost_models[name]
    try:
        return [cls.from_options(prices(), table, int)]  # of features that are called 0 to 9
    except ValueError as error:
        example = f"--set '{name}.{(cls.options or ('key',))[0]}=VALUE'"
        raise UsageError(f"cost model {name}: {error}; give it by {example}") from error
