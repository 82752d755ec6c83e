"""What queries cost by splits, trees and sensors counted along a model's program, row by row.

A model that can be exported (``serving``) is a program of steps; walking it in plain Python shares
no code with the model's own bill.
"""

from typing import Any

import numpy as np

from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import ParallelPrices
from bench_core.data import Examples
from bench_core.errors import UsageError
from bench_core.execution.predict import Path, units
from bench_core.serving import Exportable, Folder, Predictor

QUERIES, POINTS = 10, 5
TOLERANCE = 1e-9


def recount(
    model: Any, examples: Examples, costs: CostModel, path: Path, rng: np.random.Generator
) -> str:
    """Why the costs of some queries in ``path`` are not what they come to, or nothing.

    Nothing is counted of a model without a program, nor where copies of rows share a bill.
    """
    shares = examples.multiplicity is not None and not isinstance(
        costs, SensorPrices | ParallelPrices
    )
    if shares or not isinstance(model, Exportable):
        return ""
    boundaries, queries = units(examples.features), examples.queries
    chosen = rng.permutation(len(boundaries) - 1)[:QUERIES]
    names = tuple(map(str, range(examples.X.shape[1])))
    for p in rng.permutation(len(path.points))[:POINTS]:
        try:
            served = Predictor(Folder(model.program(path.points[p]), costs, names, {}))
        except UsageError:
            return ""
        for u in chosen:
            rows = slice(int(boundaries[u]), int(boundaries[u + 1]))
            alone = None if queries is None else queries.select(int(u), int(u) + 1)
            spent = served.predict_rows(np.asarray(examples.X[rows]), alone).spent
            if bool(np.any(np.abs(spent - path.cost[p, rows]) > TOLERANCE * path.cost[p, rows])):
                at = f"query {u} at {dict(path.points[p])}"
                return f"{at}: its splits, trees and sensors counted anew cost otherwise"
    return ""
