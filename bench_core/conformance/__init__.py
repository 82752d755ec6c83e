"""Checks that third parties run on their own plugins.

``bench check -p my_module`` runs all checks and reports the observed behaviour, the expected
behaviour and the remedy of each fault. In your own tests, a test for each check::

    from bench_core.conformance import promise_test

    test_it_keeps_its_promises = promise_test("my_module")

or for one object, with parameters that make a fit fast::

    from bench_core.conformance import check_learner

    def test_my_learner_keeps_its_promises():
        check_learner(MyLearner(trees=5))

``check_dataset``, ``check_metric``, ``check_cost_model`` and ``check_report`` work alike.
"""

from collections.abc import Callable, Iterable, Sequence
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
from bench_core.conformance.cases import (
    Case,
    ConformanceError,
    checks_of,
    examine,
    prices,
    run_all,
    task_splits,
    with_learners,
)
from bench_core.conformance.cost_model_checks import purchases
from bench_core.contracts import learner_of, metric_of, name_of
from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import UsageError, blaming
from bench_core.parameters import expand
from bench_core.planning.resolve_learners import parse_settings, with_setting
from bench_core.plugins import Registry, load_registry
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
    "promise_test",
    "task_splits",
]

Found = tuple[str, str]
"""Kind and name of an object that a plugin registers."""

_CHECKS: dict[str, tuple[ModuleType, ...]] = {
    "learner": (learner_checks, policy_checks),
    "data set": (dataset_checks,),
    "metric": (metric_checks,),
    "cost model": (cost_model_checks,),
    "report": (report_checks,),
}


def check_learner(learner: Any, tasks: Iterable[Task] | None = None) -> None:
    """Run all checks; ConformanceError has the lines of each broken promise."""
    run_all(learner_cases(learner, tasks))


def check_dataset(dataset: Any, source: Source | None = None) -> None:
    """Run all checks on a data set of profile quick; ``source`` locates its files."""
    run_all(_cases("data set", dataset, source))


def check_metric(metric: Any) -> None:
    """Run all checks on small tasks to which the metric applies."""
    run_all(_cases("metric", metric))


def check_cost_model(costs: Any) -> None:
    """Run all checks on a cost model, such as one from a cost file."""
    run_all(_cases("cost model", costs))


def check_report(report: Any) -> None:
    """Run all checks on a report, an instance or a module."""
    run_all(_cases("report", report))


def learner_cases(learner: Any, tasks: Iterable[Task] | None = None) -> list[Case]:
    """Return all cases on a small task of each kind that the learner and the learners it uses
    support (or of ``tasks``)."""
    return _cases("learner", learner, tasks=tasks)


def _cases(
    kind: str, value: Any, source: Source | None = None, tasks: Iterable[Task] | None = None
) -> list[Case]:
    """Return all cases of one object of a kind, on each task that it supports."""
    arguments: dict[str, tuple[Any, ...]]  # further arguments of checks, by task
    if kind == "learner":
        supported = sorted(map(Task, _done(value) if tasks is None else tasks))
        arguments = {task: (task_splits(task),) for task in supported}
    elif kind == "metric":
        tests = {task: task_splits(task).test for task in sorted(map(Task, value.tasks))}
        suits = metric_of(value).unsuitable
        arguments = {task: (task, test) for task, test in tests.items() if not suits(test)}
    elif kind == "data set":
        arguments = {"": (source or DataFolder(),)}
    else:
        arguments = {"": purchases(value) if kind == "cost model" else ()}
    cls = type(value)
    subject = f"{kind} {name_of(value) or '?'} (class {cls.__name__} of {cls.__module__})"
    checks = [check for module in _CHECKS[kind] for check in checks_of(module)]
    return [Case(subject, c, (value, *more), on) for on, more in arguments.items() for c in checks]


def _done(learner: Any) -> frozenset[Task]:
    learner = with_learners(learner)
    return frozenset(learner.tasks).intersection(*map(_done, learner_of(learner).needs()))


def promise_test(*names: str, settings: Sequence[str] = ()) -> Callable[[Case], None]:
    """Return a test for pytest with each case of these plugins, objects or modules as its
    parameter. They are named as for ``bench check``; a module need not be installed."""
    import pytest  # only authors of plugins need it

    registry = load_registry()
    known = {name for _, name in registry.origin} | {p.name for p in registry.plugins}
    if modules := [name for name in names if name not in known]:
        registry = load_registry(modules)
    cases = chosen_cases(registry, names, settings=settings)

    @pytest.mark.parametrize("promise", cases, ids=str)
    def test(promise: Case) -> None:
        promise()

    return test


def chosen_cases(
    registry: Registry,
    names: Sequence[str],
    modules: Sequence[str] = (),
    settings: Sequence[str] = (),
    kind: str = "",
    data_dir: str = "",
) -> list[Case]:
    """Return the cases of these names (objects or plugins), or of everything in ``modules``.

    ``settings`` are as in ``bench run`` (``miser.trees=5``); options of a cost model are given this
    way. Raises UsageError for an unknown name, and if there is nothing to check.
    """
    # name -> its parameters, as {"miser": {"trees": 5}}
    tables: dict[str, dict[str, Any]] = {}
    for setting in parse_settings(settings):
        with blaming(setting.given):
            table = tables.get(setting.owner, {})
            tables[setting.owner] = with_setting(table, setting.path, setting.value)
    kinds, objects = [kind] if kind else [*_CHECKS], list[Found]()
    for name in names:  # of an object, or of a plugin
        pairs = [(k, name) for k in kinds if (k, name) in registry.origin]
        if not (pairs := pairs or _given_by(registry, name)):
            known = {n for k, n in registry.origin if k in kinds}
            known |= {plugin.name for plugin in registry.plugins}
            raise UsageError(registry.unknown(kind or "name", name, known))
        objects += pairs
    for module in () if names else modules:  # everything registered by the modules
        objects += _given_by(registry, module)
    if not objects:
        given = ", ".join(modules) or "nothing is named"
        raise UsageError(f"{given}: no learner, data set, metric, cost model or report to check")
    if strange := set(tables) - {name for _, name in objects}:
        raise UsageError(f"--set {sorted(strange)[0]}...: this object is not checked")
    source = DataFolder(data_dir)
    return [
        case
        for what, name in dict.fromkeys(objects)
        for value in _made(registry, what, name, tables.get(name, {}))
        for case in _cases(what, value, source)
    ]


def _given_by(registry: Registry, plugin: str) -> list[Found]:
    """Return all objects that a plugin or module registers."""
    owners = registry.origin.items()
    return [pair for pair, p in owners if plugin in (p.name, p.module) and pair[0] in _CHECKS]


def _made(registry: Registry, kind: str, name: str, table: dict[str, Any]) -> Iterable[Any]:
    """Create the instances to check; several if a setting is a grid."""
    if kind == "learner":
        learners = expand(registry.learner(name), table, registry, f"learner {name}")
        for learner in learners:
            learner_of(learner).stamp()  # raises one line for a missing file or library
        return learners
    if kind == "data set":
        return expand(registry.dataset(name), table, registry, f"data set {name}")
    if kind != "cost model":
        return [registry.metrics[name] if kind == "metric" else registry.reports[name]]
    cls: Any = registry.cost_models[name]
    try:
        return [cls.from_options(prices(), table, int)]  # features are named 0 to 9
    except ValueError as error:
        example = f"--set '{name}.{(cls.options or ('key',))[0]}=VALUE'"
        raise UsageError(f"cost model {name}: {error}; give it by {example}") from error
