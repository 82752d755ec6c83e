"""LightGBM's text models against LightGBM's own raw predictions."""

import re

import numpy as np
import pytest
from bench_trees.importers.files import read_model
from bench_trees.importers.imported import ModelError
from bench_trees.importers.lightgbm import from_lightgbm
from helpers.peer_models import assert_close, hard_rows, on_thresholds, raw_scores, signal

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")

N, D = 600, 6


def rows_and_labels(seed, missing=0.1):
    rng = np.random.default_rng(seed)
    X = hard_rows(rng, N, D, missing)
    return X, signal(rng, X)


def trained(X, y, trees=20, **params):
    usual = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 12}
    columns = params.pop("categorical", "auto")
    data = lightgbm.Dataset(X, y, params=params, categorical_feature=columns)
    return lightgbm.train({**usual, **params}, data, trees)


def assert_agrees(booster, X):
    model = from_lightgbm(booster.model_to_string())
    hard = on_thresholds(np.random.default_rng(9), model.ensemble, 400)
    for rows in (X, hard, hard_rows(np.random.default_rng(8), 300, D)):
        theirs = booster.predict(rows.astype(np.float64), raw_score=True)
        assert_close(raw_scores(model, rows), theirs, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "missing_type",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"zero_as_missing": True, "num_leaves": 40, "min_data_in_leaf": 2},
    ],
    ids=["nan", "zero", "none", "zero, deep"],
)
def test_raw_scores_are_those_of_lightgbm(seed, missing_type):
    X, y = rows_and_labels(seed)
    assert_agrees(trained(X, y, objective="regression", **missing_type), X)


@pytest.mark.parametrize("least", [1, 64], ids=["sets", "one against the rest"])
def test_splits_on_categories(least):
    rng = np.random.default_rng(0)
    X, y = rows_and_labels(0)
    X[:, 0], X[:, 1] = rng.integers(0, 40, N), rng.integers(0, 4, N)
    X[rng.random(N) < 0.1, 0] = np.nan
    y = y + np.where(np.nan_to_num(X[:, 0]) % 3 == 1, 2, 0) + (X[:, 1] == 2)
    groups = {"min_data_per_group": 2, "cat_smooth": 0.1, "max_cat_to_onehot": least}
    booster = trained(X, y, objective="regression", categorical=[0, 1], **groups)
    text = booster.model_to_string()
    assert sum(map(int, re.findall(r"^num_cat=(\d+)$", text, flags=re.M))) > 20
    model = from_lightgbm(text)
    assert set(model.categories) == {0, 1}
    odd = X[:40].copy()
    odd[:, 0] = np.resize([-3, -0.5, 0, 0.5, 39.9, 40, 41, 1e6, np.nan, 7.25], 40)
    for rows in (X, odd):
        theirs = booster.predict(rows.astype(np.float64), raw_score=True)
        assert_close(raw_scores(model, rows), theirs, rtol=1e-9)


def test_features_without_missing_values_read_nan_as_zero():
    X, y = rows_and_labels(0, missing=0.0)
    assert_agrees(trained(X, y, objective="regression"), X)


def test_zeros_sent_against_the_threshold_are_set_apart():
    """x <= 0.5 with zeros (and NaN) to the right: by hand, from the documented rule."""
    text = trained(np.eye(40, 2, dtype=np.float32), np.arange(40.0), 1).model_to_string()
    head = text.partition("Tree=0")[0]
    tree = "\n".join(
        [
            "Tree=0",
            "num_leaves=2",
            "num_cat=0",
            "split_feature=1",
            "threshold=0.5",
            "decision_type=4",  # missing type zero, default right
            "left_child=-1",
            "right_child=-2",
            "leaf_value=10 20",
            "is_linear=0",
            "",
            "end of trees",
        ]
    )
    model = from_lightgbm(head + tree)
    X = np.array([[0, x] for x in (-1, -1e-36, 0, 1e-36, 1e-30, 0.5, 0.6, np.nan)], np.float32)
    assert raw_scores(model, X)[:, 0].tolist() == [10, 20, 20, 20, 10, 10, 20, 20]


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"objective": "binary"}, "binary"),
        ({"objective": "lambdarank"}, "ranking"),
        ({"objective": "multiclass", "num_class": 3}, "multiclass"),
        ({"objective": "regression", "boosting": "dart"}, "regression"),
        ({"objective": "regression", "extra_trees": True}, "regression"),
    ],
)
def test_objectives_and_boosters(params, kind):
    X, y = rows_and_labels(1)
    labels = {"binary": y > 1, "multiclass": np.digitize(y, [0, 1.5]), "regression": y}
    if kind == "ranking":
        data = lightgbm.Dataset(X, np.digitize(y, [0, 1, 2]), group=[20] * 30)
        booster = lightgbm.train({**params, "verbosity": -1}, data, 10)
    else:
        booster = trained(X, np.asarray(labels[kind], float), **params)
    assert from_lightgbm(booster.model_to_string()).kind == kind
    assert_agrees(booster, X)


@pytest.mark.parametrize("objective", ["regression", "binary"])
def test_averaged_trees_are_marked_as_such(objective):
    """LightGBM averages before its link, and not in its raw scores."""
    X, y = rows_and_labels(2)
    labels = y if objective == "regression" else (y > 1).astype(float)
    bags = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    booster = trained(X, labels, objective=objective, **bags)
    model = from_lightgbm(booster.model_to_string())
    assert model.average
    scores = raw_scores(model, X)
    ours = scores if objective == "regression" else 1 / (1 + np.exp(-scores))
    assert_close(ours, booster.predict(X), rtol=1e-9)


def test_a_logarithmic_objective_is_linked_by_exp():
    X, y = rows_and_labels(2)
    booster = trained(X, np.exp(y / 2), objective="poisson")
    model = from_lightgbm(booster.model_to_string())
    assert model.link == "exp"
    assert_close(np.exp(raw_scores(model, X)), booster.predict(X), rtol=1e-9)


def test_a_sigmoid_of_another_slope_is_scaled_to_log_odds():
    X, y = rows_and_labels(3)
    booster = trained(X, (y > 1).astype(float), objective="binary", sigmoid=0.6)
    odds = raw_scores(from_lightgbm(booster.model_to_string()), X)
    assert_close(1 / (1 + np.exp(-odds)), booster.predict(X), rtol=1e-9)


def test_constant_trees_and_names_are_kept():
    X, _ = rows_and_labels(4)
    data = lightgbm.Dataset(X, np.full(N, 3.0), feature_name=[f"sensor{j}" for j in range(D)])
    booster = lightgbm.train({"verbosity": -1, "objective": "regression"}, data, 3)
    model = from_lightgbm(booster.model_to_string())
    assert model.names == tuple(f"sensor{j}" for j in range(D))
    assert raw_scores(model, X)[:, 0].tolist() == [3.0] * N


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"linear_tree": True, "objective": "regression"}, "linear"),
        ({"objective": "regression", "reg_sqrt": True}, "square root"),
        ({"objective": "cross_entropy_lambda"}, "cross_entropy_lambda"),
    ],
)
def test_what_cannot_be_imported_is_one_line(params, message):
    X, y = rows_and_labels(5, missing=0.0)
    X[:, 0] = np.abs(X[:, 0]).astype(int)
    booster = trained(X, np.clip(y - y.min(), 0, 1), 3, **params)
    with pytest.raises(ModelError, match=message) as error:
        from_lightgbm(booster.model_to_string())
    assert "\n" not in str(error.value)


def corrupt(text):
    return {
        "cut short": text[: len(text) // 2],
        "no trees' end": text.replace("end of trees", ""),
        "a child of itself": text.replace("left_child=", "left_child=0 ", 1),
        "letters for numbers": text.replace("threshold=", "threshold=x", 1),
        "too many leaves": text.replace("num_leaves=", "num_leaves=9", 1),
        "a feature too far": text.replace("max_feature_idx=5", "max_feature_idx=0"),
        "infinite leaves": text.replace("leaf_value=", "leaf_value=1e999 ", 1),
        "a tree's first line": text.replace("Tree=2", "Tree]2"),
        "all trees' first lines": text.replace("\nTree=", "\nTree"),
        "an end before the trees": text.replace("\nTree=0", "\nend of trees\nTree=0"),
        "no features": text.replace("max_feature_idx=", "max_feature="),
    }


@pytest.mark.parametrize("how", corrupt(""))
def test_a_corrupt_text_is_one_line(how):
    X, y = rows_and_labels(6)
    text = trained(X, y, 3).model_to_string()
    with pytest.raises(ModelError) as error:
        read_model(corrupt(text)[how].encode())
    assert "\n" not in str(error.value)
