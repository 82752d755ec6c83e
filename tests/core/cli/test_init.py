"""``bench init``: describe a data file once for all verbs in its folder."""

import json
import tomllib
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import calls
from helpers.kit import assert_line

ROWS = 240


@pytest.fixture
def loans(home):
    """A table as people have it: an id, dates, decimal commas, text, free text, a text label."""
    rng = np.random.default_rng(0)
    lines = ["customer;signed;income;city;note;age;outcome"]
    for k in range(ROWS):
        age = int(rng.integers(18, 80))
        signed = f"{k % 28 + 1}.{k % 12 + 1}.2023"
        outcome = "default" if age + rng.normal() * 9 < 40 else "repaid"
        income = f"{rng.uniform(1, 9):.2f}".replace(".", ",")
        city = ("Ulm", "Bonn", "Kiel")[k % 3]
        lines.append(f"c{k:05};{signed};{income};{city};text {k * 7919 % ROWS};{age};{outcome}")
    Path("loans.csv").write_text("\n".join(lines) + "\n")
    prices = "Feature;Price (EUR)\nsigned;0,50\nincome;5\ncity;1\nage;2\ncustomer;9\n"
    Path("prices.csv").write_text(prices)
    return home


def table(name="loans"):
    return tomllib.loads(Path("datasets.toml").read_text())[name]


def test_the_columns_are_looked_at(loans, bench):
    ended = bench("init", "loans.csv", "--costs", "prices.csv", "--positive", "default").ok()
    assert table() == {
        "file": "loans.csv",
        "task": "binary",
        "label": "outcome",
        "positive": "default",
        "drop": ["customer", "note"],
        "decimal": ",",
        "dates": True,
        "costs": "prices.csv",
    }
    assert "wrote datasets.toml: 240 rows, 4 columns, binary, all columns cost 8.5 EUR" in ended.out
    assert "next: bench run" in ended.err


def test_commas_that_may_group_digits_are_not_taken_for_decimal_marks(home, bench):
    rows = [f"{k % 7};1,{k + 100};{'ab'[k % 2]}" for k in range(200)]
    Path("pay.csv").write_text("\n".join(["x;pay;y", *rows]) + "\n")
    bench("init", "pay.csv").ok()
    assert table("pay")["drop"] == ["pay"]
    assert "decimal" not in table("pay")


def test_options_of_files_belong_into_the_description(loans, bench):
    bench("init", "loans.csv", "--costs", "prices.csv", "--positive", "default")
    said = bench("run", "--positive", "repaid").err
    assert "--positive has no meaning with a registered data set: write its key into " in said
    assert "datasets.toml, [loans] (docs/guide/data.md lists keys)" in said


def test_a_run_without_data_is_on_the_data_set_of_the_folder(loans, bench):
    bench("init", "loans.csv", "--costs", "prices.csv", "--positive", "default")
    ended = bench("run", "-l", "gbrt", "--set", "gbrt.trees=3", "--executor", "inline").ok()
    assert "data set loans of datasets.toml" in ended.err
    assert "loans: binary" in ended.out
    assert "all of them cost 8.5" in ended.out
    assert "costs in EUR" in bench("best", "--budget", "3").out
    assert "repaid is 0, default is 1" in ended.out
    (line,) = [x for x in bench("list", "datasets").out.splitlines() if x.startswith("loans ")]
    assert "present" in line
    again = bench("plan", "-d", "loans", "-l", "gbrt", "--set", "gbrt.trees=3")
    assert "0 fits and 0 trials to do" in again.out


def test_a_description_hidden_by_a_data_set_does_not_run_that(loans, bench):
    bench("init", "loans.csv")
    path = Path("datasets.toml")
    path.write_text(path.read_text().replace("[loans]", "[digits]"))
    ended = bench("run", "-l", "constant")
    assert (ended.status, ended.out) == (2, "")
    assert_line(ended.err, "datasets.toml: [digits]|name of another data set|rename it")


def test_of_several_one_is_named(loans, bench):
    bench("init", "loans.csv").ok()
    before = table()
    second = bench("init", "loans.csv", "--name", "late", "--drop", "age", "--unit", "EUR").ok()
    assert (table(), table("late")["unit"]) == (before, "EUR")
    assert "next: bench run --data late" in second.err
    ended = bench("run")
    assert (ended.status, ended.out) == (2, "")
    assert "datasets.toml has loans, late: choose with --data" in ended.err
    bench("plan", "-d", "late", "-l", "gbrt", "--set", "gbrt.trees=3").ok()


def test_a_description_is_not_replaced(loans, bench):
    bench("init", "loans.csv").ok()
    before = Path("datasets.toml").read_text()
    ended = bench("init", "loans.csv")
    assert (ended.status, ended.out) == (2, "")
    assert_line(ended.err, "datasets.toml: [loans] exists|--name")
    assert Path("datasets.toml").read_text() == before


def test_svmlight_needs_few_words(home, bench):
    Path("r.svm").write_text("".join(f"{k % 2} 1:{k} 2:{k % 7}\n" for k in range(60)))
    bench("init", "r.svm").ok()
    assert table("r") == {"file": "r.svm", "task": "binary", "positive": "1"}


def test_folds_and_fractions_are_described(home, bench):
    rows = [f"{k % 7},{k % 3},{('train', 'valid', 'test')[k % 3]},{k % 2}" for k in range(200)]
    Path("x.csv").write_text("\n".join(["a,b,split,y", *rows]) + "\n")
    bench("init", "x.csv", "--cv", "4", "--share", "0.1,0.25").ok()
    assert table("x")["folds"] == 4
    assert table("x")["split"] == [0.65, 0.1, 0.25]
    bench("plan", "-l", "constant", "--folds", "0-3").ok()


QUICK = ("-l", "gbrt", "--set", "gbrt.trees=3", "--executor", "inline")


@pytest.fixture
def grouped(home, bench):
    """A described table with a group of columns and a unit."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, 3))
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{int(a + b + c > 0)}" for a, b, c in rows]
    Path("calls.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    Path("prices.csv").write_text("feature,price\na,9\nb,9\nc,4\n")
    words = ("--costs", "prices.csv", "--group", "a,b:20", "--unit", "us")
    ended = bench("init", "calls.csv", *words)
    assert "all columns cost 24 us" in ended.out
    bench("run", *QUICK).ok()
    return home


def bills(bench, run="last"):
    """Costs and units of a run's points."""
    frame = pd.read_csv(StringIO(bench("export", run).out))
    return frame[["split", "point", "cost", "cost_max", "unit"]]


def test_prices_given_with_a_run_are_billed_as_those_of_the_description(grouped, bench):
    Path("same.csv").write_text(Path("prices.csv").read_text())
    ended = bench("run", *QUICK, "--costs", "same.csv")
    assert "all of them cost 24" in ended.out
    pd.testing.assert_frame_equal(bills(bench), bills(bench, "1"))
    assert set(bills(bench)["unit"]) == {"us"}
    planned = bench("plan", *QUICK, "--costs", "same.csv")
    assert "0 fits and 0 trials to do" in planned.out


def test_a_changed_line_of_prices_is_billed_in_the_groups_of_the_description(grouped, bench):
    Path("prices.csv").write_text("feature,price\na,9\nb,9\nc,7\n")
    ended = bench("reprice", "1", "--costs", "prices.csv", "--executor", "inline").ok()
    assert "all of them cost 27" in ended.out
    again, before = bills(bench), bills(bench, "1")
    assert set(again["unit"]) == {"us"}
    bench("run", *QUICK).ok()
    pd.testing.assert_frame_equal(again, bills(bench))
    assert again["cost_max"].max() == before["cost_max"].max() + 3


@pytest.mark.parametrize("verb", [("run", *QUICK), ("reprice", "1", "--executor", "inline")])
def test_a_cost_file_with_groups_and_a_unit_wins(verb, grouped, bench):
    Path("own.json").write_text('{"costs": [5, 5, 1], "shared": [["a", "b"]], "unit": "ms"}')
    ended = bench(*verb, "--costs", "own.json").ok()
    assert "all of them cost 6" in ended.out
    assert "the costs have their own groups; not used: a,b:20" in ended.err
    assert set(bills(bench)["unit"]) == {"ms"}


def test_prices_of_a_described_set_are_shown(grouped, bench):
    assert "Prices: prices.csv, in us, groups a,b:20" in bench("show", "calls").out


def test_columns_of_prices_are_recognised(bench):
    frame = calls.table().rename(columns={"small_price": "small_cost"})
    frame["big_correct"] = (frame["big_answer"] == frame["label"]).astype(int)
    frame["big_two_sure"], frame["big_two_seconds"] = frame["big_sure"] / 2, frame["big_price"]
    frame.to_csv("calls.csv", index=False)
    ended = bench("init", "calls.csv", "--label", "label").ok()
    assert "left out: big_correct" in ended.err
    assert "big_price, big_two_seconds" in ended.err
    assert "prices by row" in ended.err
    costs = json.loads(Path("calls-prices.json").read_text())["costs"]
    assert costs == {
        "small": {"column": "small_cost", "features": ["small_answer"]},
        "big": {"column": "big_price", "features": ["big_answer", "big_sure"]},
        "big_two": {"column": "big_two_seconds", "features": ["big_two_sure"]},
        "words": 0,
        "age": 0,
    }
    shown = bench("show", "calls").out
    mean = frame[frame.split == "train"].big_price.mean()
    assert f"  big_price {mean:.3g} (" in shown, shown
    bench("run", "-l", "gbrt", "--set", "gbrt.trees=3", "--executor", "inline").ok()
    bench("init", "calls.csv", "--label", "label", "--name", "again").ok()
    Path("more-prices.json").write_text("{}")
    refused = bench("init", "calls.csv", "--label", "label", "--name", "more")
    assert (refused.status, "more-prices.json exists already" in refused.err) == (2, True)
    without = frame.drop(columns=["small_cost", "big_price", "big_two_seconds"])
    without.to_csv("plain.csv", index=False)
    bench("init", "plain.csv", "--label", "label").ok()
    assert not Path("plain-prices.json").exists()
