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

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench_core.conformance.case import Case, ConformanceError, examine, run_all
from bench_core.conformance.checks import CHECKS
from bench_core.conformance.cost_model_checks import COST_MODEL_CHECKS, purchases
from bench_core.conformance.dataset_checks import DATASET_CHECKS
from bench_core.conformance.edge_checks import EDGE_CHECKS
from bench_core.conformance.metric_checks import METRIC_CHECKS
from bench_core.conformance.report_checks import REPORT_CHECKS, Run, finished_run
from bench_core.conformance.tasks import prices, task_splits, with_learners
from bench_core.contracts import learner_of, name_of
from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.protocols import JudgesPictures, Source

__all__ = [
    "CHECKS",
    "Case",
    "ConformanceError",
    "cases_of",
    "check_cost_model",
    "check_dataset",
    "check_learner",
    "check_metric",
    "check_report",
    "examine",
    "learner_cases",
    "prices",
    "task_splits",
]


def learner_cases(learner: Any, tasks: Iterable[Task] | None = None) -> list[Case]:
    """Every promise on a small task of each kind that the learner, and all that it stands on, do
    (or of ``tasks``)."""
    chosen = sorted(_done(learner)) if tasks is None else list(tasks)
    found = []
    for task in map(Task, chosen):
        splits = task_splits(task)
        checks = (*CHECKS, *EDGE_CHECKS)
        found += [Case(_subject("learner", learner), c, (learner, splits), task) for c in checks]
    return found


def _done(learner: Any) -> frozenset[Task]:
    learner = with_learners(learner)
    return frozenset(learner.tasks).intersection(*map(_done, learner_of(learner).needs()))


def dataset_cases(dataset: Any, source: Source | None = None) -> list[Case]:
    """Every promise on a data set of profile quick; its files are looked for in ``source``."""
    given = dataset, source or DataFolder()
    return [Case(_subject("data set", dataset), check, given) for check in DATASET_CHECKS]


def metric_cases(metric: Any) -> list[Case]:
    """Every promise on small tasks of the kinds that the metric judges; none for a metric of
    pictures, for which there is no small task."""
    if isinstance(metric, JudgesPictures) and metric.pictures:
        return []
    found = []
    for task in sorted(Task(task) for task in metric.tasks):
        given = metric, task, task_splits(task).test
        found += [Case(_subject("metric", metric), c, given, task) for c in METRIC_CHECKS]
    return found


def cost_model_cases(costs: Any) -> list[Case]:
    """Every promise on a cost model, such as a cost file describes."""
    given = costs, *purchases(costs)
    return [Case(_subject("cost model", costs), check, given) for check in COST_MODEL_CHECKS]


def report_cases(report: Any) -> list[Case]:
    """Every promise on a report of a small run."""
    folder, run = _run()
    given = report, run, folder
    return [Case(_subject("report", report), check, given) for check in REPORT_CHECKS]


@cache
def _run() -> tuple[Path, Run]:
    """A finished run in a folder that lasts as long as this process."""
    folder = TemporaryDirectory(ignore_cleanup_errors=True)
    _KEPT.append(folder)
    return Path(folder.name), finished_run(Path(folder.name))


_KEPT: list[TemporaryDirectory[str]] = []


def cases_of(kind: str, value: Any, source: Source | None = None) -> list[Case]:
    """The cases of one plugin's thing: an instance of the ``kind`` that registries name."""
    make: dict[str, Callable[[], list[Case]]] = {
        "learner": lambda: learner_cases(value),
        "data set": lambda: dataset_cases(value, source),
        "metric": lambda: metric_cases(value),
        "cost model": lambda: cost_model_cases(value),
        "report": lambda: report_cases(value),
    }
    return make[kind]()


def _subject(kind: str, value: Any) -> str:
    cls = type(value)
    return f"{kind} {name_of(value) or '?'} (class {cls.__name__} of {cls.__module__})"


def check_learner(learner: Any, tasks: Iterable[Task] | None = None) -> None:
    """Run every check; ConformanceError with the lines of each promise that is broken."""
    run_all(learner_cases(learner, tasks))


def check_dataset(dataset: Any, source: Source | None = None) -> None:
    """Run every check on a data set of profile quick; its files are looked for in ``source``."""
    run_all(dataset_cases(dataset, source))


def check_metric(metric: Any) -> None:
    """Run every check on small tasks of the kinds that the metric judges."""
    run_all(metric_cases(metric))


def check_cost_model(costs: Any) -> None:
    """Run every check on a cost model, such as a cost file describes."""
    run_all(cost_model_cases(costs))


def check_report(report: Any) -> None:
    """Run every check on a report, which is an instance or a module."""
    run_all(report_cases(report))
