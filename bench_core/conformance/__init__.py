"""Checks that third parties run on their own learner.

In a test of yours::

    from bench_core.conformance import cases, check_learner

    def test_my_learner_keeps_its_promises():
        check_learner(MyLearner(trees=5))

or one test for each promise::

    @pytest.mark.parametrize(("check", "splits"), cases(MyLearner()))
    def test_promise(check, splits):
        check(MyLearner(), splits)

Use parameters that make a fit quick: each promise fits once or a few times on a few hundred rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bench_core.conformance.checks import CHECKS, ConformanceError
from bench_core.conformance.tasks import task_splits, with_learners
from bench_core.contracts import learner_of
from bench_core.data import Task
from bench_core.splits import Splits

__all__ = ["CHECKS", "ConformanceError", "cases", "check_learner", "task_splits"]

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
    broken = []
    for check, splits in cases(learner, tasks):
        try:
            check(learner, splits)
        except Exception as error:
            what = "" if isinstance(error, ConformanceError) else f"{type(error).__name__}: "
            broken.append(f"{check.__name__} ({splits.task}): {what}{error}")
    if broken:
        raise ConformanceError("\n".join(broken))
