"""The promise of a model that can be exported: its program is the model."""

from typing import Any

import numpy as np

from bench_core.conformance.tasks import ConformanceError, fit
from bench_core.errors import UsageError
from bench_core.serving import Exportable, Folder, Predictor
from bench_core.splits import Splits


def check_program(learner: Any, splits: Splits) -> None:
    """Where the model has ``program(point)``, what it serves has the model's scores, purchases and
    costs, bit by bit, at the first, a middle and the last point.

    A program that raises UsageError, which says why there is none, is right too.
    """
    model = fit(learner, splits)
    if not isinstance(model, Exportable):
        return
    test = splits.test.features
    path = list(model.predict_path(test))  # type: ignore[attr-defined]
    for prediction in {id(p): p for p in (path[0], path[len(path) // 2], path[-1])}.values():
        try:
            program = model.program(prediction.point)
        except UsageError:
            return
        served = Predictor(Folder(program, splits.costs, splits.names, {"task": str(splits.task)}))
        found = served.predict_rows(test.X, test.queries)
        bill, n = prediction.bills["path"], len(test)
        cost = bill.feature_cost(splits.costs, n, test.queries)
        cost = cost + bill.evaluation_cost(splits.costs, n)
        parts = {
            "scores": (found.scores, prediction.scores),
            "purchases": (found.bought, bill.acquired.rows(n).unpack()),
            "costs": (found.spent, cost),
        }
        for name, (own, models) in parts.items():
            if not np.array_equal(own, models, equal_nan=True):
                row = int(np.argmax((own != models).reshape(n, -1).any(axis=1)))
                raise ConformanceError(
                    f"program({dict(prediction.point)}): other {name} than predict_path, row {row}"
                )
