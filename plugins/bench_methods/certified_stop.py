"""The cheapest point of another learner's path whose error is certified to be low enough.

A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei, "Learn then test: calibrating predictive
algorithms to achieve risk control", Annals of Applied Statistics 2025 (arXiv 2110.01052), with the
rule of conformal active feature acquisition (CAFA): the threshold at which a fitted policy stops is
chosen such that P(risk > alpha) <= delta. With R the error of a point on n rows that nothing was
fitted to, the Hoeffding-Bentkus p-value of "its risk is above alpha" is

    p = min( exp(-n h(min(R, alpha), alpha)),  e P(Binomial(n, alpha) <= ceil(n R)) ),
    h(a, b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b))

Points are tested in a fixed sequence, the most expensive first, as long as p <= delta. The last of
these is the model's only point. So with a probability of at least 1 - delta over the draw of the
rows, its error on further rows of the same kind is at most alpha.

Equations
    p            bench_methods.certified_stop.p_value
    sequence     bench_methods.certified_stop.certified

Departures
- The base is fitted here, with half of the validation rows; the other half tests. It shares no fit
  with the same learner on a board, whose points were chosen by all validation rows.
- Tested are the points that no other one beats in both cost and error on the first half. Their
  order is by cost on it, too, so that it does not depend on the rows that test.
- Where not even the first point is certified, it is the answer all the same, and the row has the
  mark ``uncertified``. The sources answer nothing.
- The risk is the share of wrong classes. A copy of a row counts as a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.masked_predictor import training_copies
from bench_models.states import Stored

from bench_core import (
    BudgetedLearner,
    Examples,
    Features,
    FitContext,
    Prediction,
    Prices,
    Task,
    UsageError,
    inside,
    param,
    provide_learners,
)
from bench_core.arrays import FloatArray

if TYPE_CHECKING:
    from bench_core.serving import Program

UNCERTIFIED = "uncertified"


@dataclass(frozen=True)
class CertifiedStop:
    """The cheapest point of another learner whose error is certified to be at most alpha."""

    name: ClassVar[str] = "certified-stop"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "scipy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner = param("cegb", "learner whose path is stopped", search=inside())
    alpha: float = param(0.1, "the error that is allowed", above=0, below=1)
    delta: float = param(
        0.1, "the probability with which the error may exceed it all the same", above=0, below=1
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> CertifiedPoint:
        """Fit the base on ``train`` and half of ``valid``; test its points on the other half."""
        if context.task not in self.base.tasks:
            raise UsageError(f"{self.name}: base {self.base.name!r} does no {context.task} tasks")
        copies = training_copies(valid, context.seed)
        first, second = (Examples(copies.X[k::2], copies.y[k::2]) for k in (0, 1))
        model = _Inner(context, first).fitted(self.base)
        cost, error = _costs_and_errors(model, first, prices)
        c, e = cost[:, None], error[:, None]
        beaten = (cost <= c) & (error <= e) & ((cost < c) | (error < e))
        best = np.flatnonzero(~beaten.any(axis=1))
        order = best[np.argsort(-cost[best], kind="stable")]
        risks = _costs_and_errors(model, second, prices)[1][order]
        count = certified(risks, len(second), self.alpha, self.delta)
        context.progress(1, 1)
        return CertifiedPoint(model, int(order[max(count - 1, 0)]), count > 0)


@dataclass(frozen=True, eq=False)
class CertifiedPoint(Stored):
    """One point of a model, the one at ``place`` on its path."""

    model: Any
    place: int
    certified: bool

    @property
    def independent_rows(self) -> bool:
        """That of the model."""
        return bool(getattr(self.model, "independent_rows", False))

    @property
    def marks(self) -> tuple[str, ...]:
        """The model's, and whether no point was certified."""
        own = () if self.certified else (UNCERTIFIED,)
        return (*own, *getattr(self.model, "marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The point alone."""
        path = self.model.predict_path(features)
        yield from (replace(p, stage=None) for p in islice(path, self.place, self.place + 1))

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The model's own, for serving. Raises UsageError where it has none."""
        if not hasattr(self.model, "program"):
            raise UsageError("certified-stop: its base has no program that could be served")
        program: Program = self.model.program(point)
        return program


class _Inner:
    """The context of fits to fewer validation rows, also of learners that these stand on."""

    def __init__(self, context: FitContext, valid: Examples) -> None:
        self._context, self._models = context, dict[str, Any]()
        self.splits = replace(context.splits, valid=valid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def fitted(self, learner: Any) -> Any:
        """The model of a learner, trained once."""
        key, rows = repr(learner), self.splits
        if key not in self._models:
            self._models[key] = learner.fit(rows.train, rows.valid, rows.prices, self)
        return self._models[key]

    def progress(self, done: int, total: int) -> None:
        """Nothing: that of several fits would fall."""


def _costs_and_errors(model: Any, rows: Examples, prices: Prices) -> tuple[FloatArray, FloatArray]:
    """What rows pay and the share of them that is wrong, at each point of the path (P,)."""
    n, found = len(rows), []
    for prediction in model.predict_path(rows.features):
        bill, scores = prediction.bills["path"], prediction.scores
        cost = bill.feature_cost(prices, n) + bill.evaluation_cost(prices, n)
        called = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        found.append((float(cost.mean()), float((called != rows.y).mean())))
    cost, error = np.array(found).T
    return cost, error


def certified(risks: Sequence[float] | FloatArray, rows: int, alpha: float, delta: float) -> int:
    """How many points of a sequence are certified, by their ``risks`` on so many rows."""
    for count, risk in enumerate(risks):
        if p_value(float(risk), rows, alpha) > delta:
            return count
    return len(risks)


def p_value(risk: float, rows: int, alpha: float) -> float:
    """That of a mean loss in [0, 1] of so many rows where the true one is above ``alpha``."""
    from scipy.special import bdtr, rel_entr

    low = min(risk, alpha)
    exponent = rel_entr(low, alpha) + rel_entr(1 - low, 1 - alpha)
    wrong = np.ceil(round(rows * risk, 6))  # no more than the sum of the losses rounds up to
    return float(min(np.exp(-rows * exponent), np.e * bdtr(wrong, rows, alpha)))


bench_learners = provide_learners(CertifiedStop)
