"""Price lists as spreadsheets write them; expected prices are those written here."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.kit import refused

from bench_core.costs.cost_file import read_costs

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
    "row numbers": "No,Test,Fee\n1,age,1\n2,scan,25.5\n3,web visits,0",
    "row numbers of a sorted table": "index,feature,cost\n2,web visits,0\n0,age,1\n1,scan,25.5",
    "row numbers without a title": ",Merkmal,Preis\n0,age,1\n2,web visits,0\n1,scan,25.5",
    "a tab in front": "\tfeature\tcost\n0\tage\t1\n1\tscan\t25.5\n2\tweb visits\t0",
    "row numbers without a header": "1;age;1,0\n2;scan;25,5\n3;web visits;0",
    "a series with its title": "cost\n1\n25.5\n0",
    "a series of pandas": ",0\nage,1\nscan,25.5\nweb visits,0",
    "one row": "scan,web visits,age\n25.5,0,1",
    "a comment behind a price": "age,1  # ask\nscan,25.5\nweb visits,0",
    "a sum": "feature;price\nage;1\nscan;25.5\nweb visits;0\n;26.5",
    "a title of two lines": 'feature;"price\n(EUR)"\nage;1\nscan;25,5\nweb visits;0',
    "separators at line ends": "feature;price;\nage;1;\nscan;25,5;\nweb visits;0;",
    "old line ends": "feature;price\rage;1\rscan;25.5\rweb visits;0\r",
    "other prices": "feature,cost,cost old\nage,1,2\nscan,25.5,3\nweb visits,0,4",
    "other numbers": "Merkmal;Dauer;Preis (EUR)\nage;5;1\nscan;7;25,5\nweb visits;9;0",
    "numbered in order": "number,cost\n2,25.5\n1,1\n3,0",
    "numbered from 0": "2,0\n0,1\n1,25.5",
    "decimal commas alone": "1,0\n25,5\n0,0",
    "notes and blank lines": "# prices\n\n age , 1\nscan,25.5\n\n# free\nweb visits,0",
    "all in quotes": '"name","cost"\n"age","1"\n"scan","25.5"\n"web visits","0"\n',
    "quotes behind blanks": 'cost, name\n1, "age"\n25.5, "scan"\n0, "web visits"\n',
    "bare lines": "1\n25.5\n0\n",
    "of other features too": "feature;price\nage;1\ncity;7\nscan;25.5\nweb visits;0\nzip code;3",
}


def prices(text, folder, names=NAMES):
    path = folder / "prices.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return read_costs(path, names)


DOCUMENTS = {
    "records.json": '[{"fee": 25.5, "test": "scan"}, {"fee": 1, "test": "age"},'
    ' {"test": "web visits", "fee": 0}]',
    "columns.json": '{"test": ["scan", "age", "web visits"], "fee": ["25,5", "1", "0"]}',
    "pairs.json": '[["scan", 25.5], ["age", 1], ["web visits", 0]]',
    "wide.json": '[{"scan": 25.5, "web visits": 0, "age": 1}]',
    "text.json": '{"scan": "25,50 €", "age": "1 €", "web visits": "0 €"}',
    "list.json": "[1, 25.5, 0]",
    "full.json": '{"costs": {"web visits": 0, "age": 1, "scan": 25.5}}',
    "full list.json": '{"costs": [1, 25.5, 0]}',
    "numbers.json": '{"0": 1, "1": 25.5, "2": 0}',
    "records.toml": '[[costs]]\nn = "scan"\nc = 25.5\n[[costs]]\nn = "age"\nc = 1\n'
    '[[costs]]\nn = "web visits"\nc = 0',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_gives_the_same_prices(name, tmp_path):
    (tmp_path / name).write_text(DOCUMENTS[name], encoding="utf-8")
    assert read_costs(tmp_path / name, NAMES).feature_price().tolist() == [1, 25.5, 0]


def test_parquet_gives_the_same_prices(tmp_path):
    frame = pd.DataFrame({"Fee": [25.5, 0, 1, 9], "Test": ["scan", "web visits", "age", "urn"]})
    frame.iloc[[2, 3, 0, 1]].to_parquet(tmp_path / "prices")
    assert read_costs(tmp_path / "prices", NAMES).feature_price().tolist() == [1, 25.5, 0]
    (tmp_path / "cut").write_bytes((tmp_path / "prices").read_bytes()[:100])
    refused("cut: not a Parquet file", read_costs, tmp_path / "cut", NAMES)


NUMBERED = {
    "SVMlight": (("1", "2", "3"), "2,5\n3,7\n1,1"),
    "SVMlight with f": (("1", "2", "3"), "f2,5\nf3,7\nf1,1"),
    "SVMlight without some": (("2", "7", "9"), "1,3\n2,1\n7,5\n8,3\n9,7"),
    "SVMlight from 0": (("0", "1", "2"), "1,5\n2,7\n0,1"),
    "names with f": (("f1", "f2", "f3"), "2,5\n3,7\n1,1"),
    "arrays from 0": (("x0", "x1", "x2"), "1,5\n2,7\n0,1"),
    "arrays from 1": (("x0", "x1", "x2"), "2,5\n3,7\n1,1"),
    "years": (("2021", "2019", "2020"), "2019,5\n2020,7\n2021,1"),
    "prices first": (("1", "2", "3"), "5,2\n7,3\n1,1"),
    "small prices": (("1", "2", "3"), "price,index\n5,2\n7,3\n1,1"),
    "prices that are numbers, too": (("1", "2", "3", "4", "6"), "1,1\n2,5\n3,7\n4,2\n6,2"),
}  # fmt: skip


@pytest.mark.parametrize("case", NUMBERED)
def test_numbers_name_columns_that_are_numbered(case, tmp_path):
    names, text = NUMBERED[case]
    assert prices(text, tmp_path, names).feature_price().tolist()[:3] == [1, 5, 7]


def test_a_column_of_groups_holds_shared_measurements(tmp_path):
    text = "feature;group;price\nscan;blood;7\nage;;1\nurn;blood;7\nweb visits;blood;"
    made = prices(text, tmp_path)
    assert made.feature_price().tolist() == [1, 7, 7]
    assert made.everything == 8
    refused("'scan' and 'web visits' share", prices, text + "3", tmp_path)


@pytest.mark.parametrize("form", TABLES)
def test_every_table_gives_the_same_prices(form, tmp_path):
    made = prices(TABLES[form], tmp_path)
    assert made.feature_price().tolist() == [1, 25.5, 0]
    assert (made.sensors, made.split, made.tree) == (3, 0, 0)


@pytest.mark.parametrize(("form", "unit"), [("bars", "EUR"), ("signs before", "€")])
def test_the_unit_stands_in_a_column_or_in_the_cells(form, unit, tmp_path):
    assert prices(TABLES[form], tmp_path).unit == unit


@pytest.mark.parametrize(
    ("title", "unit"),
    [
        ("price in EUR", "EUR"),
        ("price_eur", "EUR"),
        ("EUR", "EUR"),
        ("Preis (EUR)", "EUR"),
        ("cost in ms", "ms"),
        ("cost_ms", "ms"),
        ("Cost [US$]", "US$"),
        ("price €", "€"),
        ("NOK", "NOK"),
        ("fee", "cost"),
        ("price 2024", "cost"),
        ("price (2024)", "cost"),
        ("cost per day", "cost"),
    ],
)
def test_the_title_of_prices_gives_the_unit(title, unit, tmp_path):
    made = prices(f"Test,{title}\nage,1\nscan,25.5\nweb visits,0", tmp_path)
    assert (made.unit, made.everything) == (unit, 26.5)


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
    "currencies": (f"{HEADER}age;€1\nscan;$2\nweb visits;1", "line 3: a price in $ where others"),
    "a comma of two readings": (f"{HEADER}age;2\nscan;1,234\nweb visits;1", "line 3: 1,234|1.2340"),
    "a point of two readings": (
        f"{HEADER}age;85\nscan;1.200\nweb visits;2.000",
        "line 3: 1.200|1.2;",
    ),
    "both marks": (f"{HEADER}age;1,5\nscan;2.5\nweb visits;1", "line 3: 2.5 and 1,5|correct one"),
    "prices of another list": ("f1,1\nf2,2\nf3,3", "'age' and 2 more|not used: 'f1', 'f2', 'f3'"),
    "one number too many": ("0,1\n1,2\n2,3\n3,4", "'age' and 2 more have no cost (0 costs"),
    "two columns of names": (
        "Test,other,price\nage,scan,1\nscan,age,2\nweb visits,web visits,3",
        "line 2: 'Test' and 'other'|remove one",
    ),
    "two columns of prices": (
        "Test,Preis,Menge\nage,5,2\nscan,7,9\nweb visits,3,1",
        "line 2|'Preis' or 'Menge'|title price",
    ),
    "a wrong price beside row numbers": (
        "No,Test,Betrag\n1,age,1\n2,scan,2?5\n3,web visits,0",
        "line 3: feature 'scan' costs '2?5'",
    ),
    "a wrong first price": ("1[5\n2\n3\n4", "line 1: feature '1' costs '1[5', not a number"),
    "a column of groups alone": ("group\n1\n2\n3", "prices may be in no column; give"),
    "two units": (
        "feature,price,unit\nage,1,EUR\nscan,2,USD\nweb visits,3,EUR",
        "line 2: prices in EUR and USD|convert",
    ),
    "a price without the unit": (f"{HEADER}age;1k\nscan;2\nweb visits;1k", "line 3|'k'|alike"),
    "blanks in a number": (f"{HEADER}age;1 2\nscan;2\nweb visits;1", "costs '1 2', not a number"),
    "a cell is missing": (
        "Feature;Note;Price\nage;x\nscan;;2\nweb visits;;1",
        "line 2|'age'|write one",
    ),
    "a cell too many": (
        "Feature;Note;Price\nage;x;1;2\nscan;;2\nweb visits;;1",
        "line 2: 4 cells|have 3|';'",
    ),
    "a misspelt feature": (
        f"{HEADER}age;1\nscan;2\nweb_visits;1",
        "line 4|'web_visits'|web visits?",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_price_list_is_one_line(case, tmp_path):
    text, wanted = WRONG[case]
    refused(wanted, prices, text, tmp_path)


def test_groups_do_without_features_that_were_dropped(tmp_path):
    content = {
        "costs": {"age": 1, "scan": 5, "city": 5, "web visits": 5, "T3": 9, "TSH": 8},
        "shared": [["scan", "city"]],
        "discounted": [{"members": ["T3", "web visits", "TSH"], "later": [6, 2, 5]}],
    }
    found = prices(json.dumps(content), tmp_path)
    assert found.feature_price().tolist() == [1, 5, 5]
    assert found.everything == 11


@pytest.mark.parametrize("names", [("1", "2", "3"), ("f1", "f2", "f3")])
@pytest.mark.parametrize("numbers", [(0, 1, 2), (0, 1, 2, 3)])
def test_numbers_from_0_are_no_numbers_from_1(names, numbers, tmp_path):
    text = "".join(f"{k},{k + 5}\n" for k in numbers)
    refused("line 1|from 0|from 1", prices, text, tmp_path, names)


def test_names_that_begin_with_a_hash_or_hold_separators_need_no_quotes(tmp_path):
    names = ("#visits", "distance, km", "a;b", "distance, km, once")
    text = "# prices\n#visits,1\ndistance, km,2\na;b,3\ndistance, km, once,4\nx, y,5\n"
    assert prices(text, tmp_path, names).feature_price().tolist() == [1, 2, 3, 4]
