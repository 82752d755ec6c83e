"""Labels of two kinds where a method knows no more: relevant or not, positive or negative."""

from __future__ import annotations

from bench_core import Examples, InputError, Task
from bench_core.arrays import BoolArray


def positives(learner: str, train: Examples, task: Task, relevant_grade: int) -> BoolArray:
    """Which rows are labelled +1, (n,): grades of at least ``relevant_grade``, or class 1.

    Raises InputError, which names the ``learner``, where all rows are alike.
    """
    ranking = task == Task.RANKING
    positive = train.y >= relevant_grade if ranking else train.y > 0.5
    if positive.any() and not positive.all():
        return positive
    if not ranking:
        raise InputError(
            f"{learner}: all training labels are {train.y[0]:g}; it needs both classes"
        )
    if positive.all():
        raise InputError(
            f"{learner}: every training document reaches grade {relevant_grade}; "
            "raise relevant_grade"
        )
    raise InputError(
        f"{learner}: no training document reaches grade {relevant_grade} "
        f"(the highest is {train.y.max():g}); lower relevant_grade"
    )
