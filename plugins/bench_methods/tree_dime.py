"""DIME with trees: purchases by the expected fall of the loss per price.

S. Gadgil, I. Covert, S.-I. Lee, "Estimating conditional mutual information for dynamic feature
selection", ICLR 2024. With a predictor f for any set of purchases, x_m the bought cells, l the loss
and c_j the marginal price of j, a value v_j(x_m) is fitted by regression to

    t_j = l(f(x_m), y) - l(f(x_m+j), y)

For the log-loss its expectation is the mutual information of j with y given x_m. A row buys
argmax_j v_j / c_j, and stops once this is below the price of cost, tau. An operating point is

    tradeoff = tau x (price of everything) / (mean loss of the predictor without purchases)

Departures
- f and v are trees. f is ``masked-gbrt``, and targets are cross-fitted. f is not trained together
  with v: the final predictor is boosted again, on states of the policy's trajectories, with a tenth
  of the purchases random.
- The label in t_j is replaced by its distribution predicted by f with everything bought:
  t_j = E l(f(x_m), y) - E l(f(x_m+j), y). This removes label noise, the largest part of the noise
  in t_j. For numbers f's prediction replaces the label.
- Up to 16 random t_j of a state are computed, not only for the purchase made. v is one ensemble
  of trees with a leaf value for each purchase (``bench_models.vector_trees``), at least 0. The
  paper's upper limit, the entropy of the prediction, would require the predictor at every step.
- ``lookahead``: t_j is 0 for a feature that helps only together with others. So v_j is the largest
  of several values, for h = 1, 2, ... purchases: the fall of the loss by j and h - 1 others, times
  c_j over their total price. The others are chosen after j by the value for h - 1, then by that for
  h - 2, ... ``lookahead = 1`` is the paper's value.
- Two rounds replace the paper's falling share of random purchases. Values are learned on states of
  random purchases, then also on states of the policy's own trajectories, with a tenth of the
  purchases random. Of k purchases a state has made k u^2, u from U(0, 1).
- The values of ``tradeoff`` give evenly spaced mean spending on training rows.
- ``skip``: under a cap a row that cannot pay for the best purchase makes the best affordable one;
  the paper's code stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import OnEngine
from bench_models.dictionary import sums
from bench_models.masked_predictor import (
    MaskedPredictor,
    MaskedTraining,
    PredictorPolicy,
    closed,
    fit_on_states,
    fitted_predictor,
    masked,
    most_evaluated,
    training_copies,
    with_marks,
)
from bench_models.vector_trees import boost_vectors
from bench_trees.ensemble import Ensemble

from bench_core import (
    STOP,
    BudgetedLearner,
    Evaluated,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Task,
    inside,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_core.serving import PolicyProgram

RANDOM = (1.0, 0.1)
"""Share of random purchases in the trajectories of each round; the first has no policy yet."""

CANDIDATES = 16
"""Maximum purchases evaluated per state: more states are more informative."""

BLOCK = 2048  # states evaluated together
ROUNDING = 1e-9
WAYS = 2000  # maximum training rows for the choice of tradeoffs


@dataclass(frozen=True, kw_only=True)
class TreeDime(OnEngine):
    """A policy that buys by the expected fall of the loss per price."""

    name: ClassVar[str] = "tree-dime"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS, Task.REGRESSION})

    predictor: BudgetedLearner = param(
        "masked-gbrt", "learner of the predictor for masked rows", search=inside()
    )
    lookahead: int = param(3, "maximum purchases in a value's lookahead", least=1, most=6)
    trees: int = param(100, "trees of each value", least=1, search=log(50, 200))
    learning_rate: float = param(0.1, "shrinkage of every tree's output", above=0)
    leaves: int = param(16, "most leaves of a tree", least=2, search=log(8, 64))
    min_rows: int = param(40, "least states on each side of a split", least=1, search=log(10, 160))
    evaluations: int = param(300_000, "maximum evaluations of the loss in a round", least=1)
    points: int = param(40, "maximum operating points", least=2, most=100)
    skip: bool = param(True, "under a cap make the best affordable purchase instead of stopping")

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The learner of the predictor."""
        return (self.predictor,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Learn values on ``train``; ``valid`` is used for early stopping of the predictor."""
        model = fitted_predictor(self.name, self.predictor, context)
        copies = training_copies(train, context.seed)
        rng = np.random.default_rng([context.seed, 2])
        task = _Fitting(self, model, copies, model.parts_of(copies), prices, context, rng)
        policy = Dime(model, [], prices, task.unit(), (0.0,), self.skip)
        row, bought = np.zeros(0, np.int64), np.zeros((0, len(policy.purchases)), bool)
        for k, share in enumerate(RANDOM):
            more, made = task.states(policy, share, task.count)
            row, bought = np.concatenate([row, more]), np.concatenate([bought, made])
            policy = replace(policy, values=task.values(row, bought))
            context.progress(k + 1, len(RANDOM) + 1)
        policy = replace(policy, tradeoffs=task.tradeoffs(policy))
        if isinstance(self.predictor, MaskedTraining):
            policy = replace(policy, predictor=task.refitted(policy, self.predictor, valid))
        context.progress(1, 1)
        return Sequential(policy, prices)


@dataclass(frozen=True, eq=False)
class Dime(PredictorPolicy):
    """Buys the purchase of the largest value per price, while that is above the price of cost."""

    nested: ClassVar[bool] = True

    predictor: MaskedPredictor
    values: Sequence[Ensemble]  # for one purchase, for two, ...
    prices: Prices
    unit: float  # tau at tradeoff 1
    tradeoffs: Sequence[float]  # falling
    skip: bool

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Falling prices of cost."""
        return {"tradeoff": self.tradeoffs}

    @cached_property
    def each_act(self) -> Evaluated:
        """Evaluation of the values' trees."""
        multiplier = np.append(self.prices.multiplier, np.ones(len(self.predictor.whole.marked)))
        parts = [most_evaluated(value, multiplier) for value in self.values]
        return Evaluated(sum(p.splits for p in parts), sum(p.trees for p in parts))

    def offer(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Purchase (n,) of the largest value per price, and this in units of ``tradeoff`` (n,)."""
        best, rate = self.purchases.most(self.rates(cells, bought), bought, left, self.skip)
        return best, rate / self.unit

    def program(self, prices: Prices, stop: float) -> PolicyProgram:
        """The values' trees and the predictor's."""
        least = stop * self.unit
        return self.served(self.values, prices, "rate", least=least, skip=self.skip)

    def rates(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Values per price (n, k); -inf where bought."""
        X = with_marks(cells, bought, self.predictor.whole.marked)
        value = np.maximum(np.max([sums(trees, X) for trees in self.values], axis=0), 0.0)
        price = self.purchases.marginal(bought)
        rate = np.divide(value, price, out=np.full(value.shape, np.inf), where=price > 0)
        return np.where(bought, -np.inf, rate)


@dataclass(frozen=True, eq=False)
class _Fitting:
    """Training rows, and computations on them."""

    learner: TreeDime
    model: MaskedPredictor
    train: Examples
    part: IntArray
    prices: Prices
    context: FitContext
    rng: np.random.Generator

    @cached_property
    def purchases(self) -> Purchases:
        return Purchases.of(self.prices)

    def cells(self, row: IntArray, bought: BoolArray) -> Float32Array:
        return masked(self.train.X[row], bought, self.purchases, self.prices)

    @cached_property
    def truth(self) -> FloatArray:
        """Cross-fitted scores (n,) or (n, K) with everything bought."""
        everything = np.ones((len(self.train), len(self.purchases)), dtype=bool)
        return self.model.cross_fitted(self.train.X, everything, self.part)

    def loss(self, row: IntArray, bought: BoolArray) -> FloatArray:
        """Cross-fitted expected loss (m,) of training rows."""
        scores = self.model.cross_fitted(self.cells(row, bought), bought, self.part[row])
        return self.model.expected_loss(scores, self.truth[row])

    def add(self, bought: BoolArray, chosen: IntArray) -> BoolArray:
        """Purchases (m, k) with one more each; ``STOP`` adds none."""
        more = bought.copy()
        made = np.flatnonzero(chosen != STOP)
        more[made, chosen[made]] = True
        return closed(more, self.purchases)

    @property
    def count(self) -> int:
        """States of a round."""
        k = min(max(1, len(self.purchases)), CANDIDATES)
        return max(1, self.learner.evaluations // k // len(RANDOM))

    def states(self, policy: Dime, share: float, count: int) -> tuple[IntArray, BoolArray]:
        """Rows (m,) and their purchases (m, k), from trajectories with a random ``share``."""
        k = len(self.purchases)
        row = self.rng.permutation(np.resize(self.rng.permutation(len(self.train)), count))
        bought = np.tile(self.purchases.price == 0, (count, 1))
        # more states with few purchases
        steps = np.floor((k + 1) * self.rng.random(count) ** 2)
        if share == 1:
            place = self.rng.random((count, k)).argsort(axis=1)
            return row, closed(bought | (place < steps[:, None]), self.purchases)
        going = np.flatnonzero(steps > 0)
        done = 0
        while len(going):
            at = bought[going]
            rate = policy.rates(self.cells(row[going], at), at)
            guess = np.where(at, -np.inf, self.rng.random(rate.shape))
            rate = np.where(self.rng.random((len(at), 1)) < share, guess, rate)
            bought[going] = self.add(at, rate.argmax(axis=1))
            done += 1
            going = going[(steps[going] > done) & ~bought[going].all(axis=1)]
        return row, bought

    def refitted(self, policy: Dime, learner: MaskedTraining, valid: Examples) -> MaskedPredictor:
        """The predictor with trees boosted again on states of the policy."""
        share, other = RANDOM[-1], replace(self, train=valid)
        states = self.states(policy, share, learner.copies * len(self.train))
        row, bought = other.states(policy, share, learner.copies * len(valid))
        held = other.cells(row, bought), bought, valid.y[row]
        settings = learner.masked_settings(self.context.task)
        trees = fit_on_states(
            learner, settings, self.train, states, held, self.prices, self.context
        )
        return replace(self.model, whole=trees)

    def values(self, row: IntArray, bought: BoolArray) -> list[Ensemble]:
        """Regressions on the targets for one purchase, for two, ..."""
        from bench_trees import Settings

        learner = self.learner
        settings = Settings(
            trees=learner.trees,
            learning_rate=learner.learning_rate,
            max_depth=None,
            max_leaves=learner.leaves,
            min_rows=learner.min_rows,
        )
        X = with_marks(self.cells(row, bought), bought, self.model.whole.marked)
        policy = Dime(self.model, [], self.prices, 1.0, (), False)
        # a random sample of each state's open purchases
        lot = np.where(bought, 2.0, self.rng.random(bought.shape))
        few = min(CANDIDATES, lot.shape[1])
        candidates = ~bought & (lot <= np.partition(lot, few - 1, axis=1)[:, few - 1 : few])
        for level in range(learner.lookahead):
            targets = self.targets(policy, row, bought, candidates, level)
            value = boost_vectors(X, targets, candidates, settings, self.rng, self.context.threads)
            policy = replace(policy, values=[*policy.values, value])
        return list(policy.values)

    def targets(
        self, policy: Dime, row: IntArray, bought: BoolArray, candidates: BoolArray, level: int
    ) -> FloatArray:
        """Targets t^h (m, k) of states, h = ``level`` + 1, where ``candidates`` (m, k), else 0."""
        gains = np.zeros(bought.shape)
        for start in range(0, len(row), BLOCK):
            some = slice(start, start + BLOCK)
            at, candidate = np.nonzero(candidates[some])
            rows, before = row[some][at], bought[some][at]
            loss = self.loss(row[some], bought[some])[at]
            spent = self.purchases.marginal(before)[np.arange(len(at)), candidate]
            price = spent.copy()
            after = self.add(before, candidate)
            for ahead in range(level, 0, -1):
                one = replace(policy, values=policy.values[ahead - 1 : ahead])
                rate = one.rates(self.cells(rows, after), after)
                chosen = np.where(after.all(axis=1), STOP, rate.argmax(axis=1))
                each = self.purchases.marginal(after)[np.arange(len(at)), chosen]
                spent += np.where(chosen == STOP, 0.0, each)
                after = self.add(after, chosen)
            fall = loss - self.loss(rows, after)
            gains[start + at, candidate] = fall * np.divide(
                price, spent, out=np.ones(len(at)), where=spent > 0
            )
        return gains

    def unit(self) -> float:
        """tau at ``tradeoff`` 1."""
        row = np.arange(len(self.train))
        nothing = np.tile(self.purchases.price == 0, (len(row), 1))
        loss = float(self.loss(row, nothing).mean())
        everything = self.prices.everything
        return loss / everything if loss > 0 and everything > 0 else 1.0

    def tradeoffs(self, policy: Dime) -> tuple[float, ...]:
        """Values of ``tradeoff`` for evenly spaced mean spending of training rows; at the last, 0,
        everything is bought."""
        row = np.arange(min(WAYS, len(self.train)))
        bought = np.tile(self.purchases.price == 0, (len(row), 1))
        least, least_rates, spent = np.full(len(row), np.inf), [], []
        while len(going := np.flatnonzero(~bought.all(axis=1))):
            at = bought[going]
            rate = policy.rates(self.cells(row[going], at), at)
            best = rate.argmax(axis=1)
            least[going] = np.minimum(least[going], rate.max(axis=1))
            least_rates.append(least[going])
            spent.append(self.purchases.marginal(at)[np.arange(len(going)), best])
            bought[going] = self.add(at, best)
        if not least_rates:
            return (0.0,)
        rates, prices = np.concatenate(least_rates) / policy.unit, np.concatenate(spent)
        order = np.argsort(-rates, kind="stable")
        total = np.cumsum(prices[order])
        goals = np.linspace(0, total[-1], self.learner.points - 1)[:-1]
        levels = rates[order][np.minimum(np.searchsorted(total, goals), len(order) - 1)]
        if levels[0] <= 0:  # no purchase helps
            return (0.0,)
        falling = np.unique(levels[levels > 0])[::-1] * (1 - ROUNDING)
        return (float(levels[0]) * (1 + ROUNDING), *falling.tolist(), 0.0)


bench_learners = provide_learners(TreeDime, family="policies")
