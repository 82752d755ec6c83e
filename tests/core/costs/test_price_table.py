"""Price lists as spreadsheets write them; expected prices are those written here."""

import json

import numpy as np
import pytest

from bench_core.costs.cost_file import read_costs
from bench_core.errors import InputError

NAMES = ("age", "scan", "web visits")

TABLES = {
    "more columns": "Feature;Price;Supplier;Note\nage;1;own;\nscan;25.5;ACME;a\nweb visits;0;;",
    "another order": "Supplier,Cost,Variable\nown,1,age\nACME,25.5,scan\n,0,web visits",
    "tabs": "feature\tprice\tnote\nage\t1\t\nscan\t25.5\ta\nweb visits\t0\t",
    "excel": "sep=;\nFeature;Price\nage;1\nscan;25,5\nweb visits;0",
    "decimal commas": "Feature;Price (EUR)\nage;1,00\nscan;25,50\nweb visits;0,00",
    "bars": "feature|cost|unit\nage|1,0|EUR\nscan|25,5|EUR\nweb visits|0|EUR",
    "pairs with bars": "age|1\nscan|25,5\nweb visits|0",
    "commas in quotes": 'name,price\nage,"1,0"\nscan,"25,50"\nweb visits,0',
    "signs before": "Feature;Price\nage;€1\nscan;€ 25,50\nweb visits;€0",
    "words before": "Feature;Price\nage;EUR 1\nscan;EUR 25.50\nweb visits;EUR 0",
    "signs behind": "feature;price\nage;1,00 €\nscan;25,50 €\nweb visits;0 €",
    "no header": "age;1,0;own\nscan;25,50;ACME\nweb visits;0;x",
    "pairs with commas": "age;1,0\nscan;25,50\nweb visits;0",
    "colons with commas": "age:1,0\nscan:25,50\nweb visits:0",
    "one of the words": "what;price\nage;1\nscan;25.5\nweb visits;0",
    "another language": "Merkmal;Preis (EUR);Bemerkung\nage;1,0 €;x\nscan;25,5 €;y\nweb visits;0;z",
    "another language, two columns": "Merkmal,Preis\nage,1\nscan,25.5\nweb visits,0",
    "another language and order": "Preis;Merkmal\n1;age\n25,5;scan\n0;web visits",
    "of other features too": "feature;price\nage;1\ncity;7\nscan;25.5\nweb visits;0\nzip code;3",
}


def prices(text, folder, names=NAMES):
    path = folder / "prices.csv"
    path.write_text(text, encoding="utf-8")
    return read_costs(path, names)


@pytest.mark.parametrize("form", TABLES)
def test_every_table_gives_the_same_prices(form, tmp_path):
    assert prices(TABLES[form], tmp_path).feature_price().tolist() == [1, 25.5, 0]


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        ("decimal commas", "EUR"),
        ("signs before", "€"),
        ("words before", "EUR"),
        ("more columns", "cost"),
        ("another language", "EUR"),
    ],
)
def test_the_currency_is_the_unit(form, unit, tmp_path):
    assert prices(TABLES[form], tmp_path).unit == unit


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("1.234,50", "1.234", "7"), (1234.5, 1234, 7)),
        (("1,234.50", "1,234", "7"), (1234.5, 1234, 7)),
        (("0,5", "1.000", "2"), (0.5, 1000, 2)),
        (("0.5", "1,000", "2"), (0.5, 1000, 2)),
        (("1 234,5", "1'000", "2"), (1234.5, 1000, 2)),
        (("1,234,567", "1", "2"), (1234567, 1, 2)),
        (("1.234", "1.5", "2"), (1.234, 1.5, 2)),
        (("1.234", "1,5", "2"), (1234, 1.5, 2)),
        (("1.234.567", "1.000", "2,5"), (1234567, 1000, 2.5)),
        (("12,-", "1,5", "2"), (12, 1.5, 2)),
        (("1\u2019234.5", "1\u202f000", "2"), (1234.5, 1000, 2)),
        (("0.001", "0.010", "1e-3"), (0.001, 0.01, 0.001)),
        (("0,001", "0,010", "2"), (0.001, 0.01, 2)),
    ],
)
def test_points_and_commas_are_told_apart_by_the_others(cells, values, tmp_path):
    rows = "\n".join(f"{name};{cell}" for name, cell in zip(NAMES, cells, strict=True))
    found = prices(f"feature;price\n{rows}", tmp_path).feature_price()
    np.testing.assert_allclose(found, values, rtol=1e-12)


HEADER = "feature;price\n"
WRONG = {
    "a comma of two readings": (
        f"{HEADER}age;2\nscan;1,234\nweb visits;1",
        "line 3: 1,234 may be 1234 or 1.2340; write one of these",
    ),
    "a point of two readings": (
        f"{HEADER}age;850\nscan;1.200\nweb visits;2.000",
        "line 3: 1.200 may be 1200 or 1.2; write one of these",
    ),
    "both marks": (
        f"{HEADER}age;1,5\nscan;2.5\nweb visits;1",
        "line 3: 2.5 and 1,5 have different decimal marks; correct one",
    ),
    "blanks in a number": (f"{HEADER}age;1 2\nscan;2\nweb visits;1", "costs '1 2', not a number"),
    "currencies": (f"{HEADER}age;€1\nscan;$2\nweb visits;1", "line 3: a price in $ where others"),
    "a cell is missing": (
        "Feature;Note;Price\nage;x\nscan;;2\nweb visits;;1",
        "line 2: feature 'age' has no price; write one",
    ),
    "a cell too many": (
        "Feature;Note;Price\nage;x;1;2\nscan;;2\nweb visits;;1",
        "line 2: 4 cells where the other lines have 3; columns are separated by ';'",
    ),
    "a misspelt feature": (
        f"{HEADER}age;1\nscan;2\nweb_visits;1",
        "line 4: unknown feature 'web_visits': did you mean web visits?",
    ),
    "a feature without a price": (
        f"{HEADER}age;1\ncity;3\nweb visits;1",
        "'scan' has no cost (2 costs for 3 columns); add a line for each; not used: 'city'",
    ),
    "a word": (f"{HEADER}age;free\nscan;2\nweb visits;1", "line 2: feature 'age' costs 'free'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_price_list_is_one_line(case, tmp_path):
    text, wanted = WRONG[case]
    with pytest.raises(InputError) as refused:
        prices(text, tmp_path)
    assert wanted in str(refused.value)
    assert "\n" not in str(refused.value)


def test_groups_do_without_features_that_were_dropped(tmp_path):
    content = {
        "costs": {"age": 1, "scan": 5, "city": 5, "web visits": 5, "T3": 9, "TSH": 8},
        "shared": [["scan", "city"]],
        "discounted": [{"members": ["T3", "web visits", "TSH"], "later": [6, 2, 5]}],
    }
    found = prices(json.dumps(content), tmp_path)
    assert found.feature_price().tolist() == [1, 5, 5]
    assert found.everything == 11
