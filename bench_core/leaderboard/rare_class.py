"""Right answers by class at chosen points, and the sentence on a rare class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.board import ClassRows
from bench_core.leaderboard.bought_sensors import values_at
from bench_core.leaderboard.draws import uses_of

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

RARE = 0.2
"""Share of test rows below which a class is rare; of many classes half an equal share."""

FEW_OF_A_CLASS = 5
"""Test rows of a class that a model may miss without a remark."""


def class_rows(
    store: Store | None,
    info: RunInfo,
    model: pd.DataFrame,
    reference: pd.DataFrame,
    right: FloatArray | None = None,
) -> tuple[ClassRows, ...]:
    """Return the classes with the test rows that are answered right at the points of a model, one
    of each repeat, and at the reference's (NaN if they are not stored): means over the model's
    repeats. ``right`` (classes,) is used if the model's are not stored; () if they are unknown."""
    if store is None or model.empty:
        return ()
    repeats = {*zip(model["fold"], model["seed"], strict=True)}
    dataset = str(model["dataset"].iloc[0])
    uses = [use for use in uses_of(info, dataset) if (use.fold, use.seed) in repeats]
    labels = [*uses[0].test_classes] if uses else []
    if not labels or any([*use.test_classes] != labels for use in uses):
        return ()
    of_model = _right(store, info.run, model, len(labels))
    if of_model is None and right is None:
        return ()
    same = [repeat in repeats for repeat in zip(reference["fold"], reference["seed"], strict=True)]
    of_reference = _right(store, info.run, reference[same], len(labels))
    sizes = np.mean([[*use.test_classes.values()] for use in uses], axis=0)
    columns = [
        np.full(len(labels), math.nan) if column is None else column
        for column in (sizes, right if of_model is None else of_model, of_reference)
    ]
    return tuple(
        ClassRows(label, *map(float, rows)) for label, *rows in zip(labels, *columns, strict=True)
    )


def _right(store: Store, run: str, points: pd.DataFrame, classes: int) -> FloatArray | None:
    """Return the right answers by class (classes,) at a learner's points on test, the mean over
    repeats; None if they are not stored."""
    stored = [] if points.empty else values_at(store, run, points)
    answers = np.zeros(classes)
    for values, k in stored:
        if values.right is None:
            return None
        # an old store lacks the last classes if a split has no rows of them
        answers[: len(values.right[k])] += values.right[k] / len(stored)
    return answers if stored else None


def rare_class(
    classes: Sequence[ClassRows],
    model: str,
    reference: str = "",
    repeats: int = 1,
    noun: str = "test row",
) -> str:
    """Return the sentence on the rare class of which a model finds fewer than half of the rows,
    else on the one whose recall changes most, if by at least one row; "" if there is none."""
    least = math.fsum(group.rows for group in classes) * min(RARE, 0.5 / max(len(classes), 1))

    def missed(group: ClassRows) -> bool:
        return group.rows >= FEW_OF_A_CLASS and group.model < group.rows / 2

    def change(group: ClassRows) -> float:
        return 0.0 if math.isnan(group.reference) else abs(group.model - group.reference)

    rare = [
        group
        for group in classes
        if 0 < group.rows < least and (missed(group) or change(group) >= 1)
    ]
    if not rare:
        return ""
    most = max(
        rare,
        key=lambda group: (missed(group), change(group) / group.rows, -group.model / group.rows),
    )
    figures = (most.rows, most.model, most.reference)
    rows, own, other = (f"{number:.{int(repeats > 1)}f}" for number in figures)
    words = f"{model} finds {own}"
    if model != reference and not math.isnan(most.reference):
        words += f"; {reference} finds {other}"
    elif change(most):
        words += f"; at its best it finds {other}"
    return f"Of {rows} {noun}{'s' * (rows != '1')} of '{most.label}', {words}."
