"""XGBoost's JSON and UBJ models against XGBoost's own margins."""

import contextlib
import json

import numpy as np
import pytest
from bench_trees.importers.files import read_model
from bench_trees.importers.imported import ModelError
from bench_trees.importers.xgboost import from_xgboost
from helpers.peer_models import assert_close, hard_rows, on_thresholds, raw_scores, signal

xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")

N, D = 600, 6


def rows_and_labels(seed):
    rng = np.random.default_rng(seed)
    X = hard_rows(rng, N, D)
    return X, signal(rng, X)


def trained(X, y, trees=15, group=None, **params):
    data = xgboost.DMatrix(X, y)
    if group is not None:
        data.set_group(group)
    usual = {"nthread": 1, "max_depth": 4, "verbosity": 0}
    return xgboost.train({**usual, **params}, data, trees)


def imported(booster):
    return read_model(bytes(booster.save_raw("json")))


LABELS = {
    "reg:squarederror": ("regression", lambda y: y),
    "reg:absoluteerror": ("regression", lambda y: y),
    "binary:logistic": ("binary", lambda y: y > 1),
    "binary:logitraw": ("binary", lambda y: y > 1),
    "multi:softprob": ("multiclass", lambda y: np.digitize(y, [0, 1.5])),
    "multi:softmax": ("multiclass", lambda y: np.digitize(y, [0, 1.5])),
    "count:poisson": ("regression", lambda y: np.exp(y)),
    "reg:gamma": ("regression", lambda y: np.exp(y)),
    "rank:ndcg": ("ranking", lambda y: np.digitize(y, [0, 1, 2])),
}


@pytest.mark.parametrize("objective", LABELS)
def test_margins_are_those_of_xgboost(objective):
    X, y = rows_and_labels(0)
    kind, label = LABELS[objective]
    more = {"num_class": 3} if kind == "multiclass" else {}
    group = [20] * 30 if kind == "ranking" else None
    booster = trained(X, np.asarray(label(y), float), group=group, objective=objective, **more)
    model = imported(booster)
    assert model.kind == kind
    assert model.link == ("exp" if objective in ("count:poisson", "reg:gamma") else "identity")
    hard = on_thresholds(np.random.default_rng(9), model.ensemble, 400)
    for rows in (X, hard):
        margin = booster.predict(xgboost.DMatrix(rows), output_margin=True)
        assert_close(raw_scores(model, rows), margin)


@pytest.mark.parametrize(
    "params",
    [
        {"tree_method": "exact"},
        {"tree_method": "approx"},
        {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0},
        {"base_score": 2.5},
        {"gamma": 5.0},  # prunes: deleted nodes stay in the file
        {"booster": "dart", "rate_drop": 0.5, "seed": 3},
        {"num_parallel_tree": 3, "subsample": 0.7},
    ],
    ids=str,
)
def test_tree_methods_and_boosters(params):
    X, y = rows_and_labels(1)
    booster = trained(X, y, **params)
    margin = booster.predict(xgboost.DMatrix(X), output_margin=True)
    assert_close(raw_scores(imported(booster), X), margin)


def test_parallel_trees_of_several_classes_come_in_rounds_of_one_per_class():
    X, y = rows_and_labels(2)
    labels = np.digitize(y, [0, 1.5])
    booster = trained(X, labels, 4, objective="multi:softprob", num_class=3, num_parallel_tree=2)
    model = imported(booster)
    assert model.ensemble.output.tolist() == [0, 1, 2] * 8
    margin = booster.predict(xgboost.DMatrix(X), output_margin=True)
    assert_close(raw_scores(model, X), margin)


def test_ubj_is_read_like_json():
    X, y = rows_and_labels(3)
    booster = trained(X, y)
    one, two = imported(booster), read_model(bytes(booster.save_raw("ubj")))
    for name, values in one.ensemble.state().items():
        assert np.array_equal(values, two.ensemble.state()[name]), name


@pytest.mark.parametrize("least", [1, 64], ids=["sets", "one against the rest"])
def test_splits_on_categories(least):
    rng = np.random.default_rng(0)
    X, y = rows_and_labels(4)
    X[:, 0], X[:, 1] = rng.integers(0, 40, N), rng.integers(0, 4, N)
    X[rng.random(N) < 0.1, 0] = np.nan
    y = y + np.where(np.nan_to_num(X[:, 0]) % 3 == 1, 2, 0) + (X[:, 1] == 2)
    types = ["c", "c"] + ["q"] * (D - 2)
    data = xgboost.DMatrix(X, y, feature_types=types, enable_categorical=True)
    booster = xgboost.train({"max_cat_to_onehot": least, "nthread": 1}, data, 8)
    model = imported(booster)
    assert set(model.categories) == {0, 1}
    odd = X[:40].copy()
    odd[:, 0] = np.resize([0, 39, 40, 1000, np.nan], 40)
    for rows in (X, odd):
        given = xgboost.DMatrix(rows, feature_types=types, enable_categorical=True)
        theirs = booster.predict(given, output_margin=True)
        assert_close(raw_scores(model, rows), theirs, rtol=1e-5)


def test_what_cannot_be_imported_is_one_line():
    X, y = rows_and_labels(4)
    cases = [
        (trained(X, y, booster="gblinear"), "gblinear"),
        (trained(X, y > 1, objective="binary:hinge"), "hinge"),
        (trained(X, np.c_[y, y], multi_strategy="multi_output_tree"), "targets"),
    ]
    for booster, message in cases:
        with pytest.raises(ModelError, match=message) as error:
            imported(booster)
        assert "\n" not in str(error.value)


def test_a_corrupt_document_is_one_line():
    X, y = rows_and_labels(5)
    raw = bytes(trained(X, y, 2).save_raw("json"))

    def changed(path, value):
        document = json.loads(raw)
        model = document["learner"]["gradient_booster"]["model"]
        model["trees"][0][path] = value
        return document

    tree = json.loads(raw)["learner"]["gradient_booster"]["model"]["trees"][0]
    left = tree["left_children"]
    broken = [
        changed("left_children", [0, *left[1:]]),  # a loop
        changed("left_children", [10**9, *left[1:]]),
        changed("left_children", left[:-1]),
        changed("split_indices", ["a"] * len(left)),
        changed("split_indices", [10**12] * len(left)),
        changed("split_conditions", [float("nan")] * len(left)),
        {"learner": {}},
        {"learner": None},
    ]
    for document in broken:
        with pytest.raises(ModelError) as error:
            from_xgboost(document)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_cut_files_are_one_line(share):
    X, y = rows_and_labels(5)
    booster = trained(X, y, 2)
    for form in ("json", "ubj"):
        raw = bytes(booster.save_raw(form))
        with pytest.raises(ModelError) as error:
            read_model(raw[: int(share * len(raw))])
        assert "\n" not in str(error.value)


def test_scrambled_ubj_never_does_more_than_raise_one_line():
    X, y = rows_and_labels(5)
    raw = bytearray(trained(X, y, 1).save_raw("ubj"))
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        scrambled = bytearray(raw)
        for place in rng.integers(0, len(raw), 3):
            scrambled[place] = rng.integers(0, 256)
        with contextlib.suppress(ModelError):
            read_model(bytes(scrambled))
            refused -= 1
        refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "dump", [b'[{"nodeid": 0, "leaf": 1}]', b'{"nodeid": 0}', b"booster[0]:\n0:leaf=1\n"]
)
def test_a_dump_is_no_model(dump):
    with pytest.raises(ModelError, match=r"XGBoost's .*dump.*: .*save_model\('model.json'\)"):
        read_model(dump)
