"""Other libraries as learners: their models are imported and metered like our own trees.

Each library has one plugin (``lightgbm``, ``xgboost``, ``catboost``, ``scikit``). None is imported
before a fit. A model's state holds only arrays, so prediction never needs the library. The
exception are scikit-learn's estimators without trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bench_core import (
    Examples,
    FitContext,
    InputError,
    Prices,
    Queries,
    Task,
    UsageError,
    check_memory,
    param,
)
from bench_core.arrays import FloatArray, IntArray
from bench_models.boosting import BINS, BoostedTrees, bins_for, chain, loss_of, prefix_chain
from bench_models.staged import StagedModel
from bench_models.tradeoff import LossPrices
from bench_models.tree_average import TreeAverage

if TYPE_CHECKING:
    from bench_trees.importers import Imported

_FAR = 30.0  # in log-odds

LibraryModel = StagedModel | TreeAverage

Parameters = dict[str, Any]

Costs = tuple[Parameters, Mapping[str, Any]]
"""A library's parameters for costs, and facts to keep."""


@dataclass(frozen=True, kw_only=True)
class LibraryTrees(BoostedTrees):
    """Boosted trees trained by a library; its learner adds only the call."""

    name: ClassVar[str]
    distributions: ClassVar[tuple[str, ...]]
    """The library's distributions, one of which must be installed."""
    ranking_limits: ClassVar[tuple[float, float]] = (np.inf, np.inf)
    """The largest grade and the most rows of a query that its ranking loss accepts. A finite
    largest grade also requires integer grades."""

    trees: int = param(300, "boosting iterations (for K classes K trees each)", least=1)
    max_bins: int = param(255, BINS, least=2)

    def stamp(self) -> str:
        """The library's version."""
        return version_of(self.name, *self.distributions)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LibraryModel:
        """Boost on ``train``; ``valid`` is not used.

        Raises InputError where the labels cannot be learned from.
        """
        from bench_trees.importers import read_model

        self.stamp()
        check_classes(self.name, train, context.task)
        loss, _ = loss_of(context.task, self.loss, context.classes)
        costs, facts = self._costs(train, prices, context)
        rows = with_physical_copies(train)
        if loss == "lambdarank":
            _check_ranking(self.name, rows, *self.ranking_limits)
        own = replace(self, max_bins=bins_for(train, self.max_bins))
        with library_errors(self.name):
            raw = own._trained({**own._parameters(loss, context), **costs}, rows, loss, context)
        model = read_model(raw)
        if loss == "softmax" and (vectors := model.ensemble.vectors) is not None:
            present = np.unique(train.y).astype(np.int64)
            model = _all_classes(model, vectors, present, context.classes)
        return serve(model, prices, {"loss": loss, **facts})

    def _parameters(self, loss: str, context: FitContext) -> Parameters:
        """The library's parameters, except the ones for costs."""
        raise NotImplementedError

    def _costs(self, train: Examples, prices: Prices, context: FitContext) -> Costs:
        return {}, {}

    def _trained(self, how: Parameters, rows: Examples, loss: str, context: FitContext) -> bytes:
        """The model as written by the library."""
        raise NotImplementedError


@cache
def version_of(learner: str, *distributions: str) -> str:
    """The version of the first installed distribution of these, without importing it.

    Raises UsageError with the command that installs it.
    """
    for name in distributions:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    raise UsageError(
        f"{learner} needs {distributions[0]}, which is not installed: "
        "pip install 'budget-bench[peers]'"
    )


@contextmanager
def library_errors(learner: str) -> Iterator[None]:
    """Raise a library's error about the data as one line; float32's largest values, which overflow
    in its sums, are no error."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (UsageError, InputError):
        raise
    except Exception as error:
        check_memory(error, learner)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = lines[0] if lines else type(error).__name__
        raise InputError(f"{learner}: {type(error).__name__}: {text}") from error


def with_physical_copies(train: Examples) -> Examples:
    """Every row repeated by its multiplicity: limits on rows and bins then count copies."""
    copies = train.multiplicity
    if copies is None:
        return train
    queries = train.queries
    if queries is not None:
        sizes = np.add.reduceat(copies, queries.boundaries[:-1])
        queries = Queries.from_sizes(sizes)
    return Examples(np.repeat(train.X, copies, axis=0), np.repeat(train.y, copies), queries)


def check_classes(learner: str, train: Examples, task: Task) -> None:
    """Raise InputError where all training labels are of one class."""
    if task in (Task.BINARY, Task.MULTICLASS) and len(np.unique(train.y)) < 2:
        raise InputError(
            f"{learner}: all training labels are {train.y[0]:g}; it needs at least two classes"
        )


def _check_ranking(learner: str, train: Examples, largest: float, rows: float) -> None:
    fractions = train.y[train.y % 1 > 0] if largest < np.inf else train.y[:0]
    what = f"a grade of {train.y.max():g}" if train.y.max() > largest else ""
    what = f"a grade of {fractions[0]:g}" if len(fractions) else what
    if group_sizes(train).max() > rows:
        what = f"a query of {group_sizes(train).max()} rows"
    if what:
        most = f" and queries of at most {rows:g} rows" if rows < np.inf else ""
        raise InputError(
            f"{learner}: loss lambdarank takes integer grades from 0 to {largest:g}{most}, and "
            f"there is {what}; set loss = squared, or scale the labels"
        )


def bought_alone(row: LossPrices, prices: Prices) -> FloatArray:
    """The cost of each feature for one row in loss units if nothing else is bought, (d,)."""
    return np.asarray(prices.needs @ row.sensor)


def group_sizes(train: Examples) -> Any:
    """Rows per query; all rows are one query without queries."""
    return np.array([len(train)]) if train.queries is None else train.queries.sizes


def serve(
    model: Imported, prices: Prices, facts: Mapping[str, Any], *, whole: bool = False
) -> LibraryModel:
    """An imported model under these prices: a ``StagedModel`` if its trees only add up.
    ``whole``: its only point has all trees; otherwise its first trees are points, too."""
    facts = {"peer": model.source, **facts}
    plain = model.ensemble.vectors is None and not model.average and model.link == "identity"
    if plain and whole:
        return prefix_chain(model.ensemble, [model.ensemble.trees], prices, facts)
    if plain:
        return chain(model.ensemble, prices, facts)
    return TreeAverage.of(
        model.ensemble,
        prices,
        average=model.average,
        link=model.link,
        facts=facts,
        whole=whole,
    )


def _all_classes(model: Imported, vectors: FloatArray, present: IntArray, classes: int) -> Imported:
    """The model with an output for each class; classes absent from training score far below."""
    every, base = np.zeros((len(vectors), classes)), np.full(classes, -_FAR)
    base += model.ensemble.base.min()
    every[:, present], base[present] = vectors, model.ensemble.base
    return replace(model, ensemble=replace(model.ensemble, base=base, vectors=every))
