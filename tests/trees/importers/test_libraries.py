"""Models of LightGBM, XGBoost and CatBoost as read from their files, against the libraries' own raw
scores; damaged files and models that cannot be imported are refused in one line."""

import contextlib
import json
import re

import numpy as np
import pandas as pd
import pytest
from bench_trees.importers.files import read_model
from bench_trees.importers.imported import ModelError
from helpers.kit import refused
from helpers.peer_models import assert_close, hard_rows, on_thresholds, raw_scores, signal
from scipy.special import logit

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
catboost = pytest.importorskip("catboost", reason="catboost is not installed")

N, D = 600, 6
LABELS = {
    "regression": lambda y: y,
    "positive": lambda y: np.exp(y / 2),
    "binary": lambda y: y > 1,
    "multiclass": lambda y: np.digitize(y, [0, 1.5]),
    "ranking": lambda y: np.digitize(y, [0, 1, 2]),
    "share": lambda y: np.clip(y - y.min(), 0, 1),
    "pairs": lambda y: np.c_[y, y],
}


def rows_and_labels(seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    X = hard_rows(rng, N, D, missing)
    return X, signal(rng, X)


# Each trains a model, and returns the bytes of its file and its raw scores of rows


def by_lightgbm(X, y, folder, group=None, categories="auto", names="auto", **params):
    usual = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 12}
    params = {**usual, "objective": "regression", **params}
    data = lightgbm.Dataset(
        X, y, group=group, params=params, categorical_feature=categories, feature_name=names
    )
    booster = lightgbm.train(params, data, 20)
    averaged, binary = params.get("boosting") == "rf", params["objective"] == "binary"

    def scores(rows):  # raw ones are neither averaged nor scaled by the sigmoid's slope
        found = booster.predict(rows.astype(np.float64), raw_score=not averaged and not binary)
        return logit(found) if binary else found

    return booster.model_to_string().encode(), scores


def by_xgboost(X, y, folder, group=None, types=None, form="json", trees=15, **params):
    def matrix(rows, labels=None):
        return xgboost.DMatrix(rows, labels, feature_types=types, enable_categorical=bool(types))

    data = matrix(X, y)
    if group is not None:
        data.set_group(group)
    usual = {"nthread": 1, "max_depth": 4, "verbosity": 0}
    booster = xgboost.train({**usual, **params}, data, trees)
    scores = (
        None if form is None else lambda rows: booster.predict(matrix(rows), output_margin=True)
    )
    return bytes(booster.save_raw(form or "json")), scores


def by_catboost(X, y, folder, group=None, form="json", fitted=None, **params):
    usual = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0}
    model = catboost.CatBoost({**usual, **params, "allow_writing_files": False})
    model.fit(X, y, **(fitted or {}))
    model.save_model(str(folder / "model"), format=form)
    values = {"prediction_type": "RawFormulaVal"}
    return (folder / "model").read_bytes(), lambda rows: model.predict(rows, **values)


LIBRARIES = {
    "lightgbm": (by_lightgbm, 1e-9),
    "xgboost": (by_xgboost, 2e-6),
    "catboost": (by_catboost, 1e-9),
}
BAGS = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
THREE = {"objective": "multi:softprob", "num_class": 3}
CASES = [
    *(
        ("lightgbm", "regression", {"seed": seed, **missing})
        for seed in range(3)
        for missing in (
            {},
            {"zero_as_missing": True},
            {"use_missing": False},
            {"zero_as_missing": True, "num_leaves": 40, "min_data_in_leaf": 2},
        )
    ),
    ("lightgbm", "regression", {"missing": 0.0}),  # reads NaN as zero
    ("lightgbm", "regression", {"boosting": "dart"}),
    ("lightgbm", "regression", {"extra_trees": True}),
    ("lightgbm", "regression", BAGS),
    ("lightgbm", "positive", {"objective": "poisson"}),
    ("lightgbm", "binary", {"objective": "binary"}),
    ("lightgbm", "binary", {"objective": "binary", "sigmoid": 0.6}),
    ("lightgbm", "binary", {"objective": "binary", **BAGS}),
    ("lightgbm", "multiclass", {"objective": "multiclass", "num_class": 3}),
    ("lightgbm", "ranking", {"objective": "lambdarank"}),
    ("xgboost", "regression", {"objective": "reg:squarederror"}),
    ("xgboost", "regression", {"objective": "reg:absoluteerror"}),
    ("xgboost", "binary", {"objective": "binary:logistic"}),
    ("xgboost", "binary", {"objective": "binary:logitraw"}),
    ("xgboost", "multiclass", THREE),
    ("xgboost", "multiclass", {"objective": "multi:softmax", "num_class": 3}),
    ("xgboost", "multiclass", {**THREE, "num_parallel_tree": 2}),
    ("xgboost", "positive", {"objective": "count:poisson"}),
    ("xgboost", "positive", {"objective": "reg:gamma"}),
    ("xgboost", "ranking", {"objective": "rank:ndcg"}),
    ("xgboost", "regression", {"tree_method": "exact"}),
    ("xgboost", "regression", {"tree_method": "approx"}),
    ("xgboost", "regression", {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0}),
    ("xgboost", "regression", {"base_score": 2.5}),
    ("xgboost", "regression", {"gamma": 5.0}),  # prunes: deleted nodes stay in the file
    ("xgboost", "regression", {"booster": "dart", "rate_drop": 0.5}),
    ("xgboost", "regression", {"num_parallel_tree": 3, "subsample": 0.7}),
    ("xgboost", "regression", {"form": "ubj"}),
    ("catboost", "regression", {}),
    ("catboost", "regression", {"nan_mode": "Max"}),
    ("catboost", "regression", {"missing": 0.0}),
    ("catboost", "regression", {"depth": 1}),
    ("catboost", "regression", {"grow_policy": "Depthwise"}),
    ("catboost", "regression", {"grow_policy": "Lossguide", "max_leaves": 9}),
    ("catboost", "binary", {"loss_function": "Logloss"}),
    ("catboost", "multiclass", {"loss_function": "MultiClass"}),
    ("catboost", "multiclass", {"loss_function": "MultiClass", "grow_policy": "Depthwise"}),
    ("catboost", "positive", {"loss_function": "Poisson"}),
]


def trained(library, kind, params, folder):
    """A model on hard rows: the rows, its file, its raw scores."""
    params = dict(params)
    X, y = rows_and_labels(params.pop("seed", 0), params.pop("missing", 0.1))
    group = [20] * 30 if kind == "ranking" else None
    labels = np.asarray(LABELS[kind](y), float)
    return X, *LIBRARIES[library][0](X, labels, folder, group=group, **params)


@pytest.mark.parametrize(("library", "kind", "params"), CASES, ids=str)
def test_raw_scores_are_those_of_the_library(library, kind, params, tmp_path):
    X, raw, theirs = trained(library, kind, params, tmp_path)
    model = read_model(raw)
    assert model.kind == ("regression" if kind == "positive" else kind)
    assert model.link == ("exp" if kind == "positive" else "identity")
    assert model.average == ("boosting" in params and params["boosting"] == "rf")
    hard = on_thresholds(np.random.default_rng(9), model.ensemble, 400)
    for rows in (X, hard, hard_rows(np.random.default_rng(8), 300, D)):
        if library == "catboost" and params.get("missing") == 0.0:
            rows = np.nan_to_num(rows)
        assert_close(raw_scores(model, rows), theirs(rows), LIBRARIES[library][1])
    if "num_parallel_tree" in params and kind == "multiclass":
        assert model.ensemble.output.tolist() == [0, 1, 2] * 30  # in rounds of one per class


@pytest.mark.parametrize("least", [1, 64], ids=["sets", "one against the rest"])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_splits_on_categories(library, least, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rows_and_labels()
    X[:, 0], X[:, 1] = rng.integers(0, 40, N), rng.integers(0, 4, N)
    X[rng.random(N) < 0.1, 0] = np.nan
    y = y + np.where(np.nan_to_num(X[:, 0]) % 3 == 1, 2, 0) + (X[:, 1] == 2)
    codes = [0, 39, 40, 1000, np.nan]
    if library == "lightgbm":
        how = {"categories": [0, 1], "min_data_per_group": 2, "cat_smooth": 0.1}
        codes += [-3, -0.5, 0.5, 39.9, 41, 1e6, 7.25]
    else:
        how = {"types": ["c", "c", *["q"] * (D - 2)], "trees": 8}
    train, _ = LIBRARIES[library]
    raw, theirs = train(X, y, tmp_path, **how, max_cat_to_onehot=least)
    if library == "lightgbm":
        assert sum(map(int, re.findall(rb"^num_cat=(\d+)$", raw, flags=re.M))) > 20
    model = read_model(raw)
    assert set(model.categories) == {0, 1}
    odd = X[:40].copy()
    odd[:, 0] = np.resize(codes, 40)
    for rows in (X, odd):
        assert_close(raw_scores(model, rows), theirs(rows), 1e-5 if library == "xgboost" else 1e-9)


def test_zeros_sent_against_the_threshold_are_set_apart(tmp_path):
    """x <= 0.5 with zeros (and NaN) to the right: by hand, from LightGBM's documented rule."""
    raw, _ = by_lightgbm(np.eye(40, 2, dtype=np.float32), np.arange(40.0), tmp_path)
    tree = [
        *("Tree=0", "num_leaves=2", "num_cat=0", "split_feature=1", "threshold=0.5"),
        "decision_type=4",  # missing type zero, default right
        *("left_child=-1", "right_child=-2", "leaf_value=10 20", "is_linear=0", "", "end of trees"),
    ]
    model = read_model(raw.partition(b"Tree=0")[0] + "\n".join(tree).encode())
    X = np.array([[0, x] for x in (-1, -1e-36, 0, 1e-36, 1e-30, 0.5, 0.6, np.nan)], np.float32)
    assert raw_scores(model, X)[:, 0].tolist() == [10, 20, 20, 20, 10, 10, 20, 20]


def test_every_way_through_an_oblivious_tree_holds_all_its_splits(tmp_path):
    _, raw, _ = trained("catboost", "regression", {}, tmp_path)
    ours = read_model(raw).ensemble
    for t, tree in enumerate(json.loads(raw)["oblivious_trees"]):
        node = int(ours.start[t])
        for split in tree["splits"][::-1]:
            assert ours.feature[node] == split["float_feature_index"]
            node = int(ours.left[node])
        assert ours.feature[node] == -1


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_constant_trees_and_names_are_kept(library, tmp_path):
    names = [f"sensor{j}" for j in range(D)]
    X = pd.DataFrame(rows_and_labels()[0], columns=names)
    label = np.full(N, 3.0) if library == "lightgbm" else X["sensor1"].fillna(0)
    raw, _ = LIBRARIES[library][0](X, label, tmp_path)
    model = read_model(raw)
    assert model.names == tuple(names)
    if library == "lightgbm":
        assert raw_scores(model, X.to_numpy())[:, 0].tolist() == [3.0] * N


REFUSED = [
    ("lightgbm", "share", {"linear_tree": True, "missing": 0.0}, "linear"),
    ("lightgbm", "share", {"reg_sqrt": True}, "square root"),
    ("lightgbm", "share", {"objective": "cross_entropy_lambda"}, "cross_entropy_lambda"),
    ("xgboost", "regression", {"booster": "gblinear"}, "gblinear"),
    ("xgboost", "binary", {"objective": "binary:hinge"}, "hinge"),
    ("xgboost", "pairs", {"multi_strategy": "multi_output_tree"}, "targets"),
    ("catboost", "regression", {"form": "cbm"}, "format='json'"),
]


@pytest.mark.parametrize(("library", "kind", "params", "words"), REFUSED, ids=str)
def test_what_cannot_be_imported_is_one_line(library, kind, params, words, tmp_path):
    _, raw, _ = trained(library, kind, params, tmp_path)
    refused(words, read_model, raw, error=ModelError)


def test_statistics_of_categories_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (200, 2))
    raw, _ = by_catboost(X, X[:, 0] * rng.normal(size=200), tmp_path, fitted={"cat_features": [0]})
    refused("statistics of categories|one_hot_max_size", read_model, raw, error=ModelError)


@pytest.mark.parametrize(
    "dump", [b'[{"nodeid": 0, "leaf": 1}]', b'{"nodeid": 0}', b"booster[0]:\n0:leaf=1\n"]
)
def test_a_dump_is_no_model(dump):
    refused("XGBoost's|dump|: |save_model('model.json')", read_model, dump, error=ModelError)


def of_lightgbm(raw):
    """Damaged texts."""
    text = raw.decode()
    for old, new in [
        ("end of trees", ""),
        ("left_child=", "left_child=0 "),  # a child of itself
        ("threshold=", "threshold=x"),
        ("num_leaves=", "num_leaves=9"),
        ("max_feature_idx=5", "max_feature_idx=0"),
        ("leaf_value=", "leaf_value=1e999 "),
        ("Tree=2", "Tree]2"),
        ("\nTree=0", "\nend of trees\nTree=0"),
        ("max_feature_idx=", "max_feature="),
    ]:
        assert old in text
        yield text.replace(old, new, 1).encode()
    yield text.replace("\nTree=", "\nTree").encode()


def of_xgboost(raw):
    """Damaged documents."""
    left = json.loads(raw)["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"]
    for field, value in [
        ("left_children", [0, *left[1:]]),  # a loop
        ("left_children", [10**9, *left[1:]]),
        ("left_children", left[:-1]),
        ("split_indices", ["a"] * len(left)),
        ("split_indices", [10**12] * len(left)),
        ("split_conditions", [float("nan")] * len(left)),
    ]:
        document = json.loads(raw)
        document["learner"]["gradient_booster"]["model"]["trees"][0][field] = value
        yield json.dumps(document).encode()
    yield from (b'{"learner": {}}', b'{"learner": null}')


def of_catboost(raw):
    """Damaged documents."""
    split = json.loads(raw)["oblivious_trees"][0]["splits"][0]
    for change in [
        {"leaf_values": [1.0]},
        {"splits": [split] * 60},
        {"splits": [{**split, "float_feature_index": 99}]},
        {"splits": [{**split, "split_type": "OneHotFeature"}]},
        {"splits": 5},
    ]:
        document = json.loads(raw)
        document["oblivious_trees"][0].update(change)
        yield json.dumps(document).encode()
    yield from (b'{"features_info": {}}', b'{"features_info": []}')


@pytest.mark.parametrize("damaged", [of_lightgbm, of_xgboost, of_catboost])
def test_a_damaged_file_is_one_line(damaged, tmp_path):
    library = damaged.__name__.removeprefix("of_")
    _, raw, _ = trained(library, "regression", {}, tmp_path)
    broken = [*damaged(raw)]
    broken += [raw[: int(share * len(raw))] for share in (0.1, 0.5, 0.9)]
    if library == "xgboost":
        _, ubj, _ = trained(library, "regression", {"form": "ubj"}, tmp_path)
        broken += [ubj[: int(share * len(ubj))] for share in (0.1, 0.5, 0.9, 0.999)]
    for content in broken:
        refused("", read_model, content, error=ModelError)


def test_scrambled_ubj_never_does_more_than_raise_one_line(tmp_path):
    _, raw, _ = trained("xgboost", "regression", {"form": "ubj", "trees": 1}, tmp_path)
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(300):
        scrambled = bytearray(raw)
        for place in rng.integers(0, len(raw), 3):
            scrambled[place] = rng.integers(0, 256)
        with contextlib.suppress(ModelError):
            read_model(bytes(scrambled))
            accepted += 1
    assert accepted < 200
