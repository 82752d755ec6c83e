"""CatBoost's JSON models against CatBoost's own raw values."""

import json

import numpy as np
import pytest
from bench_trees.importers.catboost import from_catboost
from bench_trees.importers.files import read_model
from bench_trees.importers.imported import ModelError
from helpers.peer_models import assert_close, hard_rows, on_thresholds, raw_scores, signal

catboost = pytest.importorskip("catboost", reason="catboost is not installed")

N, D = 500, 6


def trained(seed=0, missing=0.1, **params):
    rng = np.random.default_rng(seed)
    X = hard_rows(rng, N, D, missing)
    y = signal(rng, X)
    loss = params.get("loss_function", "RMSE")
    labels = {"Logloss": y > 1, "MultiClass": np.digitize(y, [0, 1.5]), "Poisson": np.exp(y)}
    usual = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0}
    model = catboost.CatBoost({**usual, **params, "allow_writing_files": False})
    model.fit(X, np.asarray(labels.get(loss, y), float))
    return model, X


def imported(model, folder):
    model.save_model(str(folder / "model.json"), format="json")
    return read_model((folder / "model.json").read_bytes())


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"nan_mode": "Max"},
        {"missing": 0.0},
        {"loss_function": "Logloss"},
        {"loss_function": "MultiClass"},
        {"loss_function": "Poisson"},
        {"grow_policy": "Depthwise"},
        {"grow_policy": "Lossguide", "max_leaves": 9},
        {"grow_policy": "Depthwise", "loss_function": "MultiClass"},
        {"depth": 1},
    ],
    ids=str,
)
def test_raw_values_are_those_of_catboost(params, tmp_path):
    model, X = trained(**params)
    ours = imported(model, tmp_path)
    hard = on_thresholds(np.random.default_rng(9), ours.ensemble, 300)
    for rows in (X, hard):
        if params.get("missing") == 0.0:
            rows = np.nan_to_num(rows)
        raw = model.predict(rows, prediction_type="RawFormulaVal")
        assert_close(raw_scores(ours, rows), raw, rtol=1e-9)


def test_every_way_through_an_oblivious_tree_holds_all_its_splits(tmp_path):
    ours = imported(trained()[0], tmp_path).ensemble
    document = json.loads((tmp_path / "model.json").read_text())
    for t, tree in enumerate(document["oblivious_trees"]):
        tested = [s["float_feature_index"] for s in tree["splits"]][::-1]
        node = int(ours.start[t])
        for feature in tested:
            assert ours.feature[node] == feature
            node = int(ours.left[node])
        assert ours.feature[node] == -1


def test_names_are_kept_where_all_features_have_one(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(hard_rows(rng, 100, D, 0.0), columns=[f"sensor{j}" for j in range(D)])
    model = catboost.CatBoost({"iterations": 2, "verbose": 0, "allow_writing_files": False})
    model.fit(frame, rng.normal(size=100))
    assert imported(model, tmp_path).names == tuple(frame.columns)


def test_statistics_of_categories_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (200, 2))
    model = catboost.CatBoost({"iterations": 2, "verbose": 0, "allow_writing_files": False})
    model.fit(X, X[:, 0] * rng.normal(size=200), cat_features=[0])
    with pytest.raises(ModelError, match=r"statistics of categories.*one_hot_max_size"):
        imported(model, tmp_path)


def test_the_binary_form_is_refused_with_a_remedy(tmp_path):
    model, _ = trained()
    model.save_model(str(tmp_path / "model.cbm"))
    with pytest.raises(ModelError, match="format='json'"):
        read_model((tmp_path / "model.cbm").read_bytes())


def test_a_corrupt_document_is_one_line(tmp_path):
    imported(trained()[0], tmp_path)
    text = (tmp_path / "model.json").read_text()

    def tree(**change):
        document = json.loads(text)
        document["oblivious_trees"][0].update(change)
        return document

    split = json.loads(text)["oblivious_trees"][0]["splits"][0]
    broken = [
        tree(leaf_values=[1.0]),
        tree(splits=[split] * 60),
        tree(splits=[{**split, "float_feature_index": 99}]),
        tree(splits=[{**split, "split_type": "OneHotFeature"}]),
        tree(splits=5),
        {"features_info": {}},
        {"features_info": []},
    ]
    for document in broken:
        with pytest.raises(ModelError) as error:
            from_catboost(document)
        assert "\n" not in str(error.value)
