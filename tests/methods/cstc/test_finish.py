"""Hard routes, refitted predictors, pruning, and the model that is served."""

import numpy as np
import pytest
from bench_methods.cstc.serving import (
    Finished,
    Inputs,
    NodePredictor,
    finished,
    places,
    prune,
    routes,
    staged,
)
from bench_methods.cstc.tree import NONE, ClassifierTree, Shape, TreePlace, scores_of
from bench_models.scaling import Scaling
from helpers.cstc_cases import SHAPES, problem, tree

from bench_core import Features, Prices, Task

P = problem(0, n=120)
T = tree(P, Shape.balanced(3), 4)


def way(t, x):
    """The nodes that one row (T,) sees, and whether it goes up there."""
    k, found = 0, []
    while k != NONE:
        up = bool(t.bias[k] + float(t.weights[k] @ x) > t.threshold[k])
        found.append((k, up))
        k = t.shape.upper[k] if up else t.shape.lower[k]
    return found


def test_rows_go_up_where_their_score_is_above_the_threshold():
    found = routes(T, scores_of(P.columns, T.weights, T.bias))
    for i, x in enumerate(P.columns.T.astype(float)):
        seen = dict(way(T, x))
        assert {k for k in range(7) if found[TreePlace(k)][i]} == set(seen)
        assert all(found[TreePlace(k, up)][i] for k, up in seen.items())


@pytest.mark.parametrize("constant", [True, False])
def test_predictors_are_least_squares_on_the_rows_that_end_there(constant):
    model = finished(P, T, refit=True, constant=constant, threads=1)
    X, root = P.columns.T.astype(float), np.sqrt(P.share)
    groups = {place: [] for place in model.predictors}
    for i, x in enumerate(X):
        for k, up in way(T, x):
            groups[k, None].append(i)
            if (k, up) in groups:
                groups[k, up].append(i)
    for place, rows in groups.items():
        k, predictor = place.node, model.predictors[place]
        support = np.flatnonzero(T.weights[k])
        if len(rows) < 2 * len(support):
            continue
        A = X[rows][:, support]
        A = np.column_stack([A, np.ones(len(rows))]) if constant else A
        expected = np.linalg.lstsq(A * root[rows, None], P.y[rows] * root[rows], rcond=None)[0]
        assert predictor.weights[support] == pytest.approx(expected[: len(support)], abs=1e-8)
        assert predictor.bias == pytest.approx(expected[-1] if constant else 0.0, abs=1e-8)
        assert not np.delete(predictor.weights, support).any()


def test_more_columns_than_rows_are_fitted_without_running_wild():
    p = problem(1, n=40, trees=60)
    model = finished(p, tree(p, Shape.balanced(3), 1, 0.0), refit=True, constant=True, threads=1)
    assert max(np.abs(q.weights).max() for q in model.predictors.values()) < 100


def test_without_refitting_terminals_return_their_parents_prediction():
    model = finished(P, T, refit=False, constant=True, threads=1)
    for place, predictor in model.predictors.items():
        assert predictor.weights.tolist() == T.weights[place.node].tolist()
        assert predictor.bias == T.bias[place.node]


def naive_predictions(model, columns):
    """What each row ends with, walking it down the (pruned) tree."""
    out = []
    for x in columns.T.astype(float):
        k, up = way(model.tree, x)[-1]
        leaf = model.tree.shape.is_leaf(k)
        predictor = model.predictors[TreePlace(k, None if leaf else up)]
        out.append(predictor.bias + float(predictor.weights @ x))
    return np.array(out)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_pruning_removes_from_the_leaves_up_whatever_does_not_help(shape, seed):
    p = problem(seed, n=80)
    model = finished(p, tree(p, shape, seed), refit=True, constant=True, threads=1)
    fresh = problem(seed + 100, n=50)

    def quality(scores):
        return -round(float(((scores - fresh.y) ** 2).mean()), 3)  # coarse: ties occur

    expected = set(range(shape.nodes))
    for k in reversed(range(1, shape.nodes)):
        gone = set(range(shape.nodes)) - expected
        with_it, without = (
            quality(naive_predictions(model.without(g), fresh.columns)) for g in (gone, gone | {k})
        )
        if without >= with_it:
            expected -= shape.below(k)
    found = prune(model, fresh.columns, quality)
    kept = shape.without(set(range(shape.nodes)) - expected)[0]
    assert (found.tree.shape.upper, found.tree.shape.lower) == (kept.upper, kept.lower)
    assert naive_predictions(found, fresh.columns) == pytest.approx(
        naive_predictions(model.without(set(range(shape.nodes)) - expected), fresh.columns)
    )


def raw_model(t, prices, task=Task.REGRESSION):
    """Random predictors over raw features, and the served model."""
    rng = np.random.default_rng(9)
    d = prices.features

    def anyone(k):  # on its node's own columns
        return NodePredictor(
            np.where(t.weights[k] != 0, rng.normal(size=d), 0.0), float(rng.normal())
        )

    model = Finished(t, {place: anyone(place.node) for place in places(t.shape)})
    return model, staged(model, Inputs(None, Scaling.identity(d)), prices, task=task, facts={})


@pytest.mark.parametrize("shape", SHAPES)
def test_the_served_model_walks_rows_down(shape):
    t = tree(problem(2), shape, 2, 0.6)
    model, serving = raw_model(t, Prices.additive(np.ones(6)))
    X = np.random.default_rng(3).normal(size=(60, 6)).astype(np.float32)
    last = list(serving.predict_path(Features(X)))[-1]
    assert last.scores == pytest.approx(naive_predictions(model, X.T), rel=1e-12, abs=1e-12)


def test_an_earlier_point_is_the_tree_cut_at_that_level():
    t = tree(problem(2), Shape.balanced(3), 2, 0.4)
    model, serving = raw_model(t, Prices.additive(np.ones(6)))
    X = np.random.default_rng(3).normal(size=(60, 6)).astype(np.float32)
    points = list(serving.predict_path(Features(X)))
    assert [dict(p.point) for p in points] == [{"levels": n} for n in (1, 2, 3)]
    cut = [model.without({1, 2}), model.without({3, 4, 5, 6}), model]
    for point, smaller in zip(points, cut, strict=True):
        assert point.scores == pytest.approx(naive_predictions(smaller, X.T), abs=1e-12)
        paid = point.bills["path"].feature_cost(Prices.additive(np.ones(6)), 60)
        for i, x in enumerate(X.astype(float)):
            used = (smaller.tree.weights[[k for k, _ in way(smaller.tree, x)]] != 0).any(axis=0)
            assert paid[i] == used.sum()


def test_a_row_at_the_threshold_is_served_downwards():
    t = ClassifierTree(np.ones((3, 1)), np.zeros(3), np.array([0.25, 0, 0]), Shape.balanced(2))
    model, serving = raw_model(t, Prices.additive(np.ones(1)))
    X = np.array([[0.25], [np.nextafter(np.float32(0.25), np.float32(1))]], dtype=np.float32)
    scores = list(serving.predict_path(Features(X)))[-1].scores
    for score, k, x in zip(scores, (2, 1), X[:, 0], strict=True):
        leaf = model.predictors[TreePlace(k)]
        assert score == pytest.approx(leaf.bias + leaf.weights[0] * x)
