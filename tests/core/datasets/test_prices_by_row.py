"""Prices by row from files and frames: every door reads them alike, and refuses alike."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.calls import COSTS, N, table
from helpers.kit import prepared, refused

import bench_core
from bench_core.costs.cost_file import CostFile, price_columns_of
from bench_core.datasets.pricing import with_costs
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_arrays import array_splits
from bench_core.errors import UsageError

LIST = """feature,group,price,price column,when,requires
big_answer,big,,big_price,,small
big_sure,big,,big_price,,
small_answer,small,,small_price,quoted,
words,,0,,,
age,,2,,,
"""


def costs_in(folder, costs=COSTS):
    (folder / "costs.json").write_text(json.dumps(costs), encoding="utf-8")
    return str(folder / "costs.json")


def read_csv(folder, frame, costs=COSTS, **options):
    frame.to_csv(folder / "calls.csv", index=False)
    return prepared(folder / "calls.csv", label="label", costs=costs_in(folder, costs), **options)


def read_parquet(folder, frame, costs=COSTS):
    frame.to_parquet(folder / "calls.parquet")
    return prepared(folder / "calls.parquet", label="label", costs=costs_in(folder, costs))


def read_frame(folder, frame, costs=COSTS):
    source = CostFile(folder, "", costs)
    options = TableOptions(prices_by_row=price_columns_of(source))
    return with_costs(array_splits(frame, "label", split="split", options=options), source)


def read_list(folder, frame):
    frame.to_csv(folder / "calls.csv", index=False)
    (folder / "prices.csv").write_text(LIST, encoding="utf-8")
    return prepared(folder / "calls.csv", label="label", costs=str(folder / "prices.csv"))


DOORS = (read_csv, read_parquet, read_frame, read_list)


@pytest.mark.parametrize("read", DOORS)
def test_every_door_reads_the_prices_of_rows(read, tmp_path):
    frame = table()
    splits = read(tmp_path, frame)
    costs = splits.costs
    assert not {"big_price", "small_price"} & {*splits.names}
    columns = [splits.price_columns[c] for c in costs.column]
    big, small = (int(costs.priced[columns.index(f"{x}_price")]) for x in ("big", "small"))
    quoted = dict(zip(costs.priced.tolist(), costs.quoted.tolist(), strict=True))
    assert quoted == {big: False, small: True}
    needs = {n: set(costs.sensors_of(j).tolist()) for j, n in enumerate(splits.names)}
    assert needs["big_sure"] == needs["big_answer=A"] == {big, small}
    assert needs["small_answer=B"] == {small}
    mean = frame[frame.split == "train"]
    assert splits.prices.sensor[big] == pytest.approx(mean.big_price.mean(), rel=1e-12)
    assert splits.prices.sensor[small] == pytest.approx(mean.small_price.mean(), rel=1e-12)
    paid = costs.on(splits.test.price_columns).of_rows
    test = frame[frame.split == "test"]
    np.testing.assert_allclose(paid[:, big], test.big_price, rtol=1e-12)
    np.testing.assert_allclose(paid[:, small], test.small_price, rtol=1e-12)
    assert splits.prices.feature_price()[splits.names.index("age")] == 2
    assert any("prices by row" in str(note) for note in splits.all_notes)


def test_a_file_beside_svmlight_data_holds_the_prices_of_rows(tmp_path):
    frame = table()
    lines = [f"{k % 2} 1:{row.words} 2:{row.age}" for k, row in enumerate(frame.itertuples())]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    costs = {"costs": {"call": {"column": "paid", "features": ["2"]}, "1": 1}}
    file = costs_in(tmp_path, costs)
    refused("a.svm.prices.csv|header", prepared, tmp_path / "a.svm", costs=file)
    side = tmp_path / "a.svm.prices.csv"
    frame[["big_price"]].rename(columns={"big_price": "paid"}).to_csv(side, index=False)
    splits = prepared(tmp_path / "a.svm", costs=file)
    paid = [getattr(splits, part).price_columns[:, 0] for part in ("train", "valid", "test")]
    assert sorted(np.concatenate(paid)) == sorted(frame.big_price)
    frame[["big_price"]][1:].to_csv(side, index=False)
    refused("299 rows|300", prepared, tmp_path / "a.svm", costs=file)


def test_an_empty_price_means_that_nothing_was_bought(tmp_path):
    gone = [(c, 205, None) for c in ("big_answer", "big_sure", "big_price")]
    splits = read_csv(tmp_path, table(gone))
    assert splits.test.price_columns[5, splits.price_columns.index("big_price")] == 0


BAD = [
    ([("big_price", 3, -1.0)], "line 5|'big_price'|-1|correct"),
    ([("big_price", 3, "inf")], "line 5|'big_price'|infinite"),
    ([("big_price", 3, "much")], "line 5|'big_price'|text"),
    ([("big_price", 3, 1e13)], "line 5|'big_price'|1e+13; give at most 1e+12"),
    ([("big_price", 3, None)], "line 5|'big_price'|'big'|missing"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_bad_prices_of_rows_are_refused_with_their_line(changes, words, tmp_path):
    refused(words, read_csv, tmp_path, table(changes))


def without(name, key, value):
    costs = {**COSTS["costs"]}
    costs[name] = {**costs[name], key: value} if key else value
    return {**COSTS, "costs": costs}


BAD_FILES = [
    (without("big", "column", "bill"), "'big'|'bill'|column"),
    (without("big", "column", "label"), "'big'|'label'|another role; name another"),
    (
        without("big", "", {"colum": "big_price", "features": ["big_*"]}),
        "'big'|'column' is missing",
    ),
    (without("big", "features", []), "'big'|list its columns as features"),
    (
        without("big", "features", ["big_*", "small_price"]),
        "'small_price' holds prices|leave it out",
    ),
    (without("big", "features", ["large_*"]), "'big'|large_*"),
    (without("big", "features", ["large"]), "'big'|'large'"),
    (without("big", "features", ["big_*", "small_answer"]), "'small_answer'|'big'|'small'"),
    (without("big", "features", "big_*"), "'big'|features|list"),
    (without("big", "when", "later"), "'big'|'later'|quoted|metered"),
    (without("big", "needs", ["small"]), "'big'|'needs'|requires"),
    (without("big", "requires", ["tiny"]), "'big'|requires|'tiny'"),
    (without("small", "requires", ["big"]), "'big' requires 'small' requires 'big'|remove"),
    (without("big_sure", "", 3), "big_sure|second cost"),
    ({"costs": {k: v for k, v in COSTS["costs"].items() if k != "age"}}, "'age'|no cost"),
    ({**COSTS, "shared": [["big_sure", "age"]]}, "big_sure"),
    ({**COSTS, "model": "per-query", "per_query": ["small_answer"]}, "'small'|per query|by row"),
]


@pytest.mark.parametrize(("costs", "words"), BAD_FILES)
def test_bad_cost_files_are_refused(costs, words, tmp_path):
    refused(words, read_csv, tmp_path, table(), costs)


def test_data_read_without_the_cost_file_have_no_prices_by_row(tmp_path):
    splits = prepared(csv(tmp_path), label="label")
    refused("'big_price'|read the data", with_costs, splits, costs_in(tmp_path))


def csv(folder):
    table().to_csv(folder / "calls.csv", index=False)
    return folder / "calls.csv"


def test_a_run_bills_rows_their_own_prices(tmp_path):
    """Run, export and bill again, from Python: the means are those of the rows that bought."""
    frame = table()
    result = bench_core.run(
        frame, "label", split="split", costs=COSTS, learners=["constant", "gbrt"],
        metrics=["accuracy"], store=tmp_path / "r.db", audit="full", caps=[1.0],
        settings={"gbrt.trees": 3},
    )  # fmt: skip
    curve, test = result.curve("gbrt"), frame[frame.split == "test"]
    both, small = (test.small_price + test.big_price).mean(), test.small_price.mean()
    sums = np.array([money + age for money in (0.0, small, both) for age in (0, 2)])
    assert all(min(abs(cost - sums)) < 1e-9 for cost in curve["cost"]), curve
    assert max(curve["cost"]) > small

    # one call of both services: the first is quoted below 1, the second is billed afterwards
    paid = test.small_price + test.big_price
    capped = result.at(1.0, "cap").set_index("learner").loc["gbrt"]
    assert capped["over cap"] == pytest.approx((paid > 1).mean())
    assert capped["excess"] == pytest.approx((paid[paid > 1] - 1).mean())
    assert capped["cost"] == pytest.approx(paid.mean())

    model = result.best("inf", learner="gbrt").model()
    answers = model.predict_rows(test)
    assert answers.spent.mean() == pytest.approx(max(curve["cost"]), rel=1e-9)
    rows = test.to_dict("records")[:5]
    asked = [model.predict(row).spent for row in rows]
    np.testing.assert_allclose(asked, answers.spent[:5], rtol=1e-9)
    one = [model.predict(lambda names, row=row: [row[n] for n in names]).spent for row in rows]
    np.testing.assert_allclose(one, asked)
    unpriced = test.drop(columns=["big_price", "small_price"])
    means = frame[frame.split == "train"][["small_price", "big_price"]].mean()
    bought = means["small_price"] + (means["big_price"] if max(curve["cost"]) > small + 2 else 0)
    assert model.predict_rows(unpriced).spent[0] % 2 == pytest.approx(bought % 2)
    refused("'big_price'|at least 0", model.predict, {**rows[0], "big_price": -1}, error=UsageError)


def test_features_says_how_often_nothing_came(bench):
    """A service that crashes in every third row is paid all the same."""
    frame = table([(c, row, None) for row in range(0, N, 3) for c in ("big_answer", "big_sure")])
    frame.to_csv("calls.csv", index=False)
    how = ("-l", "gbrt", "--set", "gbrt.trees=3", "--label", "label", "--executor", "inline")
    costs = costs_in(Path())
    assert bench("run", "-d", "calls.csv", "--costs", costs, *how).status == 0
    bought = bench("features", "-b", "inf").out
    lost = len([row for row in range(200, N) if row % 3 == 0])  # of the test rows
    line = next(line for line in bought.splitlines() if line.startswith("big_answer, big_sure"))
    assert line.endswith(f"{lost} of 100 ({lost}%)"), bought
    bench("features", "-b", "inf", "-o", "bought.csv")
    written = pd.read_csv("bought.csv").set_index("features")["nothing came"]
    assert written["big_answer, big_sure"] == pytest.approx(lost / 100)
    assert written["small_answer"] == 0
    price = pd.read_csv("bought.csv").set_index("features")["price"]
    assert price["big_answer, big_sure"] == pytest.approx(frame.big_price[200:].mean(), rel=1e-5)
