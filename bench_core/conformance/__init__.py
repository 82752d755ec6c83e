"""Checks that third parties run on their own learners, data sets, metrics and cost models.

In a test of yours::

    from bench_core.conformance import cases, check_learner

    def test_my_learner_keeps_its_promises():
        check_learner(MyLearner(trees=5))

or one test for each promise::

    @pytest.mark.parametrize(("check", "splits"), cases(MyLearner()))
    def test_promise(check, splits):
        check(MyLearner(), splits)

Use parameters that make a fit quick: each promise fits once or a few times on a few hundred rows.
``check_dataset``, ``check_metric`` and ``check_cost_model`` are alike.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from bench_core.conformance import plugin_checks as plugins
from bench_core.conformance.checks import CHECKS
from bench_core.conformance.tasks import ConformanceError, run_all, task_splits, with_learners
from bench_core.contracts import learner_of
from bench_core.data import Task
from bench_core.datasets.search import DataFolder
from bench_core.protocols import Source
from bench_core.splits import Splits

__all__ = [
    "CHECKS",
    "ConformanceError",
    "cases",
    "check_cost_model",
    "check_dataset",
    "check_learner",
    "check_metric",
    "task_splits",
]

Check = Callable[[Any, Splits], None]


def cases(learner: Any, tasks: Iterable[Task] | None = None) -> list[tuple[Check, Splits]]:
    """Every promise on a small task of each kind that the learner, and all that it stands on, do
    (or of ``tasks``)."""
    chosen = sorted(_done(learner)) if tasks is None else list(tasks)
    return [(check, task_splits(Task(task))) for task in chosen for check in CHECKS]


def _done(learner: Any) -> frozenset[Task]:
    learner = with_learners(learner)
    return frozenset(learner.tasks).intersection(*map(_done, learner_of(learner).needs()))


def check_learner(learner: Any, tasks: Iterable[Task] | None = None) -> None:
    """Run every check; ConformanceError with a line for each promise that is broken."""
    run_all(
        (f"{check.__name__} ({splits.task})", partial(check, learner, splits))
        for check, splits in cases(learner, tasks)
    )


def check_dataset(dataset: Any, source: Source | None = None) -> None:
    """Run every check on a data set of profile quick; its files are looked for in ``source``."""
    found = source or DataFolder()
    run_all((check.__name__, partial(check, dataset, found)) for check in plugins.DATASET_CHECKS)


def check_metric(metric: Any) -> None:
    """Run every check on small tasks of the kinds that the metric judges."""
    run_all(
        (f"{check.__name__} ({task})", partial(check, metric, task, task_splits(task).test))
        for task in sorted(metric.tasks)
        for check in plugins.METRIC_CHECKS
    )


def check_cost_model(costs: Any) -> None:
    """Run every check on a cost model, such as a cost file describes."""
    bought, queries = plugins.purchases(costs)
    run_all(
        (check.__name__, partial(check, costs, bought, queries))
        for check in plugins.COST_MODEL_CHECKS
    )
