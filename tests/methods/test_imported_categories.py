"""Imported models with splits on categories, trained on frames, run on the CSV of their rows."""

import numpy as np
import pandas as pd
import pytest
from bench_methods.imported import ImportedModel
from bench_models.matching import matched
from bench_trees.importers import read_model
from helpers.kit import prepared, refused
from helpers.peer_models import assert_close, raw_scores

from bench_core.datasets.user_arrays import array_splits
from bench_core.errors import InputError

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
catboost = pytest.importorskip("catboost", reason="catboost is not installed")


def mixture(seed=5, n=800):
    """Categories of every kind beside numbers: ordered numbers and texts, truth values, two columns
    of the same texts, and more than a hundred shops."""
    rng = np.random.default_rng(seed)

    def drawn(values, ordered=False):
        return pd.Categorical(rng.choice(values, n), categories=values, ordered=ordered)

    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(3),
            "stars": drawn([1, 5, 7], ordered=True),
            "risk": drawn(["low", "mid", "high"], ordered=True),
            "trust": drawn(["low", "mid", "high"]),
            "new": drawn([False, True]),
            "shop": drawn([f"S{k:03}" for k in range(150)]),
            "year": rng.integers(1, 8, n),
            "month": drawn(list(range(1, 13)), ordered=True),
        }
    )
    shop = frame["shop"].cat.codes.to_numpy() * 37 % 150 / 40
    y = frame["size"] + frame["stars"].cat.codes - frame["risk"].cat.codes + shop
    y += (frame["trust"] == "mid") + 2.0 * (frame["new"] == True) + frame["year"] / 4  # noqa: E712
    y -= frame["month"].cat.codes / 6
    for column in ("risk", "trust", "stars"):
        frame.loc[rng.random(n) < 0.05, column] = None
    return frame, y.round(3)


def by_lightgbm(X, y, trees=12, categorical_feature="auto", **params):
    """The text of a model, and its predictions."""
    data = lightgbm.Dataset(X, y, categorical_feature=categorical_feature, free_raw_data=False)
    usual = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 2, "cat_smooth": 0.5}
    booster = lightgbm.train({**usual, **params}, data, trees)
    return booster.model_to_string().encode(), booster.predict(X)


def by_xgboost(X, y):
    data = xgboost.DMatrix(X, y, enable_categorical=True)
    booster = xgboost.train({"max_cat_to_onehot": 2, "nthread": 1, "max_depth": 4}, data, 12)
    return bytes(booster.save_raw("json")), booster.predict(data)


def through(door, X, y, folder):
    """Splits of which each is all rows, from a frame or a file."""
    if door == "frame":
        return array_splits(X, y, valid=(X, y), test=(X, y))
    file = str(folder / f"rows.{door}")
    X.assign(y=y).to_csv(file, index=False) if door == "csv" else X.assign(y=y).to_parquet(file)
    return prepared(file, file, file, label="y").complete()


MIXED = {
    "all": (by_lightgbm, {}),
    "some as sets": (by_lightgbm, {"categorical_feature": ["stars", "shop"]}),
    "zero is missing": (by_lightgbm, {"zero_as_missing": True}),
    "by XGBoost": (by_xgboost, {}),
}


@pytest.mark.parametrize(
    ("how", "door"),
    [
        *((how, "csv") for how in MIXED),
        *(("all", "frame"), ("all", "parquet"), ("by XGBoost", "frame")),
    ],
)
def test_categories_are_matched_by_their_names(how, door, tmp_path):
    """Of a column of few texts as 0 and 1 for each, of many as codes, of numbers as numbers."""
    (X, y), (train, params) = mixture(), MIXED[how]
    if train is by_xgboost:
        X = X[["size", "stars", "risk", "shop", "month"]]
    raw, theirs = train(X, y, **params)
    splits = through(door, X, y, tmp_path)
    assert {"risk=low", "shop"} <= {*splits.feature_names}
    assert ("stars" in splits.feature_names) == (door != "frame")
    model, notes = matched(read_model(raw), splits, "m")
    assert not any(notes.values()), notes
    assert_close(raw_scores(model, splits.test.X)[:, 0], theirs, rtol=1e-5)
    (tmp_path / "m").write_bytes(raw)
    said = [line for line, _ in ImportedModel(file=str(tmp_path / "m")).notes(splits)]
    assert [line for line in said if line.startswith("imported: shop: categories to this model")]


def test_text_needs_categories_with_names(tmp_path):
    X, y = mixture()
    X = X[["size", "shop"]]
    raw, _ = by_lightgbm(X.assign(shop=X["shop"].cat.codes), y, 3, ["shop"])
    splits = through("csv", X, y, tmp_path)
    words = "model has codes for the categories of column 'shop'"
    refused(words, matched, read_model(raw), splits, "m")
    (tmp_path / "m.txt").write_bytes(raw)
    with pytest.raises(InputError, match="codes for the categories"):  # a plan asks for notes
        [*ImportedModel(file=str(tmp_path / "m.txt")).notes(splits)]


@pytest.mark.parametrize("column", ["trust", "shop"])  # one-hot here, codes here
def test_numbers_of_the_model_do_not_meet_text(column, tmp_path):
    X, y = mixture()
    raw, _ = by_lightgbm(pd.DataFrame({f"its_{column}": X[column].cat.codes}), y, 3)
    splits = through("csv", X.rename(columns={column: f"its {column}"}), y, tmp_path)
    words = f"m: the model has numbers for column 'its {column}', which holds text; write the num"
    refused(words, matched, read_model(raw), splits, "m")


def test_a_tree_that_would_grow_too_large_is_one_line(monkeypatch):
    raw, _ = by_lightgbm(*mixture())
    monkeypatch.setattr("bench_trees.importers.categories.MOST_NODES", 10)
    words = "splits on too many categories|max_cat_threshold"
    refused(words, read_model, raw, error=ValueError)


def test_categories_of_another_column_are_one_line(tmp_path):
    X, y = mixture()
    kept = X[["size", "risk"]]
    raw, theirs = by_lightgbm(kept, y, 3)
    other = kept.assign(risk=kept["risk"].astype(object).map({"low": "a", "mid": "b", "high": "c"}))
    words = "m: no column holds the model's categories low, mid, high|; give them as in training"
    refused(words, matched, read_model(raw), array_splits(other, y), "m")
    coded = kept.assign(risk=kept["risk"].cat.codes)  # as LightGBM has them: -1 is missing
    splits = through("frame", coded, y, None)
    model, _ = matched(read_model(raw), splits, "m")
    rows = kept["risk"].notna().to_numpy()
    np.testing.assert_allclose(raw_scores(model, splits.test.X)[rows, 0], theirs[rows], atol=1e-6)


@pytest.mark.parametrize("grow_policy", ["SymmetricTree", "Depthwise"])
@pytest.mark.parametrize("classes", [2, 3])
def test_one_hot_categories_of_catboost(classes, grow_policy, tmp_path):
    X, y = mixture()
    columns = ["trust", "size", "stars", "shop", "month"]
    X = X[columns].astype(dict.fromkeys(["trust", "stars", "shop", "month"], object))
    X["stars"] = X["stars"].fillna(7)
    y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    loss = "Logloss" if classes == 2 else "MultiClass"
    usual = {"iterations": 15, "depth": 3, "verbose": 0, "thread_count": 1}
    usual |= {"loss_function": loss, "one_hot_max_size": 200, "grow_policy": grow_policy}
    made = catboost.CatBoost({**usual, "allow_writing_files": False})
    texts = X.assign(trust=X["trust"].fillna("nan"))  # as str(nan)
    texts = texts.astype({name: str for name in columns if name != "size"})
    pool = catboost.Pool(texts, y, cat_features=["trust", "stars", "shop", "month"])
    made.fit(pool)
    file, rows = tmp_path / "model.json", tmp_path / "rows.csv"
    made.save_model(file, format="json", pool=pool)
    X.assign(y=y).to_csv(rows, index=False)
    splits = prepared(rows, rows, rows, label="y").complete()
    model, notes = matched(read_model(file.read_bytes()), splits, "m")
    assert not any(notes.values()), notes
    ours, theirs = raw_scores(model, splits.test.X), made.predict(texts)
    np.testing.assert_allclose(ours, theirs.reshape(len(X), -1), atol=1e-9)
    made.save_model(file, format="json")
    words = "lacks the texts of its categories|pool=pool"
    refused(words, read_model, file.read_bytes(), error=ValueError)
