"""Trees that imitate the nearest-neighbour oracle.

The paper's AACO+NN is a network trained to imitate AACO on training rows. Here it is a boosted
softmax over all purchases and stopping. Its inputs are the bought cells.

Departures
- The weight of a state is the oracle's cost of a wrong choice there: the mean over stopping and
  each purchase alone. A tenth of the mean weight is added to all states.
- The price of cost is an additional feature. At one price its splits always go to one side.
- The oracle is imitated without a cap. Under a cap the best affordable purchase is made.
- Trajectories end after ``most`` purchases; there the trees are trained to stop.
- The predictor is a separate ensemble: a third of its states is random (as in ``masked-gbrt``), the
  others are on trajectories of the trees that choose. It stops early by validation rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from bench_models.boosting import BoostedTrees, loss_of
from bench_models.dictionary import sums
from bench_models.masked_predictor import (
    MaskedPredictor,
    PredictorPolicy,
    closed,
    fit_on_states,
    marked_purchases,
    masked,
    most_of_any,
    random_purchases,
    training_copies,
    with_marks,
)

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
    UsageError,
    log,
    param,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.aaco.planning import Oracle

if TYPE_CHECKING:
    from bench_trees import Ensemble, Settings
    from bench_trees.losses import Gradients, Labels, Softmax
    from bench_trees.threads import Workers

    from bench_core.serving import PolicyProgram

NEVER = -1e9  # score of a purchase that the oracle never makes

Planner = Callable[..., tuple[IntArray, FloatArray]]
"""From cells (n, d), purchases (n, k), remaining budgets (n,), a price of cost and row numbers (n,)
to the next purchases (n,) and weights (n,)."""


class Trajectories(NamedTuple):
    """States on rows' trajectories, and the choices there."""

    row: IntArray  # (m,)
    bought: BoolArray  # (m, k)
    chosen: IntArray  # (m,)
    weight: FloatArray  # (m,)
    price: FloatArray  # (m,), of cost


def ways(
    plan: Planner, X: Float32Array, prices: Prices, stops: Sequence[float], most: int
) -> Trajectories:
    """States of rows X (n, d) until they stop, or have made ``most`` purchases.

    States without a choice get the mean weight. Each of the ``stops`` has some of the rows; the
    last one, which is used under caps, has all.
    """
    purchases, by_stop = Purchases.of(prices), []
    for k, stop in enumerate(stops):
        going = np.arange(len(X)) if k == len(stops) - 1 else np.arange(k, len(X), len(stops))
        bought = closed(np.tile(purchases.price == 0, (len(X), 1)), purchases)
        visits: list[tuple[Any, ...]] = []
        for step in range(most + 1):
            at = bought[going]
            chosen, weight = np.full(len(going), STOP), np.full(len(going), np.nan)
            open_ = (step < most) & ~at.all(axis=1)
            if open_.any():
                those, made = going[open_], at[open_]
                cells, left = masked(X[those], made, purchases, prices), np.full(len(those), np.inf)
                chosen[open_], weight[open_] = plan(cells, made, left, stop, those)
            visits.append((going, at, chosen, weight, np.full(len(going), stop)))
            going, chosen = going[chosen != STOP], chosen[chosen != STOP]
            bought[going, chosen] = True
            bought[going] = closed(bought[going], purchases)
        states = Trajectories(*map(np.concatenate, zip(*visits, strict=True)))
        known = states.weight[~np.isnan(states.weight)]
        mean = float(known.mean()) if len(known) else 1.0
        by_stop.append(states._replace(weight=np.nan_to_num(states.weight, nan=mean)))
    return Trajectories(*map(np.concatenate, zip(*by_stop, strict=True)))


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Softmax loss with row weights (n,)."""

    loss: Softmax
    weight: FloatArray

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    def base(self, labels: Labels) -> FloatArray:
        mass = np.bincount(labels.y.astype(np.int64), self.weight, minlength=self.outputs)
        return np.asarray(np.log(np.maximum(mass / mass.sum(), 1e-6)))

    def gradients(self, scores: FloatArray, labels: Labels, pool: Workers) -> Gradients:
        gradient, hessian = self.loss.gradients(scores, labels, pool)
        assert hessian is not None
        return gradient * self.weight, hessian * self.weight


def boost_choices(
    cells: Float32Array, states: Trajectories, k: int, settings: Settings, threads: int
) -> Ensemble:
    """Trees on rows (m, d + 1) with scores for each of k purchases and, last, for stopping."""
    from bench_trees import Ensemble, boost, find_bins
    from bench_trees.losses import Softmax

    moves, label = np.unique(np.where(states.chosen == STOP, k, states.chosen), return_inverse=True)
    base = np.full(k + 1, NEVER)
    base[moves[0]] = 0.0
    grown = Ensemble.of_trees([], [], base, cells.shape[1])
    if len(moves) > 1:
        weight = states.weight / max(float(states.weight.mean()), 1e-12)
        loss = _Weighted(Softmax(len(moves)), weight + 0.1)
        bins, y = find_bins(cells, threads=threads), label.reshape(-1).astype(np.float64)
        words = bins.words(cells, threads)
        trees = boost(words, bins, y, loss=loss, settings=settings, threads=threads)
        base[moves] = trees.base
        grown = replace(trees, base=base, output=moves[trees.output].astype(np.int32))
    return grown


@dataclass(frozen=True, eq=False)
class Imitation(PredictorPolicy):
    """A policy that chooses by trees. Their last feature is the price of cost."""

    choices: Any  # an Ensemble with k + 1 outputs over d + g + 1 features
    marked: IntArray  # (g,)
    predictor: Any  # a MaskedPredictor
    prices: Prices
    price: Sequence[float]

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Prices of cost."""
        return {"price": self.price}

    @cached_property
    def each_act(self) -> Evaluated:
        """Evaluation of the trees that choose."""
        multiplier = np.append(self.prices.multiplier, np.ones(len(self.marked)))
        return most_of_any(map(self.at, self.price), multiplier)

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Affordable purchase of the highest score, or ``STOP`` if its score is higher, (n,)."""
        scores = sums(self.at(stop), with_marks(cells, bought, self.marked))
        return self.purchases.best(scores[:, :-1], bought, left, scores[:, -1])

    def at(self, stop: float) -> Ensemble:
        """The trees that choose at one price of cost, over d + g features."""
        trees: Ensemble = self.choices
        asks = trees.feature == trees.features - 1
        left = asks & (np.float32(stop) <= trees.threshold)
        # splits on the price always go to one side
        threshold = np.where(asks, np.where(left, np.inf, -np.inf), trees.threshold)
        return replace(
            trees,
            feature=np.where(asks, 0, trees.feature).astype(np.int32),
            threshold=threshold.astype(np.float32),
            missing_left=np.where(asks, left, trees.missing_left),
            features=trees.features - 1,
        )

    def program(self, prices: Prices, stop: float) -> PolicyProgram:
        """The trees that choose at one price of cost, and the predictor's trees."""
        return self.served([self.at(stop)], prices, "class", skip=True)


@dataclass(frozen=True, kw_only=True)
class AacoTree(BoostedTrees):
    """Boosted trees that imitate the purchases of aaco, and boosted trees that predict."""

    name: ClassVar[str] = "aaco-tree"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner = param("aaco", "policy to imitate")
    rows: int = param(500, "maximum training rows with imitated trajectories", least=1)
    most: int = param(12, "maximum purchases in a trajectory", least=1)
    choices: int = param(50, "boosting iterations of the trees that choose", least=0)
    leaves: int = param(8, "most leaves of a tree", least=2, search=log(4, 32))
    copies: int = param(6, "states per training row to train the predictor on", least=1)

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The imitated policy."""
        return (self.base,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Imitate the oracle on ``train``; ``valid`` stops the predictor's boosting early."""
        oracle = getattr(context.fitted(self.base), "policy", None)
        if not isinstance(oracle, Oracle):
            raise UsageError(f"{self.name}: base {self.base.name!r} does not plan; choose aaco")
        copies = training_copies(train, context.seed)
        marked, purchases = marked_purchases(copies, prices), Purchases.of(prices)
        X = oracle.X[: self.rows]
        states = ways(oracle.plan, X, prices, oracle.price, self.most)
        context.progress(1, 3)
        cells = masked(X[states.row], states.bought, purchases, prices)
        seen = [with_marks(cells, states.bought, marked), states.price[:, None].astype(np.float32)]
        settings = self.settings(context.task, self.leaves, trees=self.choices)
        settings = replace(settings, learning_rate=2 * self.learning_rate)
        choices = boost_choices(np.hstack(seen), states, len(purchases), settings, context.threads)
        policy = Imitation(choices, marked, None, prices, oracle.price)
        context.progress(2, 3)
        rng = np.random.default_rng([context.seed, 6])
        visited = self._visited(policy, copies.X, rng)
        far, shown = self._visited(policy, valid.X, rng)
        held = (masked(valid.X[far], shown, purchases, prices), shown, valid.y[far])
        settings = self.settings(context.task, self.leaves)
        trees = fit_on_states(self, settings, copies, visited, held, prices, context)
        name = loss_of(context.task, self.loss, context.classes)[0]
        context.progress(1, 1)
        return Sequential(replace(policy, predictor=MaskedPredictor(trees, [trees], name)), prices)

    def _visited(
        self, policy: Imitation, X: Float32Array, rng: np.random.Generator
    ) -> tuple[IntArray, BoolArray]:
        """Rows (m,) and their purchases (m, k): two thirds from trajectories, others random."""

        def plan(
            cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float, row: IntArray
        ) -> tuple[IntArray, FloatArray]:
            return policy.act(cells, bought, left, stop), left

        states = ways(plan, X, policy.prices, policy.price, self.most)
        others = max(1, self.copies // 3) * len(X)
        picked = rng.permutation(len(states.row))[: self.copies * len(X) - others]
        drawn = random_purchases(policy.purchases, others, rng)
        row = np.concatenate([states.row[picked], np.resize(np.arange(len(X)), others)])
        return row, np.concatenate([states.bought[picked], drawn])
