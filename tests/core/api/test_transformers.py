"""Pipelines with prices: the columns of a transformer are one measurement."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.kit import refused
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import bench_core
from bench_core import Acquired
from bench_core.api.arguments import request_of

N = 400


class Noted(TransformerMixin, BaseEstimator):
    """Passes cells on and counts the rows that it is fitted on; its columns have no names."""

    fitted: list[int] = []  # noqa: RUF012 - of all copies

    def fit(self, X, y=None):
        self.fitted.append((len(X), None if y is None else len(y)))
        self.width_ = X.shape[1]
        return self

    def transform(self, X):
        return np.column_stack([X, X.to_numpy().sum(axis=1)])


def complaints():
    """Free text, two coordinates, a number, a colour; the word "late" decides, or the place."""
    rng = np.random.default_rng(5)
    words = np.array(["late", "broken", "fine", "rude", "cold", "slow"])
    text = [" ".join(rng.choice(words, 4)) for _ in range(N)]
    frame = pd.DataFrame({"note": text, "lat": rng.normal(size=N), "lon": rng.normal(size=N)})
    frame["age"], frame["colour"] = rng.integers(18, 80, N), rng.choice(["red", "blue"], N)
    late = frame["note"].str.contains("late").to_numpy()
    return frame, np.where(late ^ (frame["lat"] > 1), "yes", "no")


def columns(**more):
    return ColumnTransformer(
        [
            ("words", CountVectorizer(), "note"),
            ("place", Noted(), ["lat", "lon"]),
            ("own", "passthrough", ["age", "colour"]),
        ],
        **more,
    )


COSTS = {"words": 3.0, "place": 5.0, "age": 1.0, "colour": 0.5}
HOW = {"learners": {"gbrt": {"trees": 10}}, "executor": "inline", "progress": False}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "s.db"


def test_a_run_through_a_transformer_is_that_of_its_columns_in_groups(store):
    frame, y = complaints()
    split = np.array(["train", "valid", "test", "train"] * (N // 4))
    Noted.fitted.clear()
    pipe = Pipeline([("columns", columns()), ("model", LogisticRegression())])
    run = bench_core.run(frame, y, split=split, transformer=pipe, costs=COSTS, store=store, **HOW)
    assert Noted.fitted == [(N // 2, N // 2)]  # the training rows alone
    by_hand = CountVectorizer().fit(frame["note"][split == "train"])
    own = pd.DataFrame(by_hand.transform(frame["note"]).toarray().astype(float))
    own.columns = [f"words__{name}" for name in by_hand.get_feature_names_out()]
    for name, cells in (
        ("1", frame["lat"]),
        ("2", frame["lon"]),
        ("3", frame["lat"] + frame["lon"]),
    ):
        own[f"place__{name}"] = cells
    own[["age", "colour"]] = frame[["age", "colour"]]
    costs = {name: COSTS.get(name.partition("__")[0], 0) for name in own}
    groups = ["words__*:3", "place__*:5"]
    other = bench_core.run(own, y, split=split, costs=costs, groups=groups, store=store, **HOW)
    names = ["learner", "accuracy", "cost"]
    assert run.board()[names].to_numpy().tolist() == other.board()[names].to_numpy().tolist()
    assert np.array_equal(run.transformer.transform(frame), own)
    assert other.transformer is None
    with pytest.warns(UserWarning, match="transformed rows: save result.transformer too"):
        run.best(9).export(store.parent / "model")
    other.best(9).export(store.parent / "model")
    refused("rows of the run's transformer", run.best(9).model().predict_rows, frame)
    listed = run.features("gbrt")
    assert dict(zip(listed["features"], listed["price"], strict=True)) == COSTS


def test_columns_of_the_frame_may_be_labels_and_parts_of_their_own(store):
    frame, y = complaints()
    whole = frame.assign(answer=y)
    how = {"transformer": columns(), "costs": COSTS, "store": store, **HOW}
    parts = {"valid": whole[200:300], "test": whole[300:]}
    named = bench_core.run(whole[:200], "answer", **parts, **how)
    pairs = {"valid": (frame[200:300], y[200:300]), "test": (frame[300:], y[300:])}
    given = bench_core.run(frame[:200], y[:200], **pairs, **how)
    assert named.board()["cost"].tolist() == given.board()["cost"].tolist()
    assert named.board()["accuracy"].tolist() == given.board()["accuracy"].tolist()


def test_every_fold_is_fitted_on_its_own_training_rows():
    frame, y = complaints()
    Noted.fitted.clear()
    made = request_of({"cv": 4, "costs": COSTS}, frame, y, transformer=columns())
    splits = made.data[0].splits
    assert Noted.fitted == [(len(own.train), len(own.train)) for own in splits]
    rows = np.concatenate([own.test.X for own in splits])
    assert len(rows) == N
    assert {len(own.prices.sensor) for own in splits} == {4}


def colours():
    """Colours, some missing, and sizes; a missing colour decides, with the size."""
    rng = np.random.default_rng(6)
    colour, size = rng.choice(["red", "blue", None], N), rng.normal(size=N)
    y = np.where((colour == None) ^ (size > 1), "yes", "no")  # noqa: E711
    return {"colour": colour.tolist(), "size": size.tolist()}, y


@pytest.mark.parametrize("output", ["default", "polars"])
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_served_frames_are_transformed_as_frames_of_that_kind_were_in_the_run(kind, output):
    table, y = colours()
    frame = kind(table)
    one = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    both = ColumnTransformer([("hot", one, ["colour"]), ("own", "passthrough", ["size"])])
    both.set_output(transform=output)
    split = np.repeat(["train", "valid", "test"], [200, 100, 100])
    for how in ({"split": split}, {"test": (frame[200:], y[200:])}):
        n = N if "split" in how else 200
        data = request_of(how, frame[:n], y[:n], transformer=both).data[0]
        made = np.concatenate(
            [getattr(data.splits[0], name).X for name in ("train", "valid", "test")]
        )
        served = np.asarray(data.transformer.transform(frame), dtype=float)
        assert sorted(made.tolist()) == sorted(served.astype(np.float32).tolist())
        missing = [cell is None for cell in table["colour"]]
        assert (served[missing, :3] == [0, 0, 1]).all()


def test_a_transformer_may_use_expressions_of_polars():
    table, y = colours()
    square = FunctionTransformer(lambda frame: frame.select(pl.col("size") ** 2))
    steps = ColumnTransformer([("square", square, ["size"]), ("own", "passthrough", ["size"])])
    for frame in (pl.DataFrame(table), pl.LazyFrame(table)):
        rows = request_of({}, frame, y, transformer=steps).data[0].splits[0].test.X
        assert np.allclose(rows[:, 0], rows[:, 1] ** 2)


def test_parts_of_two_kinds_have_no_transformer_in_common():
    table, y = colours()
    steps = ColumnTransformer([("own", "passthrough", ["size"])])
    other, X = {"test": (pd.DataFrame(table), y)}, pl.DataFrame(table)
    refused("pandas and polars|X, valid and test", request_of, other, X, y, transformer=steps)


NUMBERS = ColumnTransformer([("w", CountVectorizer(), "note"), ("p", "passthrough", ["age"])])


@pytest.mark.parametrize(
    ("transformer", "fault"),
    [
        (StandardScaler(), "transformer is a StandardScaler; give a ColumnTransformer"),
        (make_pipeline(NUMBERS, PCA(2)), "the later step PCA mixes the columns"),
        (make_pipeline(NUMBERS, StandardScaler(), PCA(7)), "the later step PCA mixes"),
        (
            ColumnTransformer([("p", "passthrough", ["age"]), ("a", PCA(), ["note"])]),
            "transformer: step 'a': ValueError: could not convert string",
        ),
    ],
)
def test_what_has_no_prices_is_one_line(transformer, fault):
    frame, y = complaints()
    refused(fault, request_of, {}, frame, y, transformer=transformer)
    twice = pd.concat([frame, frame["age"]], axis=1)
    refused("X: two columns|'age'|rename", request_of, {}, twice, y, transformer=NUMBERS)


@pytest.mark.parametrize("form", ["mapping", "file", "frame"])
def test_prices_of_the_columns_of_x_are_those_of_what_is_made_of_them(form, tmp_path):
    frame, y = complaints()
    costs = {"note": 3.0, "lat": 2.0, "lon": 2.5, "age": 1.0, "colour": 0.5, "other": 9.0}
    frame = frame.assign(other=0.0)
    table = pd.Series(costs, name="price").rename_axis("column").reset_index()
    table.to_csv(tmp_path / "prices.csv", index=False)
    given = {"mapping": costs, "file": str(tmp_path / "prices.csv"), "frame": table}[form]
    onehot = ColumnTransformer(
        [
            ("words", CountVectorizer(), "note"),
            ("place", Noted(), ["lat", "lon"]),
            ("hue", OneHotEncoder(), ["colour"]),
            ("num", StandardScaler(), ["age", "lat"]),
        ]
    )
    asked = request_of({"costs": given, "unit": "EUR"}, frame, y, transformer=onehot)
    assert not asked.costs
    splits = asked.data[0].splits[0]
    assert (splits.costs.everything, splits.costs.unit) == (9.0, "EUR")  # "other" is not read
    names = list(splits.names)
    outputs = {
        ("words__late",): 3.0, ("words__late", "words__rude"): 3.0, ("hue__colour_red",): 0.5,
        ("place__1",): 4.5, ("place__1", "num__lat"): 4.5, ("num__lat", "num__age"): 3.0,
    }  # fmt: skip
    for bought, price in outputs.items():
        needed = np.zeros((1, splits.costs.sensors), dtype=bool)
        for name in bought:
            needed[0, splits.costs.sensors_of(names.index(name))] = True
        assert splits.costs.feature_cost(Acquired.pack(needed), None).tolist() == [price], bought
    run_costs = dict.fromkeys(("words", "place", "hue", "num"), 1.0)  # of transformers, as ever
    assert request_of({"costs": run_costs}, frame, y, transformer=onehot).costs


def test_costs_name_transformers_that_are_there(store):
    frame, y = complaints()
    costs = {name: cost for name, cost in COSTS.items() if name != "place"}
    how = {"transformer": columns(), "costs": costs, "store": store, **HOW}
    refused("costs: feature 'place'", bench_core.run, frame, y, **how)
    apart = pd.DataFrame({"a__1": [0.0, 1.0] * 30, "b": [1.0, 0.0] * 30, "a__2": [0.5] * 60})
    costs = {"costs": {"a": 1, "b": 2}}
    refused("'a' are not adjacent", request_of, costs, apart, [0, 1, 1] * 20)
