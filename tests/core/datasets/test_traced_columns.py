"""Prices of a pipeline's input columns reach the outputs that are made of them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.kit import refused
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from bench_core import BudgetedClassifier, BudgetedRanker, BudgetedRegressor, price_list
from bench_core.datasets.traced_columns import traced

N = 240
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["age", "hb", "crp"]).assign(
    country=RNG.choice(["PL", "DE", "code_c"], N),
    country_code=RNG.choice(["a", "b"], N),
    id=np.arange(N),
)
Y = np.where(FRAME["crp"] + (FRAME["country"] == "PL") > 0.5, "ill", "well")
COSTS = {"age": 1.0, "hb": 2.0, "crp": 7.0, "country": 3.0, "country_code": 4.0}
NUMBERS, TEXTS = ["age", "hb", "crp"], ["country", "country_code"]


def columns(**more):
    hot = OneHotEncoder(sparse_output=False)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return ColumnTransformer([("num", numbers, NUMBERS), ("cat", hot, TEXTS)], **more)


def sources(*steps):
    """The names of the columns that each output of fitted steps is made of."""
    steps = make_pipeline(*steps)
    width = np.shape(steps.fit_transform(FRAME, Y))[1]
    found = traced([step for _, step in steps.steps], width)
    return [" ".join(found.names[j] for j in sorted(own)) for own in found.sources], found.notes


class Sums(TransformerMixin, BaseEstimator):
    """Sums and differences, without names."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        X = np.asarray(X)
        return np.column_stack([X.sum(axis=1), X[:, 0] - X[:, -1]])


def each(*parts, **more):
    return ColumnTransformer([*parts], **more)


ONE, TWO = StandardScaler(), PCA(1)
BINS = KBinsDiscretizer(2, strategy="uniform")
PRODUCTS = PolynomialFeatures(2, include_bias=False)
CASES = {  # steps, and what each output is made of, separated by commas
    "numbers and one-hot columns": (
        [columns()], "age,hb,crp,country,country,country,country_code,country_code"),
    "a rest that is passed on": (
        [each(("drop", "drop", [*TEXTS, "id"]), ("s", ONE, slice(1, 3)), remainder="passthrough")],
        "hb,crp,age"),
    "bins, products, missing cells": (
        [each(("b", BINS, ["crp"]), ("p", PRODUCTS, ["age", "hb"]),
              ("m", SimpleImputer(add_indicator=True), ["hb"]), sparse_threshold=0)],
        "crp,crp,age,hb,age,age hb,hb,hb"),
    "mixtures need all": (
        [each(("c", TWO, ["age", "hb"]), ("k", KNNImputer(), ["hb", "crp"]),
              ("n", Normalizer(), ["age", "crp"]))],
        "age hb,hb crp,hb crp,age crp,age crp"),
    "a union": (
        [each(("n", "passthrough", NUMBERS)), FeatureUnion([("one", ONE), ("two", TWO)])],
        "age,hb,crp,age hb crp"),
    "a transformer within a transformer, and later steps": (
        [each(("n", "passthrough", ["crp", "hb", "age"])),
         each(("x", ONE, [2]), ("y", "passthrough", [0])), SelectKBest(k=1)],
        "crp"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_traced_to_the_columns_they_are_made_of(case):
    steps, names = CASES[case]
    assert sources(*steps) == (names.split(","), ())


def test_steps_without_names_need_all_their_inputs_and_are_named():
    plain = FunctionTransformer(np.abs)
    steps = ColumnTransformer([("s", Sums(), ["age", "hb"]), ("f", plain, ["crp"])])
    found, notes = sources(steps)
    assert found == ["age hb", "age hb", "crp"]
    assert [note.split()[0] for note in notes] == ["Sums"]
    assert sources(FunctionTransformer(lambda X: X[["hb", "crp"]]), columns_of("crp", "hb")) == (
        ["crp", "hb"],
        (),
    )


def columns_of(*names):
    return ColumnTransformer([("own", "passthrough", [*names])])


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("prefix", [True, False])
def test_a_pipeline_takes_prices_of_its_columns(output, prefix):
    steps = columns(verbose_feature_names_out=prefix).set_output(transform=output)
    model = BudgetedClassifier("cegb", costs=COSTS, parameters={"trees": 10, "tradeoff": 0.01})
    fitted = make_pipeline(steps, model).fit(FRAME, Y)
    last, rows = fitted[-1], fitted[:-1].transform(FRAME)
    assert last.feature_costs_.tolist() == [1, 2, 7, 3, 3, 3, 4, 4]
    bought = last.row_purchases(rows)
    assert [*bought] == [*COSTS]
    assert (bought.to_numpy() @ [*COSTS.values()]).tolist() == last.row_costs(rows).tolist()
    assert set(last.purchases_) <= set(COSTS)
    assert last.purchases_["country"] > 0
    assert last.cost_ <= sum(COSTS.values())
    assert fitted.predict(FRAME).tolist() == last.predict(rows).tolist()
    model = last.export()
    assert model.predict_rows(np.asarray(rows)).spent.tolist() == last.row_costs(rows).tolist()


FORMS = {
    "frame": lambda path: pd.DataFrame({"test": [*COSTS], "price": [*COSTS.values()]}),
    "series": lambda path: pd.Series(COSTS),
    "list": lambda path: [*COSTS.values(), 9.0],  # of all columns, also the one not used
    "more": lambda path: {"id": 9.0, **COSTS},
    "groups": lambda path: {"costs": COSTS | {"hb": 1.0}, "shared": [["age", "hb"]]},
    "model": lambda path: price_list(np.array([*COSTS.values(), 9.0])),
}


@pytest.mark.parametrize("form", ["file", *FORMS])
def test_prices_of_columns_come_in_every_form(form, tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("".join(f"{name},{price}\n" for name, price in COSTS.items()))
    costs = str(path) if form == "file" else FORMS[form](path)
    model = BudgetedClassifier("gbrt", costs=costs, parameters={"trees": 2})
    last = make_pipeline(columns(), model).fit(FRAME, Y)[-1]
    hb = 1 if form == "groups" else 2
    assert last.feature_costs_.tolist() == [1, hb, 7, 3, 3, 3, 4, 4]
    assert last.cost_model_.sensors == {"groups": 4, "model": 6}.get(form, 5)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: GridSearchCV(model, {"budget": [20, None]}, cv=2),
        lambda model: CalibratedClassifierCV(model, cv=2),
        lambda model: make_pipeline(StandardScaler(), model),
    ],
)
def test_prices_reach_an_estimator_inside_another(wrap):
    model = BudgetedClassifier("gbrt", costs=COSTS, parameters={"trees": 2})
    make_pipeline(columns(), wrap(model)).fit(FRAME, Y)


def test_prices_reach_regressors_and_rankers():
    fast = {"costs": COSTS, "parameters": {"trees": 2}}
    target, grades = FRAME["crp"].to_numpy(), (FRAME["crp"] > 0).to_numpy().astype(int)
    pipe = make_pipeline(columns(), TransformedTargetRegressor(BudgetedRegressor("gbrt", **fast)))
    assert [*pipe.fit(FRAME, target)[-1].regressor_.feature_costs_] == [1, 2, 7, 3, 3, 3, 4, 4]
    ranker = Pipeline([("columns", columns()), ("rank", BudgetedRanker("gbrt", **fast))])
    ranker.fit(FRAME, grades, rank__queries=np.arange(N) % 30)
    assert ranker[-1].feature_costs_.tolist() == [1, 2, 7, 3, 3, 3, 4, 4]


def test_prices_of_outputs_and_of_transformers_remain():
    frame, last = FRAME.assign(num=1.0), BudgetedClassifier("gbrt", parameters={"trees": 2})
    steps = columns()
    names = clone(steps).fit(frame).get_feature_names_out()
    for costs, want in (
        (dict(zip(names, range(1, 9), strict=True)), [1, 2, 3, 4, 5, 6, 7, 8]),
        ([*range(1, 9)], [1, 2, 3, 4, 5, 6, 7, 8]),
        ({"num": 5, "cat": 0}, [5, 5, 5, 0, 0, 0, 0, 0]),
    ):
        model = clone(last).set_params(costs=costs)
        fitted = make_pipeline(clone(steps), model).fit(frame, Y)
        assert fitted[-1].feature_costs_.tolist() == want


def test_outputs_keep_their_names_where_a_pipeline_passes_an_array_on():
    pipe = make_pipeline(columns(), BudgetedClassifier("gbrt", parameters={"trees": 2}))
    fitted = pipe.fit(FRAME, Y)
    assert fitted[-1].export().names == tuple(fitted[0].get_feature_names_out())


def test_a_list_that_has_two_readings_is_refused():
    steps = ColumnTransformer(
        [("n", StandardScaler(), ["crp", "hb"]), ("a", "passthrough", ["age"])]
    )
    pipe = make_pipeline(steps, BudgetedRegressor("gbrt", costs=[1, 2, 7], parameters={"trees": 2}))
    refused("order|by name", pipe.fit, FRAME[NUMBERS], FRAME["crp"], error=ValueError)
    pipe[0].set_params(transformers=[("n", StandardScaler(), NUMBERS)])
    assert pipe.fit(FRAME[NUMBERS], FRAME["crp"])[-1].feature_costs_.tolist() == [1, 2, 7]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({k: v for k, v in COSTS.items() if k != "crp"}, "costs: feature 'crp' has no cost"),
        ({**COSTS, "age": -1}, "feature 'age' costs -1"),
        ([1, 2], "2 costs for 6 columns of X and 8 outputs of the pipeline"),
    ],
)
def test_prices_that_do_not_fit_are_one_line_about_the_columns(costs, message):
    model = BudgetedClassifier("gbrt", costs=costs, parameters={"trees": 2})
    refused(message, make_pipeline(columns(), model).fit, FRAME, Y, error=ValueError)


def test_prices_are_not_guessed_behind_an_estimator_that_picks_columns():
    model = BudgetedClassifier("gbrt", costs=COSTS, parameters={"trees": 2})
    bags = BaggingClassifier(model, n_estimators=2, bootstrap_features=True)
    refused("X has no names", make_pipeline(columns(), bags).fit, FRAME, Y, error=ValueError)


def test_a_step_without_names_is_warned_of_and_a_typo_too():
    steps = ColumnTransformer([("s", Sums(), ["age", "hb"]), ("c", "passthrough", ["crp"])])
    costs = {name: COSTS[name] for name in NUMBERS}
    model = BudgetedRegressor("gbrt", costs=costs, parameters={"trees": 2})
    with pytest.warns(UserWarning, match="costs: Sums does not name its outputs"):
        fitted = make_pipeline(steps, model).fit(FRAME, FRAME["crp"])
    assert fitted[-1].feature_costs_.tolist() == [3, 3, 7]
    model = BudgetedClassifier("gbrt", costs={**COSTS, "crpp": 1.0}, parameters={"trees": 2})
    with pytest.warns(UserWarning, match="not in the data, price not used: crpp"):
        make_pipeline(columns(), model).fit(FRAME, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(columns(), clone(model).set_params(costs=COSTS)).fit(FRAME, Y)
