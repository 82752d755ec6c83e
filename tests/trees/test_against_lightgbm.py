"""LightGBM at equal settings, as an independent peer."""

import numpy as np
import pytest
from bench_trees.importers.lightgbm import from_lightgbm
from bench_trees.losses import LambdaRank, Logistic, Softmax, Squared
from bench_trees.penalties import Penalty
from bench_trees.settings import Settings
from helpers.grown import boosted, logistic, softmax, squared
from helpers.random_trees import scores_of

from bench_core import Queries
from bench_core.metrics import parse_metric

lightgbm = pytest.importorskip("lightgbm")

TREES = 40
SAME = {
    "num_leaves": 16,
    "max_depth": 4,
    "learning_rate": 0.1,
    "min_data_in_leaf": 5,
    "min_data_in_bin": 1,
    "max_bin": 255,
    "num_threads": 1,
    "verbosity": -1,
    "feature_pre_filter": False,
}


def train_lightgbm(X, y, trees=TREES, group=None, **params):
    data = lightgbm.Dataset(X, y, group=group, params={**SAME, **params})
    return lightgbm.train({**SAME, **params}, data, trees)


def skewed_rows(rng, n, d):
    """Continuous columns with many zeros and heavy tails."""
    X = rng.gamma(0.5, 1, (n, d)).astype(np.float32) ** 2
    X[rng.random((n, d)) < np.linspace(0, 0.9, d)] = 0
    return X


def signal(rng, X):
    z = np.log1p(X)
    values = z[:, 0] - z[:, 1] * z[:, 2] + np.sin(3 * z[:, 3]) + rng.normal(0, 0.3, len(X))
    return np.asarray(values)


def fitted(X, y, loss, l2=0, **kwargs):
    settings = Settings(trees=TREES, min_rows=5, l2=l2)
    return scores_of(boosted(X, y, loss=loss, settings=settings, **kwargs), X)


def classes(values):
    return np.digitize(values, [-0.3, 0.3, 0.9]).astype(float)


@pytest.mark.parametrize(
    ("loss", "label", "value", "objective", "l2"),
    [
        (Squared(), lambda y: y, squared, "regression", 0.0),
        (Logistic(), lambda y: (y > 0.3).astype(float), logistic, "binary", 0.0),
        (Softmax(4), classes, softmax, "multiclass", 0.0),
        (Softmax(4), classes, softmax, "multiclass", 1.0),
    ],
)
def test_the_training_loss_is_that_of_lightgbm(loss, label, value, objective, l2):
    rng = np.random.default_rng(0)
    X = skewed_rows(rng, 3000, 10)
    y = label(signal(rng, X))
    how = {"num_class": loss.outputs, "lambda_l2": l2, "min_sum_hessian_in_leaf": 1e-3}
    model = train_lightgbm(X, y, objective=objective, **how)
    theirs = np.atleast_2d(model.predict(X, raw_score=True).T)
    ours = value(fitted(X, y, loss, l2), y).mean()
    assert ours == pytest.approx(value(theirs, y).mean(), rel=0.01)


def test_lambdarank_training_ndcg_is_that_of_lightgbm():
    rng = np.random.default_rng(3)
    sizes = rng.integers(5, 40, 120)
    X = skewed_rows(rng, int(sizes.sum()), 10)
    y = np.digitize(signal(rng, X), [0.0, 0.6, 1.2]).astype(float)
    queries = Queries.from_sizes(sizes)

    def ndcg(f):
        return parse_metric("ndcg@10").values(f, y, queries).mean

    theirs = train_lightgbm(X, y, objective="lambdarank", group=sizes).predict(X)
    ours = fitted(X, y, LambdaRank(), queries=queries.boundaries)[0]
    assert ndcg(ours) == pytest.approx(ndcg(theirs), rel=0.01)
    assert ndcg(ours) > 0.85  # both learn; an untrained ranking has about 0.5


def shape_of(e, node, constant=0.0):
    """(feature, threshold, left, right), or a leaf's value."""
    if e.feature[node] < 0:
        return float(e.value[node]) - constant
    children = (shape_of(e, int(side[node]), constant) for side in (e.left, e.right))
    return (int(e.feature[node]), float(e.threshold[node]), *children)


def assert_same_shape(ours, theirs, X):
    """Same features, same rows to either side, same leaf values.

    Where a node holds no row between two edges both cut there alike; LightGBM scans from the
    right and names the upper edge, so thresholds are compared by what they do.
    """
    if isinstance(ours, float) or isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
        return
    assert ours[0] == theirs[0]
    left = X[:, ours[0]] <= ours[1]
    np.testing.assert_array_equal(left, X[:, ours[0]] <= theirs[1])
    assert_same_shape(ours[2], theirs[2], X[left])
    assert_same_shape(ours[3], theirs[3], X[~left])


@pytest.mark.parametrize("split_price", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_lazy_trees_are_those_of_lightgbm(seed, split_price):
    rng = np.random.default_rng(seed)
    n, d, tradeoff = 600, 12, 0.03
    X = rng.integers(0, 40, (n, d)).astype(np.float32)
    y = np.sin(X[:, :6] / 8) @ rng.normal(size=6) + rng.normal(0, 0.2, n)
    price = rng.integers(1, 20, d) / 8
    charges = Penalty.plain(d, lazy=tradeoff * price, split=np.full(d, tradeoff * split_price))
    settings = Settings(trees=30, max_depth=None, max_leaves=12, min_rows=5)
    ours = boosted(X, y, settings=settings, penalty=charges)
    theirs = train_lightgbm(
        X,
        y,
        30,
        objective="regression",
        num_leaves=12,
        max_depth=-1,
        cegb_tradeoff=2 * tradeoff,
        cegb_penalty_feature_lazy=price.tolist(),
        cegb_penalty_split=split_price,
    )
    peer = from_lightgbm(theirs.model_to_string()).ensemble
    assert peer.trees == ours.trees > 10
    assert len(np.unique(ours.feature)) < d  # some feature is too expensive: prices matter
    for t in range(ours.trees):  # LightGBM adds its constant to the first tree's leaves
        constant = 0.0 if t else float(ours.base[0])
        mine = shape_of(ours, int(ours.start[t]))
        assert_same_shape(mine, shape_of(peer, int(peer.start[t]), constant), X)
