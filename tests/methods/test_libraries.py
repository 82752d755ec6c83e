"""Other libraries as learners: the units of their penalties, forests, versions."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.catboost import CatBoost
from bench_methods.cegb import CEGB
from bench_methods.lightgbm import LightGBM, LightGBMCEGB
from bench_methods.miser import GreedyMiser
from bench_methods.scikit import RandomForest
from bench_methods.xgboost import XGBoost
from bench_models import libraries
from bench_models.tree_average import TreeAverage
from helpers.boosted_cases import examples, fit, mean_cost, path, prices
from helpers.toys import ALL_TASKS

from bench_core import DiscountGroup, Examples, InputError, Queries, Task, UsageError, price_list
from bench_core.planning.keys import DescribedLearner

for peer in ("lightgbm", "xgboost", "catboost"):
    pytest.importorskip(peer, reason=f"{peer} is not installed")


@pytest.mark.parametrize("learner", [LightGBM(), XGBoost(), CatBoost()], ids=str)
@pytest.mark.parametrize(("columns", "most"), [(301, 37), (299, 254)], ids=["wide", "not wide"])
def test_of_more_features_than_rows_there_are_as_few_bins_as_in_our_trees(learner, columns, most):
    X = np.zeros((300, columns), np.float32)
    X[:, 0] = np.arange(300)
    train = Examples(X, np.random.default_rng(0).normal(size=300))
    grown = replace(learner, trees=60, depth=5, min_rows=1)
    model = fit(grown, train, Task.REGRESSION, price_list(np.zeros(columns)))
    cuts = np.unique(model.ensemble.threshold[model.ensemble.feature == 0])
    assert len(cuts) <= most
    assert (len(cuts) > 45) == (columns < 300)


def first_split(learner, train, cost):
    ensemble = fit(learner, train, Task.REGRESSION, price_list(cost)).ensemble
    return [int(f) for f in ensemble.feature if f >= 0]


ONE_SPLIT = [
    LightGBMCEGB(trees=1, leaves=2, min_rows=1, acquisition="all-rows", learning_rate=1.0),
    LightGBMCEGB(trees=1, leaves=2, min_rows=1, learning_rate=1.0),
    GreedyMiser(trees=1, depth=1, min_rows=1),
    CatBoost(trees=1, depth=1, min_rows=1, l2=0.0, learning_rate=1.0),
    CatBoost(trees=1, depth=1, min_rows=1, l2=0.0, learning_rate=1.0, acquisition="all-rows"),
]


@pytest.mark.parametrize("learner", ONE_SPLIT, ids=lambda one: one.name)
@pytest.mark.parametrize("tradeoff", [0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 3.0])
def test_the_first_split_minimises_half_the_squares_plus_tau_times_the_cost_of_all_rows(
    learner, tradeoff
):
    """All rows pay at the root, at once or one by one: the unit of every penalty, by hand."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(60, 3)).astype(np.float32)
    y = X @ np.array([0.5, 0.8, 1.0]) + 0.2 * rng.normal(size=60)
    copies = rng.integers(1, 4, size=60)
    cost = np.array([1.0, 3.0, 9.0])
    residual = y - np.average(y, weights=copies)
    tau = tradeoff * np.average(residual**2, weights=copies) / 2 / cost.sum()
    best, expected = float((copies * residual**2).sum()) / 2, []
    for feature in range(3):
        for threshold in range(3):
            left = X[:, feature] <= threshold
            output = np.zeros(60)
            for side in (left, ~left):
                output[side] = np.average(residual[side], weights=copies[side])
            value = float((copies * (residual - output) ** 2).sum()) / 2
            value += copies.sum() * tau * cost[feature]
            if value < best:
                best, expected = value, [feature]
    train = Examples(X, y, None, copies)
    assert first_split(replace(learner, tradeoff=tradeoff), train, cost) == expected


def test_lazy_cegb_of_lightgbm_is_our_cegb():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 12, (500, 5)).astype(np.float32)
    y = np.sin(X / 3) @ np.array([1.0, 0.8, 0.6, 0.4, 0.2]) + 0.1 * rng.normal(size=500)
    at = price_list(np.array([9.0, 4.0, 2.0, 1.0, 1.0]), split=0.05)
    train = Examples(X, y)
    theirs = LightGBMCEGB(trees=20, leaves=8, tradeoff=0.2)
    ours = CEGB(trees=20, leaves=8, tradeoff=0.2)
    a, b = (path(fit(one, train, Task.REGRESSION, at), train)[-1] for one in (theirs, ours))
    assert np.allclose(a.scores, b.scores, rtol=0, atol=1e-5)
    assert mean_cost(a, at) == pytest.approx(mean_cost(b, at))
    assert a.bills["path"].feature_cost(at, 500).mean() < 16  # of 17: prices matter


def test_of_a_discounted_group_lightgbm_charges_every_feature_in_full():
    grid = np.array([(a, b) for a in (0, 1) for b in (0, 1)] * 25, dtype=np.float32)
    train = Examples(grid, 1.1 * grid[:, 0] + 1.0 * grid[:, 1])
    group = price_list(np.array([10.0, 10.0]), discounted=[DiscountGroup((0, 1), (0.5, 0.5))])
    learner = LightGBMCEGB(trees=3, leaves=2, min_rows=1, tradeoff=0.04 * group.everything)
    model = fit(learner, train, Task.REGRESSION, group)
    assert set(model.ensemble.feature.tolist()) == {-1, 0}  # the second would cost 0.5 in truth


@pytest.mark.parametrize("task", sorted(ALL_TASKS))
def test_a_forest_scores_as_scikit_learn_does(task):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    train = examples(task)
    last = path(fit(RandomForest(trees=12), train, task), train)[-1]
    classes = task in (Task.BINARY, Task.MULTICLASS)
    peer = (RandomForestClassifier if classes else RandomForestRegressor)(
        n_estimators=12, random_state=0, max_features="sqrt" if classes else 1 / 3
    )
    peer.fit(train.X, train.y)
    if not classes:
        expected = peer.predict(train.X)
    else:
        shares = np.clip(peer.predict_proba(train.X), 1e-6, 1 - 1e-6)
        logs = np.log(shares)
        expected = logs if task is Task.MULTICLASS else logs[:, 1] - logs[:, 0]
    assert np.allclose(last.scores, expected, rtol=0, atol=1e-9)


def test_a_prefix_of_a_forest_is_the_average_of_its_trees_so_far():
    train = examples(Task.REGRESSION)
    model = fit(RandomForest(trees=5), train, Task.REGRESSION)
    five = [p.scores for p in path(model, train)]
    three = path(fit(RandomForest(trees=3), train, Task.REGRESSION), train)[-1].scores
    assert len(five) == 5
    assert np.allclose(five[2], three, rtol=0, atol=1e-12)


def test_a_tree_of_several_classes_is_billed_once():
    train = examples(Task.MULTICLASS)
    at = prices(split=1.0, tree=10.0)
    model = fit(RandomForest(trees=3, depth=2), train, Task.MULTICLASS, at)
    assert isinstance(model, TreeAverage)
    bill = path(model, train)[-1].bills["path"]
    assert np.max(bill.splits) <= 3 * 2
    assert np.asarray(bill.trees).tolist() == [3.0] * 300


def test_multiclass_catboost_counts_trees_not_trees_times_classes():
    train = examples(Task.MULTICLASS)
    points = [p.point["trees"] for p in path(fit(CatBoost(trees=7), train, Task.MULTICLASS), train)]
    assert points == list(range(1, 8))


def test_a_peer_that_is_not_installed_is_one_line_with_the_extra():
    with pytest.raises(UsageError, match=r"pip install 'budget-bench\[peers\]'"):
        libraries.version_of("nothing", "no-such-distribution-of-anyone")


def test_another_version_of_a_peer_is_another_key(monkeypatch):
    before = DescribedLearner(XGBoost()).key()
    libraries.version_of.cache_clear()
    monkeypatch.setattr(libraries, "version", lambda name: "0.0.1")
    assert DescribedLearner(XGBoost()).key() != before
    monkeypatch.undo()
    libraries.version_of.cache_clear()
    assert DescribedLearner(XGBoost()).key() == before


def test_what_a_peer_says_against_the_data_is_one_line():
    train = replace(examples(Task.RANKING), y=np.full(300, 0.5))
    with pytest.raises(InputError, match="lightgbm: ") as error:
        fit(LightGBM(trees=2, loss="lambdarank"), train, Task.RANKING)
    assert "\n" not in str(error.value)


LIMITS = {  # each is the last that the library itself takes, and the first that it does not
    "lightgbm grade": (LightGBM(trees=2), 30.0, 31.0, 5),
    "lightgbm fraction": (LightGBM(trees=2), 2.0, 2.5, 5),
    "lightgbm query": (LightGBM(trees=2), 2.0, 2.0, 10_001),
    "xgboost grade": (XGBoost(trees=2), 31.0, 32.0, 5),
    "xgboost fraction": (XGBoost(trees=2), 2.0, 2.5, 5),
}


@pytest.mark.parametrize("kind", LIMITS)
def test_what_a_ranking_loss_does_not_take_is_one_line_of_ours(kind):
    learner, last, first, rows = LIMITS[kind]
    rng = np.random.default_rng(0)

    def ranking(grade, size):
        X = rng.normal(size=(2 * size, 2)).astype(np.float32)
        y = (X[:, 0] > 0).astype(float)
        y[0] = grade
        return Examples(X, y, Queries.from_sizes(np.array([size, size])))

    learner = replace(learner, loss="lambdarank", min_rows=1)
    fit(learner, ranking(last, min(rows, 10_000)), Task.RANKING, price_list(np.ones(2)))
    what = f"a query of {rows} rows" if rows > 5 else f"a grade of {first:g}"
    with pytest.raises(InputError) as refused:
        fit(learner, ranking(first, rows), Task.RANKING, price_list(np.ones(2)))
    line = str(refused.value)
    assert line.startswith(f"{learner.name}: loss lambdarank takes integer grades from 0 to ")
    assert f"and there is {what}; set loss = squared" in line
