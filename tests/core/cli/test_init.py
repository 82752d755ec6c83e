"""``bench init``: describe a data file once for all verbs in its folder."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

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
    ended = bench("init", "loans.csv", "--costs", "prices.csv", "--positive", "default")
    assert ended.status == 0, ended.err
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
    assert "wrote datasets.toml: 240 rows, 4 columns, binary" in ended.out
    assert "next: bench run" in ended.err


def test_commas_that_may_group_digits_are_not_taken_for_decimal_marks(home, bench):
    rows = [f"{k % 7};1,{k + 100};{'ab'[k % 2]}" for k in range(200)]
    Path("pay.csv").write_text("\n".join(["x;pay;y", *rows]) + "\n")
    assert bench("init", "pay.csv").status == 0
    assert table("pay")["drop"] == ["pay"]
    assert "decimal" not in table("pay")


def test_options_of_files_belong_into_the_description(loans, bench):
    bench("init", "loans.csv", "--costs", "prices.csv", "--positive", "default")
    said = bench("run", "--positive", "repaid").err
    assert "--positive has no meaning with a registered data set: write its key into " in said
    assert "datasets.toml, [loans] (docs/data.md lists keys)" in said


def test_a_run_without_data_is_on_the_data_set_of_the_folder(loans, bench):
    bench("init", "loans.csv", "--costs", "prices.csv", "--positive", "default")
    ended = bench("run", "-l", "gbrt", "--set", "gbrt.trees=3", "--executor", "inline")
    assert ended.status == 0, ended.err
    assert "data set loans of datasets.toml" in ended.err
    assert "loans: binary" in ended.out
    assert "all of them cost 8.5" in ended.out
    assert "costs in EUR" in bench("best", "--budget", "3").out
    assert "repaid is 0, default is 1" in ended.out
    (line,) = [x for x in bench("list", "datasets").out.splitlines() if x.startswith("loans ")]
    assert "present" in line
    again = bench("plan", "-d", "loans", "-l", "gbrt", "--set", "gbrt.trees=3")
    assert "0 fits and 0 trials to do" in again.out


def test_of_several_one_is_named(loans, bench):
    assert bench("init", "loans.csv").status == 0
    before = table()
    second = bench("init", "loans.csv", "--name", "late", "--drop", "age", "--unit", "EUR")
    assert second.status == 0, second.err
    assert (table(), table("late")["unit"]) == (before, "EUR")
    assert "next: bench run --data late" in second.err
    ended = bench("run")
    assert (ended.status, ended.out) == (2, "")
    assert "datasets.toml has loans, late: choose with --data" in ended.err
    shown = bench("plan", "-d", "late", "-l", "gbrt", "--set", "gbrt.trees=3")
    assert shown.status == 0, shown.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("loans.csv",), "datasets.toml: [loans] exists already: edit it, or give --name"),
        (("loans.csv", "--name", "letters"), "'letters' is the name of another data set"),
        (
            ("loans.csv", "--name", "b", "--label", "outcom"),
            "unknown column 'outcom': did you mean",
        ),
        (("lones.csv",), "lones.csv: no such file"),
    ],
)
def test_what_cannot_be_described_is_one_line(words, line, loans, bench):
    assert bench("init", "loans.csv").status == 0
    before = Path("datasets.toml").read_text()
    ended = bench("init", *words)
    assert (ended.status, ended.out) == (2, "")
    assert line in ended.err
    assert Path("datasets.toml").read_text() == before


def test_svmlight_needs_few_words(home, bench):
    Path("r.svm").write_text("".join(f"{k % 2} 1:{k} 2:{k % 7}\n" for k in range(60)))
    assert bench("init", "r.svm").status == 0
    assert table("r") == {"file": "r.svm", "task": "binary", "positive": "1"}
