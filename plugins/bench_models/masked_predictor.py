"""One predictor for every set of purchases: boosted trees on rows with some cells hidden.

Sequential policies ask for a row's label once some features are bought, whichever these are. The
trees are trained on several copies of every row. Each copy draws u from U(0, 1) and makes each
purchase with probability u. Unbought cells are NaN, whose direction at a split the trees learn.
Where training rows lack a cell of a purchase, an extra column says whether that purchase was made.
A missing result thus differs from an unbought one.

    model = fitted_predictor("my-policy", self.predictor, context)    # a learner's masked-gbrt
    copies = training_copies(train, context.seed)
    part = model.parts_of(copies)
    scores = model.cross_fitted(cells, bought, part)    # of training rows, by trees without them
    loss = model.loss(scores, copies.y)
    scores = model.scores(cells, bought)                # of all other rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import (
    BudgetedLearner,
    Evaluated,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Task,
    UsageError,
    log,
    param,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.optimum import shown_by
from bench_models.boosting import BoostedTrees, bins_for, loss_of
from bench_models.dictionary import layout_of, sums
from bench_models.links import log_loss, log_sum, of_classes, softmax
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_trees import Settings

    from bench_core.serving import PolicyProgram

MOST_SETS, AT_ONCE = 4096, 1 << 18
"""Most sets of purchases whose losses are computed together; scores held for them at a time."""
SHARED = 4
"""Sets of purchases per row from which on they are walked together."""
CHUNK, PATIENCE, LEAST_FALL = 20, 2, 1e-3
"""Least iterations between two checks on the validation rows. Boosting ends after so many checks
without a relative fall of the loss by at least the last figure."""


@dataclass(frozen=True, eq=False)
class MaskedTrees(Stored):
    """Trees over d features and one indicator for each of the ``marked`` purchases."""

    ensemble: Ensemble
    marked: IntArray  # (g,)

    @property
    def outputs(self) -> int:
        """Number of scores of a row."""
        return int(self.ensemble.outputs_count)

    def scores(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Sums (n, K) of rows whose unbought cells (n, d) are NaN; ``bought`` (n, k)."""
        return sums(self.ensemble, with_marks(cells, bought, self.marked))

    def of_all_sets(self, X: Float32Array, purchases: int, shown_by: IntArray) -> FloatArray:
        """Sums (n, 2^k, K) of rows with every set of k ``purchases``, as ``scores`` gives them.

        Purchase ``shown_by`` (d,) reveals a feature, -1: none is needed. See ``code_of``.
        """
        from bench_models.masked_predictor_kernels import add_all_sets

        trees, marks = self.ensemble, len(self.marked)
        total = np.tile(trees.base, (len(X), 1 << purchases, 1))
        cells = with_marks(X, np.ones((len(X), purchases), dtype=bool), self.marked)
        nodes = np.empty((3, int(np.diff(trees.start).max(initial=1))), dtype=np.int64)
        own = trees.start, trees.feature, trees.threshold, trees.left, trees.right
        more = trees.missing_left, trees.value, trees.output, nodes, total
        add_all_sets(cells, marks, np.append(shown_by, self.marked), *own, *more)
        return total

    def of_sets(
        self, X: Float32Array, row: IntArray, bought: BoolArray, shown_by: IntArray
    ) -> FloatArray:
        """Sums (p, K) of rows ``row`` (p,) of X (n, d) with purchases (p, k), as ``scores`` gives
        them; fast where neighbours are the same row. ``shown_by`` is as in ``of_all_sets``."""
        from bench_models.masked_predictor_kernels import add_sets

        trees, marks = self.ensemble, len(self.marked)
        total = np.repeat(trees.base[:, None], len(row), axis=1)
        cells = with_marks(X, np.ones((len(X), bought.shape[1]), dtype=bool), self.marked)
        own = trees.start, trees.feature, trees.threshold, trees.left, trees.right
        more = trees.missing_left, trees.value, trees.output, total
        add_sets(cells, marks, np.append(shown_by, self.marked), row, bought, *own, *more)
        return total.T

    def evaluated(self, prices: Prices) -> Evaluated:
        """The most splits and trees that a row passes."""
        multiplier = np.append(prices.multiplier, np.ones(len(self.marked)))
        return most_evaluated(self.ensemble, multiplier)


@dataclass(frozen=True, eq=False)
class MaskedPredictor(Stored):
    """Trees of all training rows, and trees without each part of them."""

    whole: MaskedTrees
    without: Sequence[MaskedTrees]  # one part each
    task_loss: str  # "logistic", "softmax" or "squared"

    def scores(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores (n,) or (n, K), as a ``Prediction`` has them."""
        return self._shaped(self.whole.scores(cells, bought))

    def parts_of(self, copies: Examples) -> IntArray:
        """The part (n,) of each of the ``training_copies``."""
        return spread_by_class(copies.y, len(self.without))

    def cross_fitted(self, cells: Float32Array, bought: BoolArray, part_of: IntArray) -> FloatArray:
        """``scores`` of training rows, each by trees trained without its ``part_of`` (n,)."""
        scores = np.empty((len(cells), self.whole.outputs))
        for k, trees in enumerate(self.without):
            rows = part_of == k
            scores[rows] = trees.scores(cells[rows], bought[rows])
        return self._shaped(scores)

    def losses_of_all_sets(
        self, X: Float32Array, y: FloatArray, part_of: IntArray, prices: Prices
    ) -> FloatArray | None:
        """The losses (n, 2^k) of ``cross_fitted`` scores with every set of k purchases, numbered by
        ``code_of``; None where there are too many, or trees are not used."""
        k, shown = len(Purchases.of(prices)), shown_by(prices)
        if 1 << k > MOST_SETS or (shown < -1).any() or not isinstance(self.whole, MaskedTrees):
            return None
        table, size = np.empty((len(X), 1 << k)), max(1, AT_ONCE >> k)
        for number, trees in enumerate(self.without):
            members = np.flatnonzero(part_of == number)
            for rows in np.split(members, range(size, len(members), size)):
                sums = trees.of_all_sets(X[rows], k, shown).reshape(-1, self.whole.outputs)
                losses = self.loss(self._shaped(sums), np.repeat(y[rows], 1 << k))
                table[rows] = losses.reshape(len(rows), -1)
        return table

    def losses_of_sets(
        self,
        X: Float32Array,
        y: FloatArray,
        part_of: IntArray,
        row: IntArray,
        bought: BoolArray,
        prices: Prices,
    ) -> FloatArray:
        """The losses (p,) of ``cross_fitted`` scores of rows ``row`` (p,) of X (n, d) with
        purchases (p, k)."""
        shown, scores = shown_by(prices), np.empty((len(row), self.whole.outputs))
        fast = isinstance(self.whole, MaskedTrees) and (shown >= -1).all()
        if not fast or len(row) < SHARED * len(np.unique(row)):
            cells = masked(X[row], bought, Purchases.of(prices), prices)
            return self.loss(self.cross_fitted(cells, bought, part_of[row]), y[row])
        order = np.argsort(row, kind="stable")
        for k, trees in enumerate(self.without):
            those = order[part_of[row[order]] == k]
            scores[those] = trees.of_sets(X, row[those], bought[those], shown)
        return self.loss(self._shaped(scores), y[row])

    def loss(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """The loss (n,) of scores (n,) or (n, K): nats for classes, else half squared errors."""
        if self.task_loss == "squared":
            return np.asarray((y - scores) ** 2 / 2)
        return log_loss(scores, y)

    def expected_loss(self, scores: FloatArray, truth: FloatArray) -> FloatArray:
        """The mean loss (n,) of scores where labels are distributed by the scores ``truth``. For
        numbers it is the excess over the loss of ``truth`` itself."""
        if self.task_loss == "squared":
            return np.asarray((truth - scores) ** 2 / 2)
        both = of_classes(scores)
        return np.asarray(log_sum(both) - (softmax(of_classes(truth)) * both).sum(axis=1))

    def _shaped(self, found: FloatArray) -> FloatArray:
        return found if self.task_loss == "softmax" else found[:, 0]


class PredictorPolicy(Stored):
    """A policy that predicts by a ``predictor``."""

    predictor: MaskedPredictor
    prices: Prices

    @cached_property
    def purchases(self) -> Purchases:
        """Purchases at these prices."""
        return Purchases.of(self.prices)

    @cached_property
    def each_answer(self) -> Evaluated:
        """The predictor's trees."""
        return self.predictor.whole.evaluated(self.prices)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The predictor's scores."""
        return self.predictor.scores(cells, bought)

    def served(
        self, values: Sequence[Ensemble], prices: Prices, rule: str, **how: Any
    ) -> PolicyProgram:
        """A program of trees that value purchases, by a ``rule``, and the predictor's trees."""
        from bench_core.serving import PolicyProgram

        whole = self.predictor.whole
        return PolicyProgram.of(values, whole.ensemble, prices, whole.marked, rule, **how)


@dataclass(frozen=True, kw_only=True)
class MaskedTraining(BoostedTrees):
    """Parameters of boosted trees on masked rows."""

    copies: int = param(6, "copies of every training row, each with its own purchases", least=1)
    parts: int = param(
        5, "parts of the training rows, each predicted by trees of the others", least=2, most=20
    )
    trees: int = param(
        500, "most boosting iterations (for K classes K trees each)", least=0, search=log(200, 1000)
    )
    leaves: int = param(32, "most leaves of a tree", least=2, search=log(8, 128))
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)

    def masked_settings(self, task: Task) -> Settings:
        """The engine's settings for masked copies."""
        return self.settings(task, self.leaves, min_rows=self.min_rows * self.copies)


def fitted_predictor(name: str, learner: BudgetedLearner, context: FitContext) -> MaskedPredictor:
    """The predictor trained by ``learner``; ``name`` is the caller's.

    Raises UsageError where the learner has none.
    """
    predictor = getattr(getattr(context.fitted(learner), "policy", None), "predictor", None)
    if not isinstance(predictor, MaskedPredictor):
        raise UsageError(
            f"{name}: {learner.name!r} has no predictor for masked rows; choose masked-gbrt"
        )
    return predictor


def training_copies(train: Examples, seed: int) -> Examples:
    """Every copy of the training rows as its own row, in random order.

    The order depends on cells, label and seed, not on the rows' places: a row of multiplicity m
    gives the same as m rows.
    """
    rng = np.random.default_rng(seed)
    factor = rng.integers(1 << 63, size=train.X.shape[1] + 1, dtype=np.uint64) * 2 + 1
    key = np.ascontiguousarray(train.y).view(np.uint64) * factor[0]
    for j, other in enumerate(factor[1:]):
        bits = np.ascontiguousarray(train.X[:, j]).view(np.uint32).astype(np.uint64)
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + bits * other
    key ^= key >> np.uint64(32)
    order = np.argsort(key, kind="stable")
    copies = 1 if train.multiplicity is None else train.multiplicity[order]
    rows = np.repeat(order, copies)
    return Examples(train.X[rows], train.y[rows])


def spread_by_class(y: FloatArray, parts: int) -> IntArray:
    """A part (n,) of each row with these labels; every class is spread evenly."""
    part = np.empty(len(y), dtype=np.int64)
    part[np.argsort(y, kind="stable")] = np.arange(len(y)) % parts
    return part


def random_purchases(purchases: Purchases, rows: int, rng: np.random.Generator) -> BoolArray:
    """Random purchases (n, k) and the free ones. Each row has one probability, from U(0, 1), for
    every purchase."""
    drawn = rng.random((rows, len(purchases))) < rng.random((rows, 1))
    return closed(drawn | (purchases.price == 0), purchases)


def code_of(bought: BoolArray) -> IntArray:
    """A number (n,) for each set of purchases (n, k)."""
    return np.asarray(bought @ (1 << np.arange(bought.shape[1])), dtype=np.int64)


def closed(bought: BoolArray, purchases: Purchases) -> BoolArray:
    """Adds to the purchases (n, k) those already covered by others."""
    return bought if purchases.apart else purchases.made(purchases.sensors(bought))


def masked(
    X: Float32Array, bought: BoolArray, purchases: Purchases, prices: Prices
) -> Float32Array:
    """The cells (n, d), NaN where a sensor was not bought."""
    hidden = ~visible(bought, purchases, prices)
    return np.where(hidden, np.float32(np.nan), X)


def visible(bought: BoolArray, purchases: Purchases, prices: Prices) -> BoolArray:
    """The features (n, d) whose sensors are all among the purchases made (n, k).

    A purchase covered by others counts as made, as in ``Purchases.made``.
    """
    lacking = (~purchases.sensors(bought)).astype(np.float32)
    return np.asarray(lacking @ prices.needs.T.astype(np.float32) == 0)


def most_evaluated(trees: Ensemble, multiplier: FloatArray) -> Evaluated:
    """The total length of all trees' longest paths, and the number of trees with a split."""
    if trees.trees == 0:
        return Evaluated()
    longest = layout_of(trees, multiplier).paths()[1]
    return Evaluated(float(longest.sum()), float((longest > 0).sum()))


def most_of_any(sets: Iterable[Ensemble], multiplier: FloatArray) -> Evaluated:
    """The most splits and the most trees of any of these, as ``most_evaluated`` counts them."""
    each = [most_evaluated(trees, multiplier) for trees in sets]
    return Evaluated(max(e.splits for e in each), max(e.trees for e in each))


def marked_purchases(train: Examples, prices: Prices) -> IntArray:
    """The purchases (g,) with indicator columns: the ones whose cells may be missing."""
    purchases, gaps = Purchases.of(prices), np.isnan(train.X).any(axis=0)
    lacking = np.asarray(prices.needs[np.flatnonzero(gaps)].sum(axis=0)).ravel() > 0
    return np.flatnonzero(purchases.sets[:, lacking].any(axis=1) & (purchases.price > 0))


def with_marks(cells: Float32Array, bought: BoolArray, marked: IntArray) -> Float32Array:
    """The cells followed by 1 or 0 for each of the ``marked`` purchases (g,)."""
    if len(marked) == 0:
        return cells
    return np.hstack([cells, bought[:, marked].astype(np.float32)])


def fit_masked(
    learner: MaskedTraining, train: Examples, valid: Examples, prices: Prices, context: FitContext
) -> MaskedPredictor:
    """Train on masked copies of all ``training_copies``, and again without each part.

    The mean loss of the equally masked validation rows ends boosting. All parts get as many trees.
    """
    purchases, rng = Purchases.of(prices), np.random.default_rng([context.seed, 1])
    parts, settings = learner.parts, learner.masked_settings(context.task)

    def states(rows: Examples) -> tuple[IntArray, BoolArray]:
        row = np.repeat(np.arange(len(rows)), learner.copies)
        return row, random_purchases(purchases, len(row), rng)

    row, bought = states(train)
    valid_row, valid_bought = states(valid)
    cells = masked(valid.X[valid_row], valid_bought, purchases, prices)
    held = cells, valid_bought, valid.y[valid_row]

    def report(done: int) -> None:
        context.progress(done, (parts + 1) * max(1, settings.trees))

    whole = fit_on_states(
        learner, settings, train, (row, bought), held, prices, context, progress=report
    )
    name, loss = loss_of(context.task, learner.loss, context.classes)
    predictor = MaskedPredictor(whole, [whole] * parts, name)
    part_of = predictor.parts_of(train)[row]
    enough = replace(settings, trees=whole.ensemble.trees // loss.outputs)
    without = []
    for k in range(parts):
        context.progress(k + 1, parts + 1)
        outside = np.flatnonzero(part_of != k) if len(train) >= parts else np.arange(len(row))
        outside_states = row[outside], bought[outside]
        without.append(fit_on_states(learner, enough, train, outside_states, None, prices, context))
    return replace(predictor, without=without)


def fit_on_states(
    learner: BoostedTrees,
    settings: Settings,
    train: Examples,
    states: tuple[IntArray, BoolArray],
    held: tuple[Float32Array, BoolArray, FloatArray] | None,
    prices: Prices,
    context: FitContext,
    progress: Callable[[int], None] = lambda done: None,
) -> MaskedTrees:
    """Train on given states: rows (m,) of ``train`` and their purchases (m, k).

    The cells, purchases and labels of ``held``, if given, end boosting.
    """
    from bench_trees import Bins, boost, find_bins
    from bench_trees.losses import Labels

    threads, marked, (row, bought) = context.threads, marked_purchases(train, prices), states
    bins = find_bins(train.X, bins_for(train, learner.max_bins), None, threads)
    edges = np.append(bins.edges, np.full(len(marked), 0.5)).astype(np.float32)
    bins = Bins(edges, np.append(bins.offset, bins.offset[-1] + 1 + np.arange(len(marked))))
    X = with_marks(masked(train.X[row], bought, Purchases.of(prices), prices), bought, marked)
    words, y = bins.words(X, threads), train.y[row]
    loss: Any = loss_of(context.task, learner.loss, context.classes)[1]

    def grown(trees: int, start: FloatArray | None = None) -> Ensemble:
        how = replace(settings, trees=trees)
        part = boost(words, bins, y, loss=loss, settings=how, start=start, threads=threads)
        return replace(part, diverged=False)

    if held is None or len(held[2]) == 0:
        return MaskedTrees(grown(settings.trees), marked)
    base, labels = loss.base(Labels(y)), Labels(held[2])
    rows = X, with_marks(*held[:2], marked)
    scores = [np.repeat(base[:, None], len(x), axis=1) for x in rows]
    best, best_length, waited, trees = loss.mean(scores[1], labels), 1, 0, 0
    parts = [Ensemble.of_trees([], [], base, bins.features)]
    while trees < settings.trees and waited < PATIENCE:
        parts.append(grown(min(max(CHUNK, trees // 4), settings.trees - trees), scores[0]))
        if parts[-1].trees == 0:
            break
        trees += parts[-1].trees // loss.outputs
        progress(trees)
        more = replace(parts[-1], base=np.zeros(len(base)))
        scores = [old + sums(more, x).T for old, x in zip(scores, rows, strict=True)]
        waited += 1
        if (now := loss.mean(scores[1], labels)) < best - LEAST_FALL * abs(best):
            best, best_length, waited = now, len(parts), 0
    return MaskedTrees(replace(Ensemble.concat(parts[:best_length]), base=base), marked)
