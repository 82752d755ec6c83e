"""Estimators and transformers with prices by row: each row is billed its own prices."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.calls import COSTS, table
from helpers.kit import refused
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bench_core
from bench_core import BudgetedClassifier, BudgetedRanker
from bench_core.serving import load

FAST = {"costs": COSTS, "parameters": {"trees": 10, "tradeoff": [0.1, 1.0]}}
CALLS = table()
X, Y = CALLS.drop(columns=["label", "split"]), CALLS["label"]
PAID = X[["words", "age", "big_price", "small_price"]].assign(words=0.0, age=2.0).to_numpy()
"""Prices of the sensors, in their order."""


def by_hand(fitted, rows, paid):
    """The cost of rows by the sensors that they buy."""
    return (fitted.row_purchases(rows).to_numpy() * paid).sum(axis=1)


@pytest.mark.parametrize(("budget", "kind"), [(3.0, "mean"), (4.0, "cap"), (None, "mean")])
def test_estimators_bill_the_prices_of_rows(budget, kind, tmp_path):
    fitted = BudgetedClassifier("gbrt" if budget is None else "cegb", budget=budget,
                                budget_kind=kind, **FAST | ({"parameters": {"trees": 10}}
                                if budget is None else {}))  # fmt: skip
    fitted.fit(X[:200], Y[:200], X[200:], Y[200:])
    rows, paid = X[200:], PAID[200:]
    costs = fitted.row_costs(rows)
    np.testing.assert_allclose(costs, by_hand(fitted, rows, paid), atol=1e-9)
    assert fitted.cost_ == pytest.approx(costs.max() if kind == "cap" else costs.mean())
    assert fitted.cost_ > 0.4
    assert not {"big_price", "small_price"} & {*fitted.feature_names_in_}
    other = fitted.row_costs(pl.DataFrame(rows[::-1]))
    np.testing.assert_allclose(other, costs[::-1])
    fitted.export(tmp_path / "model")
    if kind == "mean":  # the own prices, also of the exported model
        np.testing.assert_allclose(load(tmp_path / "model").predict_rows(rows).spent, costs)
    means = PAID.copy()
    means[:, 2:] = PAID[:200, 2:].mean(axis=0)
    without = rows.drop(columns=["big_price", "small_price"])
    if kind == "mean":
        expected = by_hand(fitted, without, means[200:])
        np.testing.assert_allclose(fitted.row_costs(without), expected)


def test_copies_groups_and_queries_keep_the_prices_of_their_rows():
    weight = np.arange(len(X)) % 3
    fitted = BudgetedClassifier(**FAST).fit(X, Y, sample_weight=weight, groups=np.arange(300) // 2)
    costs = fitted.row_costs(X)
    np.testing.assert_allclose(costs, by_hand(fitted, X, PAID), atol=1e-9)
    grades, queries = (Y == "A").astype(int), np.arange(300) % 60
    ranker = BudgetedRanker(**FAST).fit(X, grades, queries)
    costs = ranker.row_costs(X, queries)
    bought = ranker.row_purchases(X, queries).to_numpy()
    np.testing.assert_allclose(costs, (bought * PAID).sum(axis=1), atol=1e-9)


def test_estimators_refuse_prices_that_cannot_be_billed():
    fitted = BudgetedClassifier(**FAST)
    refused("'big_price'|unknown column", fitted.fit, X.drop(columns="big_price"), Y,
            error=ValueError)  # fmt: skip
    refused("data frame|big_price", fitted.fit, PAID, Y, error=ValueError)
    bad = X.assign(big_price=X["big_price"].where(X.index != 7, -1))
    refused("row 7|'big_price'|-1", fitted.fit, bad, Y, error=ValueError)
    fitted.fit(X, Y)
    refused("row 7|'big_price'|-1", fitted.row_costs, bad, error=ValueError)


CODED = [("small_code", OneHotEncoder(sparse_output=False), ["small_answer"]),
         ("big_code", OneHotEncoder(sparse_output=False), ["big_answer"]),
         ("sure", StandardScaler(), ["big_sure"])]  # fmt: skip
OF_TRANSFORMERS = {
    "small": {"column": "small_price", "features": ["small_code"], "when": "quoted"},
    "big": {"column": "big_price", "features": ["big_code", "sure"], "requires": ["small"]},
    "words": 0,
    "age": 2,
}


@pytest.mark.parametrize("costs", [COSTS["costs"], OF_TRANSFORMERS])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_transformer_gets_no_prices_and_rows_pay_theirs(costs, frame, tmp_path):
    result = bench_core.run(
        frame(CALLS), "label", split="split", costs={"costs": costs}, learners=["gbrt"],
        transformer=ColumnTransformer(CODED, remainder="passthrough"), metrics=["accuracy"],
        settings={"gbrt.trees": 3}, store=tmp_path / "r.db",
    )  # fmt: skip
    test = CALLS[CALLS.split == "test"]
    paid = (test.small_price + test.big_price).mean()
    assert result.best("inf", learner="gbrt").cost == pytest.approx(paid, rel=1e-9)
    assert "big_price" not in result.transformer.feature_names_in_


def test_prices_of_raw_columns_reach_the_last_step_of_a_pipeline():
    of_columns = COSTS["costs"] | {
        "small": {"column": "small_price", "features": ["small_answer"], "when": "quoted"}
    }
    steps = ColumnTransformer(
        CODED, remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    last = BudgetedClassifier("gbrt", costs=of_columns, parameters={"trees": 3})
    pipeline = make_pipeline(steps, last).fit(X, Y)
    paid = pipeline[-1].row_costs(pipeline[:-1].transform(X))
    np.testing.assert_allclose(paid, X.small_price + X.big_price)
