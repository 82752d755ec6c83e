"""Training data that trouble learners, one function each: they must cope, or refuse in one line.

Each function fits a learner on small data of a kind that real tables hold and asks for a path that
keeps the contract (finite scores, bills that fit). A UsageError or InputError is a refusal.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench_core.arrays import Array
from bench_core.conformance.case import Check, ConformanceError
from bench_core.conformance.tasks import fit
from bench_core.costs.model import price_list
from bench_core.data import Examples, Queries
from bench_core.errors import BenchError
from bench_core.execution.contract import ContractError
from bench_core.execution.predict import predict_split
from bench_core.splits import SPLITS, Splits

FEW, WIDE = 60, 150  # rows; features, which need more than two words of bits


def check_missing_values(learner: Any, splits: Splits) -> None:
    """A feature that is never there, and rows of which nothing is there, do no harm.

    Remedy: replace NaN before arithmetic (``np.nan_to_num``), and by a constant where a mean of
    nothing but NaN would be taken.
    """

    def lose(part: Examples) -> Examples:
        X = np.array(part.X)
        X[:, 0] = np.nan
        X[:8] = np.nan
        return replace(part, X=_sealed(X))

    _copes(learner, _changed(splits, lose))


def check_constant_features(learner: Any, splits: Splits) -> None:
    """Features that never vary do no harm.

    Remedy: guard divisions by a deviation or a range, which may be 0.
    """
    _copes(learner, _changed(splits, lambda part: replace(part, X=_sealed(np.ones_like(part.X)))))


def check_one_class(learner: Any, splits: Splits) -> None:
    """Training labels that are all alike do no harm: rare classes are absent from some folds.

    Remedy: give scores of a column for every class of ``context.classes``, also one without rows.
    """
    y = _sealed(np.zeros(len(splits.train)))
    _copes(learner, replace(splits, train=replace(splits.train, y=y)))


def check_few_rows(learner: Any, splits: Splits) -> None:
    """One training and one validation row of each class or grade do, of numbers a single row.

    Remedy: guard divisions by a number of rows less one, and splits that leave nothing.
    """

    def keep(part: Examples) -> Examples:
        found = np.sort(np.unique(np.round(part.y), return_index=True)[1])
        rows = found if splits.classes or part.queries is not None else found[:1]
        queries = None if part.queries is None else Queries.from_sizes(np.array([len(rows)]))
        return Examples(_sealed(part.X[rows]), _sealed(part.y[rows]), queries)

    _copes(learner, _changed(splits, keep, ("train", "valid")))


def check_wide_data(learner: Any, splits: Splits) -> None:
    """More features than rows, and more sensors than a word has bits, do no harm.

    Remedy: pack purchases by ``prices.acquired`` or ``Acquired.pack``, and regularise.
    """

    def widen(part: Examples) -> Examples:
        more = np.random.default_rng(len(part)).normal(size=(len(part), WIDE))
        more[:, : part.X.shape[1]] = part.X
        return replace(part, X=_sealed(more.astype(np.float32)))

    wide = _changed(splits, widen)
    prices = price_list(np.ones(WIDE), split=0.25)
    _copes(learner, replace(wide, prices=prices, feature_names=()))


EDGE_CHECKS: tuple[Check, ...] = (
    check_missing_values,
    check_constant_features,
    check_one_class,
    check_few_rows,
    check_wide_data,
)


def _copes(learner: Any, splits: Splits) -> None:
    """Fit and predict; what the learner refuses in one line is let pass."""
    try:
        model = fit(learner, splits)
    except BenchError:
        return
    try:
        predict_split(model, splits.test, splits.prices, splits.classes)
    except ContractError as error:
        raise ConformanceError(str(error)) from error


def _changed(
    splits: Splits, change: Callable[[Examples], Examples], names: tuple[str, ...] = SPLITS
) -> Splits:
    """The splits with these parts cut to a few rows and then changed."""
    few: dict[str, Any] = {name: change(_few(getattr(splits, name))) for name in names}
    return replace(splits, **few)


def _few(part: Examples) -> Examples:
    if part.queries is None:
        return Examples(part.X[:FEW], part.y[:FEW])
    queries = part.queries.select(0, min(FEW // 5, len(part.queries)))
    return Examples(part.X[: queries.rows], part.y[: queries.rows], queries)


def _sealed(array: Array) -> Array:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
