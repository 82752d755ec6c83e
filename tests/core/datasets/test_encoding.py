"""Text columns, columns left out, groups, folds and shares of a user's own file."""

import random

import numpy as np
import pandas as pd
import pytest
from helpers.kit import every, prepared, refused, table

from bench_core.datasets.pricing import with_costs
from bench_core.encoding import ColumnEncoding
from bench_core.splits import SPLITS

CITIES = ("bern", "oslo", "rome")


def visits(path, rows=300, head="age,sex,city,ill"):
    """Numbers, two texts, three texts with a missing cell, the label."""
    rng = random.Random(0)
    lines = [head]
    for i in range(rows):
        age, city = i * 7 % rows / rows, "" if i == 0 else rng.choice(CITIES)
        lines.append(f"{age},{rng.choice('mf')},{city},{int(age > 0.5)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_each_text_becomes_a_column_and_all_of_a_column_are_one_sensor(tmp_path):
    splits = prepared(visits(tmp_path / "v.csv"))
    names = splits.feature_names
    assert names[0] == "age"
    assert set(names[1:3]) == {"sex=m", "sex=f"}
    assert set(names[3:]) == {f"city={city}" for city in CITIES}
    assert splits.origins == ("age", "sex", "sex", "city", "city", "city")
    assert splits.prices.sensors == 3
    assert [splits.prices.sensors_of(j).tolist() for j in range(6)] == [[0], [1], [1], *[[2]] * 3]
    assert splits.prices.everything == 3
    X = np.concatenate([getattr(splits, s).X for s in SPLITS])
    missing = np.isnan(X[:, 3:])
    assert missing.all(axis=1).sum() == missing.any(axis=1).sum() == 1
    assert (X[~missing.any(axis=1), 3:].sum(axis=1) == 1).all()
    assert sum("column 'sex' holds text (2 values" in note for note in splits.notes) == 1


def test_many_texts_are_codes_by_frequency_in_training_rows(tmp_path):
    words = [f"w{k:02d}" for k in range(20)]
    lines = [f"{words[min(i % 40, 19)]},{i % 2}" for i in range(800)]
    splits = prepared(table(tmp_path / "v.csv", "word,y", lines))
    assert splits.feature_names == ("word",)
    values = every(splits, "word")
    assert sorted({*values}) == list(range(20))
    assert np.mean(values == 0) == pytest.approx(21 / 40, abs=0.01)


def test_a_text_of_no_training_row_is_zero_everywhere(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("c,y\n" + "".join(f"{'ab'[i % 2]},{i // 2 % 2}\n" for i in range(60)))
    test.write_text("c,y\nz,1\na,0\n")
    splits = prepared(train, test=str(test))
    assert splits.test.X[0].tolist() == [0, 0]
    assert splits.test.X[1].sum() == 1


def test_cells_of_text_may_come_as_numbers():
    own = ColumnEncoding("c", ("x", "7", "2.5", "8.0"))
    assert own.codes([7, 7.0, "7", 2.5, 8.0, "8.0", "x"]).tolist() == [1, 1, 1, 2, 3, 3, 0]
    assert np.isnan(own.codes([8, "7.0", 9.0, float("nan"), None, float("inf")])).all()


def test_a_cost_file_names_columns_not_the_features_made_of_them(tmp_path):
    splits = prepared(visits(tmp_path / "v.csv"))
    (tmp_path / "c.csv").write_text("age,1\nsex,2\ncity,30\n")
    priced = with_costs(splits, tmp_path / "c.csv")
    assert priced.prices.everything == 33
    assert priced.prices.feature_price().tolist() == [1, 2, 2, 30, 30, 30]
    (tmp_path / "c.json").write_text('{"costs": [1, 2, 2], "shared": [["sex", "city"]]}')
    assert with_costs(splits, tmp_path / "c.json").prices.everything == 3
    text = '{"model": "per-query", "costs": [1, 2, 30], "per_query": ["sex", "city"]}'
    (tmp_path / "p.json").write_text(text)
    assert with_costs(splits, tmp_path / "p.json").costs.per_query.tolist() == [False, True, True]


def test_columns_that_number_the_rows_are_left_out_unless_kept(tmp_path):
    rows = [f"{i + 7},{i * 37 % 60},{i % 3},{i % 2}" for i in range(60)]
    path = table(tmp_path / "v.csv", "the id,mixed,few,y", rows)
    splits = prepared(path)
    assert splits.feature_names == ("few",)
    what = "column 'the id' numbers the rows and is left out: keep_column=['the id'] keeps it"
    assert what in splits.notes
    assert any("'mixed'" in note for note in splits.notes)
    kept = prepared(path, keep_column=("mixed,the id",))
    assert kept.feature_names == ("the id", "mixed", "few")
    assert not any("numbers the rows" in note for note in kept.notes)
    (tmp_path / "c.csv").write_text("the id,5\nfew,1\n")
    assert with_costs(splits, tmp_path / "c.csv").prices.feature_price().tolist() == [1]


def test_rows_numbered_through_all_files_are_met_too(tmp_path):
    numbers = np.random.default_rng(0).permutation(120)
    for name, own in (("train.csv", numbers[:80]), ("test.csv", numbers[80:])):
        table(tmp_path / name, "n,x,y", [f"{i},{i % 5},{i % 2}" for i in own])
    splits = prepared(tmp_path / "train.csv", test=str(tmp_path / "test.csv"))
    assert splits.feature_names == ("x",)
    # alone the training rows have gaps
    assert prepared(tmp_path / "train.csv").feature_names == ("n", "x")


def test_a_data_set_of_one_column_keeps_it(tmp_path):
    rows = [f"{i},{i // 3 % 2}" for i in range(80)]
    splits = prepared(table(tmp_path / "v.csv", "day,y", rows))
    assert splits.feature_names == ("day",)
    assert "column 'day' numbers the rows: leave it out of " in " ".join(map(str, splits.notes))


def test_columns_that_all_number_the_rows_are_kept(tmp_path):
    rows = [f"{i},{-i},{i // 3 % 2}" for i in range(80)]
    assert prepared(table(tmp_path / "v.csv", "a,b,y", rows)).feature_names == ("a", "b")


def test_columns_of_a_group_share_a_sensor(tmp_path):
    path = visits(tmp_path / "v.csv")
    splits = prepared(path, groups=("a*,city:5",))
    assert splits.prices.everything == 6
    assert {tuple(splits.prices.sensors_of(j)) for j in (0, 3, 4, 5)} == {(1,)}
    assert not splits.costs_assumed


def test_folds_cover_every_row_once_in_test_and_keep_queries_whole(tmp_path):
    path = tmp_path / "r.svm"
    lines = [f"{i % 3} qid:{i // 4} 1:{i} 2:{i % 5}" for i in range(400)]
    path.write_text("\n".join(lines) + "\n")
    seen = []
    for fold in range(5):
        test = prepared(path, fold=fold, cv=5, share=(0.2, 0.2)).test
        assert set(test.queries.sizes) == {4}
        seen += test.X[:, 0].tolist()
    assert sorted(seen) == list(range(400))


FULL = '{"costs": [1, 2, 2], "shared": [["sex", "city"]], "split": 0.5, "unit": "ms"}'
PER_QUERY = '{"costs": [10, 10, 2], "model": "per-query", "per_query": ["city"]}'
UNGROUPED = FULL.replace('"shared": [["sex", "city"]], ', "")
DERIVED = '{"costs": {"age": 1, "city": 2}, "derived": {"sex": ["age", "city"]}}'


PLAIN = "age,10\nsex,10\ncity,2\n"
REPLACED = "prices not used, as a group has its own price: "
OWN = "the costs have their own groups; not used: "


@pytest.mark.parametrize(
    ("text", "group", "everything", "unit", "note"),
    [
        (PLAIN, "age,sex:12", 14, "us", REPLACED + "age, sex"),
        (PLAIN, "age,sex:10", 12, "us", ""),
        ("city,2\n", "age,sex:12", 14, "us", ""),
        (PLAIN, "age,sex", 12, "us", ""),
        ("name,price (EUR)\n" + PLAIN, "age,sex", 12, "EUR", ""),
        (UNGROUPED, "sex,city:3", 4, "ms", REPLACED + "sex, city"),
        (PER_QUERY, "age,sex:12", 14, "us", REPLACED + "age, sex"),
        (FULL, "age,sex:3", 3, "ms", OWN + "age,sex:3"),
        (DERIVED, "age,sex:3", 3, "us", OWN + "age,sex:3"),
    ],
)
def test_costs_without_groups_and_unit_get_those_of_the_data(
    tmp_path, text, group, everything, unit, note
):
    data, costs = prepared(visits(tmp_path / "v.csv")), tmp_path / "costs"
    costs.write_text(text)
    splits = with_costs(data, costs, groups=(group,), unit="us")
    assert (splits.costs.everything, splits.costs.unit) == (everything, unit)
    assert splits.notes == (*data.notes, *filter(None, [note]))


@pytest.mark.parametrize("group", ["age,sex", "age,city:3"])
def test_a_column_without_a_price_needs_a_group_with_one(tmp_path, group):
    costs = tmp_path / "costs"
    costs.write_text("city,2\n")
    data = prepared(visits(tmp_path / "v.csv"))
    refused("no cost|add a line for each", with_costs, data, costs, groups=(group,))


def test_costs_contradict_a_group_without_a_price(tmp_path):
    path, costs = visits(tmp_path / "v.csv"), tmp_path / "costs"
    costs.write_text(PLAIN)
    says = "'age' and 'city' share|10 and 2"
    refused(says, with_costs, prepared(path), costs, groups=("age,city",))


@pytest.mark.parametrize("more", ["", ', "costs": {"age": 9, "sex": 9, "city": 1}'])
def test_a_price_of_trees_keeps_the_groups_of_the_data(tmp_path, more):
    path, costs = visits(tmp_path / "v.csv"), tmp_path / "costs"
    costs.write_text(f'{{"tree": 0.5{more}}}')
    grouped = ("age,sex:3",)
    prices = with_costs(prepared(path, groups=grouped), costs, groups=grouped).prices
    assert (prices.everything, prices.tree) == (4, 0.5)


ODD = (
    *("smoker?", "smokers", "age*bmi", "age_x_bmi", "x[1]", "distance, km", "time", "a:b"),
    "late:5",
)


@pytest.mark.parametrize(
    ("group", "members", "everything"),
    [
        ("smoker?,age_x_bmi:7", {"smoker?", "age_x_bmi"}, 14),
        ("age*bmi,smoker?:7", {"age*bmi", "smoker?"}, 14),
        ("age*,time:7", {"age*bmi", "age_x_bmi", "time"}, 13),
        ("distance, km,time:5", {"distance, km", "time"}, 12),
        ("time, distance, km", {"distance, km", "time"}, 8),
        ("x[1],time:3", {"x[1]", "time"}, 10),
        ("a:b,time", {"a:b", "time"}, 8),
        ("time,a:b:4", {"a:b", "time"}, 11),
        ("time,late:5", {"late:5", "time"}, 8),
    ],
)
def test_a_column_that_exists_is_meant_as_it_is_written(tmp_path, group, members, everything):
    path = tmp_path / "odd.csv"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(90, len(ODD))), columns=ODD)
    frame.assign(ill=[0, 1] * 45).to_csv(path, index=False)
    splits = prepared(path, label="ill", groups=(group,))
    shared = splits.prices.sensors_of(ODD.index(min(members)))
    found = {n for j, n in enumerate(ODD) if np.array_equal(splits.prices.sensors_of(j), shared)}
    assert found == members
    assert splits.prices.everything == everything
    kept = prepared(path, label="ill", drop=("distance, km,time",))
    assert kept.names == tuple(name for name in ODD if name not in ("distance, km", "time"))
