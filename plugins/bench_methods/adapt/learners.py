"""Base class of the four learners, and the three with linear pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from bench_models.boosting import RELEVANT, OnEngine
from bench_models.calibration import platt
from bench_models.l1_regression import PenalisedLoss
from bench_models.large_model import GatedModel, LargeModel, last_prediction, thresholds
from bench_models.least_squares import one_blas_thread
from bench_models.scaling import Scaling
from bench_models.staged import MOST_POINTS, Point, Stage, StagedModel
from bench_models.tradeoff import LossPrices, constant_loss

from bench_core import (
    BudgetedLearner,
    BudgetedModel,
    Examples,
    Features,
    FitContext,
    Prices,
    Task,
    linear,
    log,
    param,
)
from bench_core.arrays import Array, IntArray
from bench_methods.adapt.linear_step import (
    Columns,
    GroupPenalty,
    Linear,
    LinearProblem,
    fit_jointly,
    fit_priced,
    in_row_space,
    l1_path,
    logistic,
    lower_end,
    nested,
    spread,
)
from bench_methods.adapt.q_step import (
    F0Limit,
    GateDistance,
    KullbackLeibler,
    SquaredLogOdds,
    TrainingRows,
    f0_outputs,
)

TASKS = frozenset({Task.BINARY, Task.RANKING})
TRADEOFF = "weight of costs: at 1, all features cost as much as a constant's training loss (gamma)"
P_FULL = "maximum share of rows sent to f0 (mean of q); none: f0's price at this tradeoff decides"
GATES = "additional operating points: further thresholds of the gate"
RELEASED = "adapt-released"
"""The bill in which a row sent to f0 pays only for f0, not for the gate."""


class PlanInputs(NamedTuple):
    """Inputs of a plan."""

    columns: Columns
    scaling: Scaling
    rows: TrainingRows
    train: Examples
    prices: Prices
    most: int  # sets of features
    context: FitContext


Plan = tuple[Sequence[IntArray], Callable[[IntArray, Columns], Linear], dict[str, Any]]
"""Sets of features, a function that fits a pair on a set and its columns, and facts."""


@dataclass(frozen=True)
class Adapt(OnEngine):
    """Base class of the four learners: tasks and f0."""

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]] = TASKS
    adds_up: ClassVar[bool] = False

    f0: BudgetedLearner = param("random-forest", "large model for hard rows")
    relevant_grade: int = param(1, RELEVANT)

    gates = 0  # a parameter of all four

    def __post_init__(self) -> None:
        if not isinstance(self.f0, str) and TASKS.isdisjoint(self.f0.tasks):
            raise ValueError(
                f"f0 = {self.f0.name} does no binary or ranking tasks; choose one that does"
            )

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The large model."""
        return (self.f0,)

    def _prepared(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> tuple[Examples, TrainingRows, BudgetedModel]:
        """Training rows with labels 0 and 1, f0's outputs for them, and f0.

        For rankings f0 is calibrated on validation rows, or without any on training rows.
        """
        f0, line = context.fitted(self.f0), None
        if context.task == Task.RANKING:
            # f0 is overconfident on its training rows
            parts = train, valid if len(valid) else train
            train, unseen = (
                replace(part, y=np.where(part.y >= self.relevant_grade, 1.0, 0.0)) for part in parts
            )
            scores = f0_outputs(f0, unseen, prices, context)["scores"]
            line = platt(scores, unseen.y > 0, unseen.weights)
        outputs = f0_outputs(f0, train, prices, context)
        return train, TrainingRows.of(train, outputs, line), f0

    def _gated(
        self,
        f1: StagedModel,
        gate: StagedModel,
        features: int,
        train: Examples,
        rows: TrainingRows,
    ) -> GatedModel:
        """A pair with its operating points, chosen on the training rows."""
        g = last_prediction(gate, Features(train.X)).scores
        f1 = replace(f1, points=[Point(f1.points[-1].stage, {"features": features})])
        return GatedModel(f1, gate, [thresholds(g, rows.share, self.gates)])

    def _before(
        self,
        f0: BudgetedModel,
        pairs: Sequence[GatedModel],
        rows: TrainingRows,
        prices: Prices,
        facts: dict[str, Any],
    ) -> LargeModel:
        """The pairs in front of f0, calibrated on ranking data to log-odds of relevance."""
        everything = {"features": 0, "sent": 1.0}
        line = rows.calibration
        return LargeModel(self.name, pairs, f0, everything, prices, facts, line, RELEASED)


@dataclass(frozen=True)
class LinearAdapt(Adapt):
    """Base class of the learners with linear pairs: a pair for each set of features."""

    numerics: ClassVar[tuple[str, ...]] = ()

    supports = 1  # a parameter of all three

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LargeModel:
        """Find sets of features, then fit a pair on each, up to ``supports`` and the path's limit.

        ``valid`` is used only for rankings, to calibrate f0.
        """
        train, rows, f0 = self._prepared(train, valid, prices, context)
        # every set takes gates + 1 points, f0 takes one
        most = min(self.supports, max(1, (MOST_POINTS - 1) // (self.gates + 1)))
        pairs = []
        with one_blas_thread():
            scaling = Scaling.of(train.X, train.weights)
            columns = Columns.of(train.X, scaling, rows.share)
            given = PlanInputs(columns, scaling, rows, train, prices, most, context)
            sets, fitted, facts = self._plan(given)
            # a constant pair if no column is useful
            sets = sets or [np.zeros(0, dtype=np.int64)]
            for k, features in enumerate(sets):
                some = columns.only(features)
                pair = fitted(features, some)
                gate, f1 = (
                    StagedModel(
                        [Stage(some.which, w, b[None])], [Point(0, {})], prices, scaling=scaling
                    )
                    for w, b in zip(*pair, strict=True)
                )
                used = int(np.count_nonzero(pair.weights.any(axis=0)))
                pairs.append(self._gated(f1, gate, used, train, rows))
                context.progress(k + 1, len(sets))
        return self._before(f0, pairs, rows, prices, facts)

    def _plan(self, inputs: PlanInputs) -> Plan:
        raise NotImplementedError


@dataclass(frozen=True)
class AdaptLin(LinearAdapt):
    """Linear gate and classifier on the same few features, in front of a large model."""

    name: ClassVar[str] = "adapt-lin"
    distance: ClassVar[GateDistance] = KullbackLeibler()

    tradeoff: float = param(
        0.01, TRADEOFF + "; it orders the features", least=0, search=log(1e-3, 3)
    )
    p_full: float | None = param(0.5, P_FULL, least=0, most=1, search=linear(0.1, 0.9))
    supports: int = param(12, "maximum sets of features, each an operating point", least=1)
    restart: bool = param(True, "refit each set; false: weights from the first fit")
    iterations: int = param(30, "maximum steps over q in the first fit", least=1)
    gates: int = param(3, GATES + ", for each set", least=0, most=MOST_POINTS - 2)

    def _plan(self, inputs: PlanInputs) -> Plan:
        """Order the features; a set is the first k with all features that they make free."""
        columns, _, rows, train, prices, most, context = inputs
        price = loss_prices(train, prices, self.tradeoff)

        def problem(some: Columns, features: IntArray) -> LinearProblem:
            premium = None
            if self.p_full is None:
                bits = prices.acquired(features).bits
                premium = rows.premium(bits, bits, 0.0, prices, price.tau)
            limit = F0Limit(self.p_full, premium)
            return LinearProblem(some, rows, limit, self.distance, GroupPenalty.none(some))

        unknown = np.zeros(0, dtype=np.int64)  # f1's features are not known yet
        first, order = fit_priced(problem(columns, unknown), prices, price.sensor, self.iterations)
        known: list[tuple[Columns, Linear]] = []

        def fitted(which: IntArray, some: Columns) -> Linear:
            if not self.restart:
                return first.pair.among(columns, some)
            # second start: the pair of the previous set
            starts = [pair.among(own, some) for own, pair in known]

            def free(cols: Columns) -> Linear:
                def alone() -> dict[str, Array]:
                    pair, value = fit_jointly(problem(cols, which))
                    return {"value": np.array(value), **pair._asdict()}

                # prices of f0 depend on the tradeoff
                given = self.name, self.p_full, which, train, rows
                found = alone() if self.p_full is None else context.trained(given, alone)
                pair, value = Linear(found["weights"], found["intercepts"]), float(found["value"])
                return lower_end(problem(cols, which), pair, value, starts if cols is some else ())

            known[:] = [(some, in_row_space(some, free))]
            return known[0][1]

        facts = {
            "tau": price.tau,
            "gamma": price.tau,
            "objective": first.objective,
            "order": order.tolist(),
        }
        return nested(order, columns, prices, most), fitted, facts


@dataclass(frozen=True)
class AdaptLstsq(AdaptLin):
    """adapt-lin with a gate fitted by least squares."""

    name: ClassVar[str] = "adapt-lstsq"
    distance: ClassVar[GateDistance] = SquaredLogOdds()


@dataclass(frozen=True)
class AdaptL1(LinearAdapt):
    """ADAPT's baseline: a classifier on features chosen by L1, then a gate for its errors."""

    name: ClassVar[str] = "adapt-l1"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "scipy", "cpu")  # BLAS sums, L-BFGS
    supports: int = param(24, "maximum sets of features from the L1 path", least=1)
    gates: int = param(7, GATES + ", for each set", least=0, most=MOST_POINTS - 2)

    def _plan(self, inputs: PlanInputs) -> Plan:
        rows = inputs.rows

        def both(some: Columns) -> Linear:
            free = GroupPenalty.none(some)
            f1 = logistic(some, rows, free)
            wrong = np.where(rows.sign * f1(some)[0] > 0, -1.0, 1.0)
            return logistic(some, replace(rows, sign=wrong), free).beside(f1)

        path = PenalisedLoss(inputs.train, inputs.scaling, inputs.train.y, np.zeros(1), False)
        sets = spread(l1_path(path, inputs.prices), inputs.most)
        return sets, lambda _, some: in_row_space(some, both), {}


def loss_prices(train: Examples, prices: Prices, tradeoff: float) -> LossPrices:
    """Prices in loss at this tradeoff, relative to the logistic loss of the constant."""
    from bench_trees import Logistic

    return LossPrices.of(prices, tradeoff, constant_loss("logistic", Logistic(), train))
