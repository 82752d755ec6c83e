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
from bench_core.splits import SPLITS

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
catboost = pytest.importorskip("catboost", reason="catboost is not installed")

N = 900
RNG = np.random.default_rng(3)
JOBS = np.array([f"job {k}" for k in range(24)])


def table():
    """Columns of numbers, few texts (0 and 1 for each), many (codes), and numbers as categories."""
    frame = pd.DataFrame(
        {
            "size": RNG.normal(size=N).round(4),
            "city": RNG.choice(["Ulm", "Bonn", "Kiel", "Jena"], N),
            "job": RNG.choice(JOBS, N),
            "grade": RNG.choice([1, 2, 7, 30], N),
        }
    )
    job = np.array([int(name.split()[1]) for name in frame["job"]])
    effect = 2.0 * (frame["city"] == "Kiel") + (job % 3) + (frame["grade"] == 7)
    frame["y"] = (frame["size"] + effect).round(3)
    for column in ("city", "job"):
        frame.loc[RNG.random(N) < 0.05, column] = None
    return frame


def as_categories(frame):
    names = ("city", "job", "grade")
    return frame.drop(columns="y").assign(**{n: frame[n].astype("category") for n in names})


def by_lightgbm(frame, folder):
    params = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 3, "cat_smooth": 0.5}
    X = as_categories(frame)
    booster = lightgbm.train(params, lightgbm.Dataset(X, frame["y"]), 12)
    booster.save_model(folder / "model.txt")
    return folder / "model.txt", booster.predict(X)


def by_xgboost(frame, folder):
    X = as_categories(frame)
    data = xgboost.DMatrix(X, frame["y"], enable_categorical=True)
    booster = xgboost.train({"max_cat_to_onehot": 2, "nthread": 1, "max_depth": 4}, data, 12)
    booster.save_model(folder / "model.json")
    return folder / "model.json", booster.predict(data)


def as_csv(frame, folder):
    """Splits of the rows written to a file."""
    frame.to_csv(folder / "rows.csv", index=False)
    return prepared(folder / "rows.csv", label="y")


LIBRARIES = {"LightGBM": (by_lightgbm, 1e-6), "XGBoost": (by_xgboost, 1e-4)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_categories_are_matched_by_their_names(library, tmp_path):
    frame = table()
    train, rtol = LIBRARIES[library]
    path, theirs = train(frame, tmp_path)
    splits = as_csv(frame, tmp_path)
    assert {"city=Kiel", "job", "grade"} <= {*splits.feature_names}  # 0 and 1, codes, numbers
    model, notes = matched(read_model(path.read_bytes()), splits, "m")
    assert not any(notes.values()), notes
    said = [line for line, _ in ImportedModel(file=str(path)).notes(splits)]
    assert [line for line in said if line.startswith("imported: job: categories to this model")]
    rows = [getattr(splits, name) for name in SPLITS]
    ours = np.concatenate([raw_scores(model, part.X)[:, 0] for part in rows])
    y = np.concatenate([part.y for part in rows])
    order, wanted = np.lexsort((ours.round(3), y)), np.lexsort((theirs.round(3), frame["y"]))
    assert_close(ours[order], theirs[wanted], rtol=rtol)


def test_text_needs_categories_with_names(tmp_path):
    frame = table()
    coded = as_categories(frame).apply(lambda c: c.cat.codes if c.dtype == "category" else c)
    params = {"verbosity": -1, "min_data_per_group": 3}
    data = lightgbm.Dataset(coded, frame["y"], categorical_feature=["job"])
    text = lightgbm.train(params, data, 3).model_to_string()
    frame = frame.assign(city=0)
    splits = as_csv(frame, tmp_path)
    words = "model has codes for the categories of column 'job'"
    refused(words, matched, read_model(text.encode()), splits, "m")
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(InputError, match="codes for the categories"):  # a plan asks for notes
        [*ImportedModel(file=str(tmp_path / "m.txt")).notes(splits)]


@pytest.mark.parametrize("column", ["city", "job"])  # one-hot here, codes here
def test_numbers_of_the_model_do_not_meet_text(column, tmp_path):
    frame = table().rename(columns={column: f"its {column}"})
    own = pd.DataFrame({column: frame[f"its {column}"].astype("category").cat.codes})
    text = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(own, frame["y"]), 3).model_to_string()
    text = text.replace(f"feature_names={column}", f"feature_names=its_{column}")
    splits = as_csv(frame, tmp_path)
    words = f"m: the model has numbers for column 'its {column}', which holds text; write the num"
    refused(words, matched, read_model(text.encode()), splits, "m")


def test_a_tree_that_would_grow_too_large_is_one_line(monkeypatch, tmp_path):
    path, _ = by_lightgbm(table(), tmp_path)
    monkeypatch.setattr("bench_trees.importers.categories.MOST_NODES", 10)
    words = "splits on too many categories|max_cat_threshold"
    refused(words, read_model, path.read_bytes(), error=ValueError)


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


MIXED = {
    "all": {},
    "some as sets": {"categorical_feature": ["stars", "shop"]},
    "zero is missing": {"params": {"zero_as_missing": True}},
}


@pytest.mark.parametrize(
    ("how", "door"), [*((how, "csv") for how in MIXED), ("all", "frame"), ("all", "parquet")]
)
def test_ordered_and_other_categories_in_one_lightgbm_model(how, door, tmp_path):
    X, y = mixture()
    more = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 2, "cat_smooth": 0.5}
    parameters = {**more, **MIXED[how].get("params", {})}
    sets = MIXED[how].get("categorical_feature", "auto")
    data = lightgbm.Dataset(X, y, categorical_feature=sets, free_raw_data=False)
    booster = lightgbm.train(parameters, data, 12)
    if door == "frame":
        splits = array_splits(X, y, valid=(X, y), test=(X, y))
    else:
        file = str(tmp_path / f"rows.{door}")
        X.assign(y=y).to_csv(file, index=False) if door == "csv" else X.assign(y=y).to_parquet(file)
        splits = prepared(file, file, file, label="y").complete()
    model, notes = matched(read_model(booster.model_to_string().encode()), splits, "m")
    assert not any(notes.values()), notes
    assert {*np.unique(booster.dump_model(num_iteration=1)["feature_names"])} == {*X.columns}
    np.testing.assert_allclose(
        raw_scores(model, splits.test.X)[:, 0], booster.predict(X), atol=1e-6
    )


def test_categories_of_another_column_are_one_line(tmp_path):
    X, y = mixture()
    kept = X[["size", "risk"]]
    text = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(kept, y), 3).model_to_string()
    other = kept.assign(risk=kept["risk"].astype(object).map({"low": "a", "mid": "b", "high": "c"}))
    words = "m: no column holds the model's categories low, mid, high|; give them as in training"
    refused(words, matched, read_model(text.encode()), array_splits(other, y), "m")
    coded = kept.assign(risk=kept["risk"].cat.codes)  # as LightGBM has them: -1 is missing
    splits = array_splits(coded, y, valid=(coded, y), test=(coded, y))
    model, _ = matched(read_model(text.encode()), splits, "m")
    theirs = lightgbm.Booster(model_str=text).predict(kept)
    rows = kept["risk"].notna().to_numpy()
    np.testing.assert_allclose(raw_scores(model, splits.test.X)[rows, 0], theirs[rows], atol=1e-6)


def test_numbers_as_categories_of_xgboost_are_texts_in_a_frame():
    X, y = mixture()
    kept = X[["size", "stars", "risk", "shop", "month"]]
    data = xgboost.DMatrix(kept, y, enable_categorical=True)
    booster = xgboost.train({"nthread": 1, "max_depth": 4}, data, 12)
    splits = array_splits(kept, y, valid=(kept, y), test=(kept, y))
    model, _ = matched(read_model(bytes(booster.save_raw("json"))), splits, "m")
    ours = raw_scores(model, splits.test.X)[:, 0]
    np.testing.assert_allclose(ours, booster.predict(data), atol=1e-4)


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
