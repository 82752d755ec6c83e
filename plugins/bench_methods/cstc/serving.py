"""Input columns phi of the classifiers, and conversion of a trained tree to a served model.

phi are outputs of boosted trees or the raw features. Rows are routed hard, predictors are
refitted, and useless nodes are pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.boosting import ensemble_of
from bench_models.dictionary import dictionary, tree_columns
from bench_models.least_squares import Growing, solve_positive
from bench_models.problem import Problem, needed
from bench_models.scaling import Scaling
from bench_models.staged import END, Point, Stage, StagedModel

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task
from bench_core.arrays import BoolArray, Float32Array, FloatArray
from bench_methods.cstc.tree import NONE, ClassifierTree, Shape, TreePlace, scores_of, terminals

if TYPE_CHECKING:
    from bench_trees import Ensemble

_RIDGE = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The T columns: the trees of ``ensemble``, or without one the features divided by the scale of
    ``scaling`` (d,), a missing cell at its mean."""

    ensemble: Ensemble | None
    scaling: Scaling

    @property
    def offset(self) -> FloatArray:
        """The columns' difference (T,) from the standardised ones, which are served."""
        if self.ensemble is not None:
            return np.zeros(self.ensemble.trees)
        return self.scaling.mean * self.scaling.factor

    def of(self, X: Float32Array, threads: int) -> Float32Array:
        """Columns for rows (n, d), float32 (T, n)."""
        if self.ensemble is not None:
            return tree_columns(self.ensemble, X, threads)
        columns = self.scaling.columns(X) + self.offset
        return np.ascontiguousarray(columns.T, dtype=np.float32)


def inputs(
    name: str,
    base: BudgetedLearner | None,
    train: Examples,
    prices: Prices,
    context: FitContext,
    *,
    standardise: bool,
) -> tuple[Inputs, Problem]:
    """Columns and the problem over them. Without a ``base`` the columns are the raw features.
    Binary labels are -1 and +1."""
    share = train.weights / train.weights.sum()
    if base is None:
        scaling = Scaling.of(train.X, train.weights)
        divided = standardise & (scaling.scale > 0)
        encoder = Inputs(None, Scaling(scaling.mean, np.where(divided, scaling.scale, 1.0)))
        columns, cost = encoder.of(train.X, context.threads), np.zeros(prices.features)
        needs = prices.needs.toarray().T.copy()
    else:
        ensemble = ensemble_of(name, base, context)
        made = dictionary(ensemble, train.X, share, prices, context.threads)
        encoder = Inputs(ensemble, Scaling.identity(prices.features))
        columns, cost, needs = made.columns, made.tree_cost, made.needs
    sensor_cost, needs = needed(prices.sensor, needs)
    problem = Problem(
        columns=columns,
        y=2.0 * train.y - 1.0 if context.task == Task.BINARY else train.y,
        weight=share,
        share=share,
        tree_cost=cost,
        sensor_cost=sensor_cost,
        needs=needs,
    )
    return encoder, problem


def label_variance(problem: Problem) -> float:
    """Variance of the labels, copies counted; exactly 0 if all are equal."""
    if problem.y.min() == problem.y.max():
        return 0.0
    mean = float(problem.share @ problem.y)
    return float(problem.share @ (problem.y - mean) ** 2)


def per_label(task: Task) -> float:
    """Factor from predictions in label units to scores of the task.

    Binary labels are -1 and +1. With f the mean label the log-odds are 2 artanh(f); 2 f is the
    tangent at 0.
    """
    return 2.0 if task == Task.BINARY else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class NodePredictor:
    """Linear predictor of a node or terminal: weights (T,) over the columns and a bias."""

    weights: FloatArray
    bias: float


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A routing tree and its predictors.

    ``predictors[k, None]`` predicts for all rows at node k, as if it were a leaf. ``[k, up]``
    predicts for the rows that inner node k sends to one side, as if that were a terminal.
    """

    tree: ClassifierTree
    predictors: Mapping[TreePlace, NodePredictor]

    def without(self, gone: set[int]) -> Finished:
        """The tree without these nodes and their descendants."""
        shape, kept = self.tree.shape.without(gone)
        found = {p: self.predictors[TreePlace(kept[p.node], p.side)] for p in places(shape)}
        return Finished(self.tree.without(gone), found)


def places(shape: Shape) -> list[TreePlace]:
    """All nodes, then both sides of all inner ones."""
    nodes = range(shape.nodes)
    inner = [k for k in nodes if not shape.is_leaf(k)]
    return [*map(TreePlace, nodes), *(TreePlace(k, up) for k in inner for up in (True, False))]


def routes(tree: ClassifierTree, scores: FloatArray) -> dict[TreePlace, BoolArray]:
    """Mask (n,) of the rows at each node and each side of a node, by hard gates on ``scores``
    (K, n)."""
    rows = {TreePlace(0): np.ones(scores.shape[1], dtype=bool)}
    # (K, n)
    above = scores > tree.threshold[:, None]
    for k in range(tree.shape.nodes):
        for up, child in tree.shape.sides(k):
            rows[TreePlace(k, up)] = rows[TreePlace(k)] & (above[k] == up)
            if child != NONE:
                rows[TreePlace(child)] = rows[TreePlace(k, up)]
    return rows


def finished(
    problem: Problem, tree: ClassifierTree, *, refit: bool, constant: bool, threads: int
) -> Finished:
    """Fit the predictors of all nodes, and of both sides of inner nodes, on the rows there."""
    own = [NodePredictor(w, float(b)) for w, b in zip(tree.weights, tree.bias, strict=True)]
    if not refit:
        return Finished(tree, {p: own[p.node] for p in places(tree.shape)})
    way = routes(tree, scores_of(problem.columns, tree.weights, tree.bias))

    def fitted(place: TreePlace) -> NodePredictor:
        rows, weights = way[place], tree.weights[place.node]
        if not rows.any():
            return own[place.node]
        return least_squares(problem, weights, rows, constant=constant, threads=threads)

    return Finished(tree, {p: fitted(p) for p in places(tree.shape)})


def least_squares(
    problem: Problem, weights: FloatArray, rows: BoolArray, *, constant: bool, threads: int
) -> NodePredictor:
    """Refit the non-zero ``weights`` (T,) on ``rows`` (n,) without a penalty."""
    growing = Growing(problem, problem.weight * rows, threads, centred=constant)
    growing.grow(np.flatnonzero(weights))  # zeros stay zeros
    normal = growing.normal
    # with fewer rows than columns a ridge picks one solution; a second step removes its bias
    ridge = _RIDGE * normal.gram.diagonal()
    solved = solve_positive(normal.gram, ridge, normal.moment)
    solved = solved + solve_positive(normal.gram, ridge, normal.moment - normal.gram @ solved)
    found = np.zeros(problem.trees)
    found[normal.trees] = solved
    return NodePredictor(found, normal.bias(solved))


def pruned(model: Finished, encoder: Inputs, valid: Examples, context: FitContext) -> Finished:
    """Prune by the run's metric on the validation rows; unchanged without such rows."""
    if len(valid) == 0 or model.tree.shape.nodes == 1:
        return model
    sign = 1.0 if context.metric.higher_is_better else -1.0
    factor = per_label(context.task)

    def quality(scores: FloatArray) -> float:
        values = context.metric.values(factor * scores, valid.y, valid.units, valid.multiplicity)
        return sign * values.mean

    return prune(model, encoder.of(valid.X, context.threads), quality)


def prune(
    model: Finished, columns: Float32Array, quality: Callable[[FloatArray], float]
) -> Finished:
    """Remove nodes, from the leaves up, while the ``quality`` of predictions for the validation
    rows' ``columns`` (T, n) does not fall."""
    shape = model.tree.shape
    gates, values = _scores(model, columns)
    way = routes(model.tree, gates)
    out = np.empty(columns.shape[1])
    for end in terminals(shape):
        rows = way[end]
        out[rows] = values[end][rows]
    # the quality of the full tree, then without one node after another
    best, gone = quality(out), set[int]()
    parents = shape.parents()
    for k in reversed(range(1, shape.nodes)):
        parent = parents[k]
        instead = TreePlace(parent, shape.upper[parent] == k)
        if set(shape.children(parent)) <= gone | {k}:  # the parent becomes a leaf
            instead = TreePlace(parent)
        rows, smaller = way[instead], out.copy()
        smaller[rows] = values[instead][rows]
        now = quality(smaller)
        if now >= best:
            out, best = smaller, now
            gone.add(k)
    return model.without(gone)


def _scores(
    model: Finished, columns: Float32Array
) -> tuple[FloatArray, dict[TreePlace, FloatArray]]:
    """Scores of the gates (K, n), and predictions (n,) of each predictor."""
    tree = model.tree
    fitted = {id(p): p for p in model.predictors.values()}  # equal ones are one object
    weights = np.concatenate([tree.weights, [p.weights for p in fitted.values()]])
    found = scores_of(columns, weights, np.append(tree.bias, [p.bias for p in fitted.values()]))
    of = dict(zip(fitted, found[len(tree.bias) :], strict=True))
    return found[: len(tree.bias)], {where: of[id(p)] for where, p in model.predictors.items()}


def staged(
    model: Finished, inputs: Inputs, prices: Prices, *, task: Task, facts: Mapping[str, Any]
) -> StagedModel:
    """The served model: at each level first predictions ("show"), then routing ("gate")::

        show 0 | gate 0 | show 1, show 2 | gate 1, gate 2 | show 3 ... 6

    A path point ends each group of shows: the tree pruned to that depth. A gate reuses the columns
    of its show stage at no cost. A terminal at one side of a node is a separate show stage. Scores
    are ``factor`` times the predictions.
    """
    tree, shape, factor = model.tree, model.tree.shape, per_label(task)
    order, ends = _layout(shape)
    number = {what: i for i, what in enumerate(order)}

    def stage(predictor: NodePredictor, **onward: Any) -> Stage:
        used = np.flatnonzero(predictor.weights).astype(np.int64)
        weights = predictor.weights[used]
        bias = predictor.bias + float(weights @ inputs.offset[used])
        return Stage(
            entries=used, weights=factor * weights, bias=np.array([factor * bias]), **onward
        )

    stages = []
    for place, gated in order:
        k = place.node
        if gated:
            above = np.nextafter(factor * tree.threshold[k], np.inf)  # strictly above passes
            then, otherwise = (number[shape.after(k, up), False] for up in (True, False))
            router = NodePredictor(tree.weights[k], float(tree.bias[k]))
            stages.append(stage(router, bar=float(above), then=then, otherwise=otherwise))
        else:
            then = number.get((place, True), END)
            stages.append(stage(model.predictors[place], then=then))
    points = [Point(end, {"levels": level + 1}) for level, end in enumerate(ends)]
    parts = stages, points, prices, inputs.ensemble
    return StagedModel(*parts, scaling=inputs.scaling, facts=dict(facts))


def _layout(shape: Shape) -> tuple[list[tuple[TreePlace, bool]], list[int]]:
    """The stages in order, each a place and True for a gate, and the number of the last show stage
    of each level."""
    order: list[tuple[TreePlace, bool]] = []
    ends = []
    group = [TreePlace(0)]
    while group:
        order += [(place, False) for place in group]
        ends.append(len(order) - 1)
        inner = [p.node for p in group if p.side is None and not shape.is_leaf(p.node)]
        order += [(TreePlace(k), True) for k in inner]
        group = [shape.after(k, up) for k in inner for up in (True, False)]
    return order, ends
