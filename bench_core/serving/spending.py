"""Spending of a served model: expected at its export, and found in the log of a service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.data import Examples
from bench_core.sequential import StoredPolicy

if TYPE_CHECKING:
    from bench_core.serving.predictor import Predictor

MOST, OF_POLICY = 10_000, 500
"""Rows that an expectation rests on, unless they are rows of queries; of a policy without a
program, which may take seconds for each."""
CHANGE, ERRORS = 0.05, 3.0
"""An alarm needs a larger change (of a mean, or of a share of rows), and more standard errors."""


class Figure(NamedTuple):
    """The mean cost of a row, or a share of rows: expected and in the log."""

    name: str
    expected: float
    logged: float
    alarm: bool


def expected_spending(model: Predictor, rows: Examples) -> dict[str, Any]:
    """Return the spending on rows as JSON values: their number ``rows``, ``mean`` and standard
    ``deviation`` of the cost, and the shares of rows that are ``capped`` or buy each column
    (``bought``, by name, without free ones)."""
    some: Any = slice(None)
    most = OF_POLICY if isinstance(model.program, StoredPolicy) else MOST
    if rows.queries is None and len(rows) > most:
        some = np.linspace(0, len(rows) - 1, most).astype(np.int64)
    prices = None if rows.price_columns is None else rows.price_columns[some]
    answers = model.predict_features(rows.X[some], rows.queries, prices=prices)
    weights = rows.weights[some]
    acquired = answers.acquired.rows(len(weights))
    bought: dict[str, BoolArray] = {}
    for s, names in model.sensors.items():
        for name in names:  # which is read once all of its sensors are bought
            bought[name] = bought.get(name, True) & acquired.has(s)
    mean = float(np.average(answers.spent, weights=weights))
    return {
        "rows": len(weights),
        "mean": mean,
        "deviation": float(np.sqrt(np.average((answers.spent - mean) ** 2, weights=weights))),
        "capped": float(np.average(answers.capped, weights=weights)),
        "bought": {k: float(np.average(rows, weights=weights)) for k, rows in bought.items()},
    }


def compare_spending(
    expected: Mapping[str, Any],
    spent: FloatArray,
    shares: Iterable[tuple[str, float, BoolArray]],
) -> list[Figure]:
    """Compare a log with the export's ``expected_spending``: costs ``spent`` (n,), n >= 1, and
    ``shares``, each a name, the expected share and the rows (n,) of the log that are meant. The
    log's rows count as independent."""
    n, before = len(spent), int(expected["rows"])
    mean, logged = float(expected["mean"]), float(spent.mean())
    of_one = max(float(spent.std()), float(expected["deviation"]))
    error = of_one * np.sqrt(1 / n + 1 / before)
    figures = [Figure("spent", mean, logged, _differs(logged - mean, error, CHANGE * mean))]
    for name, share, rows in shares:
        found = float(rows.mean())
        both = (n * found + before * share) / (n + before)
        error = np.sqrt(both * (1 - both) * (1 / n + 1 / before))
        figures.append(Figure(name, share, found, _differs(found - share, error, CHANGE)))
    return figures


def _differs(change: float, error: float, least: float) -> bool:
    return bool(abs(change) > max(ERRORS * error, least))
