"""Baselines: trivial methods that every other method should beat.

Constructions of this project, not from a paper. Leaderboards mark them (by their ``role``). They
are on the board of every suite that lists them under ``baselines``.

``constant``: the mean of the targets or grades, the log-odds of the positive class, the logarithms
of the class shares. Ranking by a constant leaves all documents of a query tied.

The others buy features in some order, with boosted trees on the features bought so far.

An order has about ``steps`` operating points: separate models on 1, 2, 3, ... up to all features,
the numbers growing by a constant factor. Each uses every feature that can be read after the
purchases: the second feature of a shared sensor comes with the first, and free features are
included from the start. The number of features is the operating point; there is no lambda. Each
model is boosted in few steps (50, for classes large ones with l2 = 1), so baselines are cheaper to
train than methods.

- ``random-order``: a permutation drawn from the run's seed.
- ``cheapest-first``: the feature with the lowest marginal price next; ties: the first in the data.
- ``greedy-order``: forward selection. The next features have the highest gain per price. A
  feature's gain is  sum_b G_b^2 / (2 n_b)  over at most 16 bins and one for missing values. G is
  the sum of the current model's residuals (-dl/df, of all outputs) and n the number of rows in bin
  b: the fall of half the squared residuals by a constant per bin. Gains are updated after every
  step, prices after every feature. Features that help only together are not found until one of
  them is bought.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_models.boosting import BoostedTrees, LossName, OnEngine, loss_of
from bench_models.nested_sets.purchases import Keys, extended, readable
from bench_models.nested_sets.subsets import Subsets
from bench_models.path_of_models import PathOfModels, growing, share_of
from bench_models.staged import MOST_POINTS, Point, Stage, StagedModel
from bench_models.tradeoff import labels_of

from bench_core import Examples, FitContext, Prices, Task, log, param, provide_learners

_USUAL, _FOR_CLASSES = 0.1, 0.4


@dataclass(frozen=True)
class Constant(OnEngine):
    """The best constant; it reads no feature and is free."""

    name: ClassVar[str] = "constant"
    role: ClassVar[str] = "baseline"
    adds_up: ClassVar[bool] = False

    loss: LossName = param(
        "auto", "loss that it minimises; auto: squared, for classes logistic or softmax"
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Fit the constant to the labels of ``train``; ``valid`` is not used."""
        name, loss = loss_of(context.task, self.loss, context.classes)
        stage = Stage(np.zeros(0, dtype=np.int64), np.zeros(0), loss.base(labels_of(train)))
        return StagedModel([stage], [Point(0, {"features": 0})], prices, facts={"loss": name})


@dataclass(frozen=True, kw_only=True)
class _Ordered(BoostedTrees):
    """Base class of the three orders; subclasses choose the next feature."""

    name: ClassVar[str] = ""
    role: ClassVar[str] = "baseline"
    adds_up: ClassVar[bool] = False

    steps: int = param(
        8,
        "operating points: numbers of features, growing by the same factor",
        least=1,
        most=MOST_POINTS - 1,
    )
    trees: int = param(
        50,
        "boosting iterations of each model (for K classes K trees each)",
        least=0,
        search=log(50, 400),  # prefixes of a model are not operating points
    )
    learning_rate: float | None = param(  # type: ignore[assignment]
        None,
        "shrinkage of every tree's output (eta); none: 0.1, for classes 0.4",
        above=0,
        search=log(0.08, 0.8),
    )
    l2: float = param(1.0, "added to a leaf's second derivatives: large steps need it", least=0)
    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 256))

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> PathOfModels:
        """Boost on growing sets of features; ``valid`` is not used."""
        rate = self.learning_rate
        if rate is None:
            rate = _FOR_CLASSES if context.task in (Task.BINARY, Task.MULTICLASS) else _USUAL
        settings = self.settings(context.task, self.leaves, learning_rate=rate, l2=self.l2)
        subsets = Subsets(self, settings, train, prices, context)
        bought = readable(prices, np.zeros(prices.features, dtype=bool))
        sizes = [0, *growing(prices.features, self.steps)]  # the first model has free features only
        models: list[StagedModel] = []
        for k, size in enumerate(sizes):
            if k > 0:
                if int(bought.sum()) >= size:
                    continue  # free features exceed this step's number
                bought = extended(bought, size, prices, self._keys(subsets, models[-1]))
            ensemble = subsets.boost(bought, share_of(context.progress, k, len(sizes)))
            models.append(subsets.whole(ensemble, {"features": int(bought.sum())}))
        context.progress(1, 1)
        return PathOfModels(models)

    def _keys(self, subsets: Subsets, model: StagedModel) -> Keys:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class RandomOrder(_Ordered):
    """Boosted trees on features bought in random order."""

    name: ClassVar[str] = "random-order"

    def _keys(self, subsets: Subsets, model: StagedModel) -> Keys:
        rng = np.random.default_rng(subsets.context.seed)
        # each feature's position in the order
        place = rng.permutation(subsets.prices.features).astype(np.float64)
        return lambda price: place


@dataclass(frozen=True, kw_only=True)
class CheapestFirst(_Ordered):
    """Boosted trees on the cheapest features."""

    name: ClassVar[str] = "cheapest-first"

    def _keys(self, subsets: Subsets, model: StagedModel) -> Keys:
        return lambda price: price


@dataclass(frozen=True, kw_only=True)
class GreedyOrder(_Ordered):
    """Boosted trees on features bought by gain per price, one after the other."""

    name: ClassVar[str] = "greedy-order"

    def _keys(self, subsets: Subsets, model: StagedModel) -> Keys:
        (now,) = model.predict_path(subsets.train.features)
        gain = subsets.explained(np.ascontiguousarray(now.scores.reshape(len(now.scores), -1).T))
        # free features were bought before
        return lambda price: -gain / np.where(price > 0, price, 1.0)


bench_learners = provide_learners(
    Constant, RandomOrder, CheapestFirst, GreedyOrder, family="baselines"
)
