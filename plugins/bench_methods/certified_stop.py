"""The cheapest point of another learner's path with a certified error.

A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei, "Learn then test: calibrating predictive
algorithms to achieve risk control", Annals of Applied Statistics 2025 (arXiv 2110.01052), with the
rule of conformal active feature acquisition (CAFA): the stopping threshold of a fitted policy is
chosen such that P(risk > alpha) <= delta. With R the error of a point on n rows not used for
fitting, the Hoeffding-Bentkus p-value of "its risk is above alpha" is

    p = min( exp(-n h(min(R, alpha), alpha)),  e P(Binomial(n, alpha) <= ceil(n R)) ),
    h(a, b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b))

Points are tested in a fixed sequence, the most expensive first, as long as p <= delta. The last of
these is the model's only point. So with probability at least 1 - delta over the draw of the rows,
its error on further rows of the same distribution is at most alpha.

Equations
    p            bench_methods.certified_stop.p_value
    sequence     bench_methods.certified_stop.certified

Departures
- The base is fitted here, with half of the validation rows; the other half is for tests. Fits are
  not shared with the same learner on a board, which uses all validation rows.
- Only points on the frontier of cost and error on the first half are tested. Their order is by cost
  on the first half, so it does not depend on the test rows.
- If not even the first point is certified, it is used with the mark ``uncertified``. The sources
  abstain.
- The risk is the share of wrong classes. Every copy of a row counts.
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
    """The cheapest point of another learner with an error certified to be at most alpha."""

    name: ClassVar[str] = "certified-stop"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "scipy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner = param("cegb", "learner whose path is stopped", search=inside())
    alpha: float = param(0.1, "allowed error", above=0, below=1)
    delta: float = param(
        0.1, "allowed probability that the error exceeds alpha nevertheless", above=0, below=1
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
    """The point of a model at ``place`` on its path."""

    model: Any
    place: int
    certified: bool

    @property
    def independent_rows(self) -> bool:
        """The model's flag."""
        return bool(getattr(self.model, "independent_rows", False))

    @property
    def marks(self) -> tuple[str, ...]:
        """The model's marks, and ``uncertified`` if no point was certified."""
        own = () if self.certified else (UNCERTIFIED,)
        return (*own, *getattr(self.model, "marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """Yield the point's prediction only."""
        path = self.model.predict_path(features)
        yield from (replace(p, stage=None) for p in islice(path, self.place, self.place + 1))

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The model's program, for serving. Raises UsageError if it has none."""
        if not hasattr(self.model, "program"):
            raise UsageError("certified-stop: its base has no program that could be served")
        program: Program = self.model.program(point)
        return program


class _Inner:
    """The context of fits with fewer validation rows, also for the learners' bases."""

    def __init__(self, context: FitContext, valid: Examples) -> None:
        self._context, self._models = context, dict[str, Any]()
        self.splits = replace(context.splits, valid=valid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def fitted(self, learner: Any) -> Any:
        """The model of a learner, fitted once."""
        key, rows = repr(learner), self.splits
        if key not in self._models:
            self._models[key] = learner.fit(rows.train, rows.valid, rows.prices, self)
        return self._models[key]

    def progress(self, done: int, total: int) -> None:
        """Report nothing: progress over several fits would go back."""


def _costs_and_errors(model: Any, rows: Examples, prices: Prices) -> tuple[FloatArray, FloatArray]:
    """Mean cost and error of rows at each point of the path, (P,) each."""
    n, found = len(rows), []
    for prediction in model.predict_path(rows.features):
        bill, scores = prediction.bills["path"], prediction.scores
        cost = bill.feature_cost(prices, n) + bill.evaluation_cost(prices, n)
        called = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        found.append((float(cost.mean()), float((called != rows.y).mean())))
    cost, error = np.array(found).T
    return cost, error


def certified(risks: Sequence[float] | FloatArray, rows: int, alpha: float, delta: float) -> int:
    """Number of certified points of a sequence, by their ``risks`` on so many ``rows``."""
    for count, risk in enumerate(risks):
        if p_value(float(risk), rows, alpha) > delta:
            return count
    return len(risks)


def p_value(risk: float, rows: int, alpha: float) -> float:
    """P-value of "the risk is above alpha", for a mean loss ``risk`` in [0, 1] of so many rows."""
    from scipy.special import bdtr, rel_entr

    low = min(risk, alpha)
    exponent = rel_entr(low, alpha) + rel_entr(1 - low, 1 - alpha)
    wrong = np.ceil(round(rows * risk, 6))  # rounded first: floating-point error must not add 1
    return float(min(np.exp(-rows * exponent), np.e * bdtr(wrong, rows, alpha)))


bench_learners = provide_learners(CertifiedStop, family="early exits")
