"""Cost files in all forms; unsound ones are refused with the place and the remedy."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from helpers.kit import refused

from bench_core.api.arguments import costs_of
from bench_core.costs.bill import Acquired
from bench_core.costs.cost_file import CostFile, cost_model, read_costs
from bench_core.costs.model import SensorPrices, price_list
from bench_core.costs.shipped import MODELS, PerQueryPrices
from bench_core.data import Examples, Task
from bench_core.datasets.pricing import with_costs
from bench_core.splits import UNUSED, Note, Splits

NAMES = ("a", "b", "c")


def write(folder, text, name="costs.txt"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", ["index,cost\n2,7\n1,5\n", "f1:5\nf2:7\n", "1:5\n2:7\n", "5\n7\n", "[5, 7]"]
)
def test_features_without_names_are_counted_from_one(text, tmp_path):
    assert read_costs(write(tmp_path, text), features=2).feature_price().tolist() == [5, 7]


ODD = ("Temp, max", 'a"q', "x:y, z", '5" pipe; short', "plain")
WRITTEN = ['"Temp, max"', '"a""q"', '"x:y, z"', '"5"" pipe; short"', "plain"]


@pytest.mark.parametrize("separator", [",", ":", ";", "\t", ", "])
def test_names_in_quotes_may_hold_separators_and_quotes(separator, tmp_path):
    lines = [f"{name}{separator}{k}" for k, name in enumerate(WRITTEN, start=1)]
    path = write(tmp_path, "\n".join(lines) + "\n")
    assert read_costs(path, ODD).feature_price().tolist() == [1, 2, 3, 4, 5]


def test_a_name_with_a_dot_in_toml_is_to_be_quoted(tmp_path):
    names = ("Sepal.Length", "a.b.c", "d")
    text = "[costs]\n{} = 1\n{} = 2\nd = 3\n"
    for first, second, remedy in (
        ("Sepal.Length", '"a.b.c"', '"Sepal.Length" = 1'),
        ('"Sepal.Length"', "a.b.c", '"a.b.c" = 2'),
    ):
        path = write(tmp_path, text.format(first, second), "costs.toml")
        refused(f"has a dot, quote it: {remedy}", read_costs, path, names)
    path = write(tmp_path, text.format('"Sepal.Length"', '"a.b.c"'), "costs.toml")
    assert read_costs(path, names).feature_price().tolist() == [1, 2, 3]


FULL = {
    "costs": {"age": 1, "TSH": 22.78, "TT4": 14.51, "T4U": 11.41, "left": 5, "right": 5},
    "discounted": [{"members": ["TSH", "TT4", "T4U"], "later": [20.68, 12.41, 9.31]}],
    "derived": {"FTI": ["TT4", "T4U"]},
    "shared": [["left", "right"]],
    "split": 0.25,
    "tree": 0.5,
    "unit": "dollars",
}
FULL_NAMES = ("age", "TSH", "TT4", "T4U", "FTI", "left", "right")


def price_of(prices, names):
    mask = np.zeros((1, prices.sensors), dtype=bool)
    for name in names:
        mask[0, prices.sensors_of(FULL_NAMES.index(name))] = True
    return float(Acquired.pack(mask).cost(prices.sensor)[0])


@pytest.mark.parametrize(
    ("bought", "price"),
    [
        (("age",), 1),
        (("TSH",), 22.78),
        (("TSH", "TT4"), 22.78 + 12.41),
        (("T4U", "TSH"), 11.41 + 20.68),
        (("FTI",), 14.51 + 9.31),
        (("FTI", "TT4", "T4U"), 14.51 + 9.31),
        (("left",), 5),
        (("left", "right"), 5),
        (FULL_NAMES, 1 + 22.78 + 12.41 + 9.31 + 5),
    ],
)
def test_the_full_form_charges_groups_as_it_says(bought, price, tmp_path):
    prices = read_costs(write(tmp_path, json.dumps(FULL)), FULL_NAMES)
    assert price_of(prices, bought) == pytest.approx(price, abs=1e-9)


def test_the_example_of_the_documentation_is_read(tmp_path):
    text = (Path(__file__).parents[3] / "docs/guide/cost-files.md").read_text()
    example = text[text.index("    {\n") : text.index("    }\n") + 6]
    names = ("age", "TSH", "T3", "TT4", "T4U", "FTI", "left", "right")
    prices = read_costs(write(tmp_path, example), names)
    assert prices.everything == pytest.approx(1 + 2.10 + 20.68 + 9.31 + 12.41 + 9.31 + 5)


def splits(**changes):
    part = Examples(np.zeros((2, 3), dtype=np.float32), np.array([0.0, 1.0]))
    assumed = SensorPrices.additive(np.ones(3))
    return Splits(part, part, part, assumed, Task.BINARY, 2, NAMES, **changes)


def test_a_cost_file_replaces_the_assumed_prices(tmp_path):
    path = write(tmp_path, "a:1\nb:2.5\nc:0\n")
    priced = with_costs(splits(costs_assumed=True, notes=("kept",)), path)
    assert priced.prices.feature_price().tolist() == [1, 2.5, 0]
    assert not priced.costs_assumed
    assert priced.notes == ("kept",)


@pytest.mark.parametrize(
    "text", ["a:1\nfax:9\nb:2\nc:0\n", '{"costs": {"a": 1, "fax": 9, "b": 2, "c": 0}}']
)
def test_prices_of_features_that_the_data_do_not_have_are_noted(tmp_path, text):
    priced = with_costs(splits(), write(tmp_path, text))
    assert priced.notes == (Note(UNUSED, "not in the data, price not used: fax"),)


def test_columns_of_a_price_table_that_are_not_used_are_noted(tmp_path):
    path = write(tmp_path, "feature,price,service\na,1,x\nb,1,x\nc,0,\n")
    (note,) = with_costs(splits(), path).notes
    assert note.startswith(
        "columns of the price file that are not used: service; a column 'group' "
    )
    assert with_costs(splits(), write(tmp_path, "feature,price\na,1\nb,1\nc,0\n")).notes == ()


def test_a_key_of_another_cost_model_names_it(tmp_path):
    text = '{"costs": {"a": 1, "b": 1, "c": 0}, "per_query": ["a", "b"]}'
    words = "key 'per_query' without model|per-query|known: costs"
    refused(words, with_costs, splits(), write(tmp_path, text))


GROUPED = price_list(np.array([5.0, 5.0, 7.0]), shared=[(0, 1)], split=0.5, unit="ms")


@pytest.mark.parametrize(
    ("document", "evaluations"),
    [
        ({"tree": 0.25}, (0.5, 0.25, "ms")),
        ({"split": 2, "tree": 1, "unit": "us"}, (2, 1, "us")),
        ({"unit": "EUR"}, (0.5, 0, "EUR")),
        ({"model": "sensor", "split": 0}, (0, 0, "ms")),
        ({"model": "per-query", "per_query": ["a"], "tree": 3}, (0.5, 3, "ms")),
    ],
)
def test_without_costs_the_prices_and_groups_of_the_data_stay(document, evaluations):
    made = cost_model(CostFile(Path("c.json"), json.dumps(document)), NAMES, GROUPED, MODELS)
    assert (made.split, made.tree, made.unit) == evaluations
    assert made.feature_price().tolist() == [5, 5, 7]
    assert made.everything == 12


def test_a_feature_called_tree_has_a_price():
    file = CostFile(Path("c.json"), '{"tree": 3, "unit": 4}')
    costs = cost_model(file, ("tree", "unit"), None, MODELS)
    assert (costs.everything, costs.tree) == (7, 0)


TABLE = """\
model = "per-query"
unit = "ms"
costs = [1, 10, 100]
per_query = ["a", "c"]
"""


@pytest.mark.parametrize(
    "file",
    [
        CostFile(Path("c.toml"), TABLE),
        CostFile(Path("C.TOML"), TABLE),
        CostFile(Path("suite.toml"), "[costs]\n" + TABLE, tomllib.loads(TABLE)),
    ],
    ids=["a file", "in capitals", "a table of a suite"],
)
def test_toml_holds_the_full_form(file):
    costs = cost_model(file, NAMES, None, MODELS)
    assert isinstance(costs, PerQueryPrices)
    assert costs.sensor.tolist() == [1, 10, 100]
    assert costs.unit == "ms"
    assert costs.per_query.tolist() == [True, False, True]


def refusal(text, names=NAMES, name="c.json"):
    return refused(name, cost_model, CostFile(Path(name), text), names, None, MODELS)


def test_a_feature_called_model_may_have_its_price_as_text():
    text = '{"model": "5", "age": 1}'
    for source in (CostFile(Path("c.json"), text), costs_of(json.loads(text))):
        costs = cost_model(source, ("model", "age"), None, MODELS)
        assert costs.feature_price().tolist() == [5, 1]
    words = "c.json, line 1: unknown cost model 'senso'"
    assert refusal('{"model": "senso", "age": 1}', ("model", "age")).startswith(words)


MANY = tuple(f"n{i}" for i in range(40))
PAIR = {"members": ["a", "c"]}
REFUSED = [  # a text, or keys of the full form, one a line: the costs on line 2, others from line 3
    ("[1, -2, 0]", "c.json, entry 2: feature '2' costs -2, not a number from 0 to 1e+12"),
    ("[1, 2, 0, 4]", "c.json, entry 4: a cost number 4 for 3 columns"),
    ('{"a": 1, "b": 2}', "c.json: feature 'c' has no cost (2 costs for 3 columns)"),
    ("[5]", "c.json: feature 'b' and 1 more have no cost (1 costs for 3 columns)"),
    ('{"a": 1,\n"b": 2, "c": 0,\n"b": 2}', "c.json, line 2: feature 'b' has a second cost"),
    ('\n\n{"a": 1,\n"b": true, "c": 0}', "c.json, line 4: feature 'b' costs True, not a"),
    ('{"a": 1, "b": [2], "c": 0}', "c.json, line 1: feature 'b' costs [2], not a number"),
    ('{"a": 1, "b": null, "c": 0}', "c.json, line 1: feature 'b' has no price; write one"),
    ('{"a": 1, "b": 2, "x1": 0}', "c.json: feature 'c' has no cost (2 costs for 3 columns); "),
    ('"1"', "c.json: expected a mapping or a list of costs"),
    ('{"a": 1,\n"b": }', "c.json, line 2: not JSON"),
    ("[" * 20_000, "c.json: not costs ("),
    ("[" + "9" * 5000 + "]", "c.json: not costs ("),
    ('{"cost":\n{"a": 1, "b": 2}}', "c.json, line 1: unknown key 'cost' holds costs of feat"),
    ('{"model": "per-query", "per_query": ["a"]}', "c.json: key 'costs' is missing"),
    (
        '{"model": "per-query", "per_query": ["a"],\n"shared": [["a", "b"]]}',
        "c.json, line 2: unknown key 'shared'; known: costs, split, tree, unit, measured, model, "
        "per_query",
    ),
    ({"split": -1}, "c.json, line 3: feature 'split' costs -1, not a number"),
    ({"tree": "x"}, "c.json, line 3: feature 'tree' costs 'x', not a number"),
    ({"unit": 3}, "c.json, line 3: unit is 3; give it as text"),
    ({"units": "s"}, "c.json, line 3: unknown key 'units'; known: costs, shared, "),
    ({"derived": ["c"]}, "c.json, line 3: derived maps a feature to its parents"),
    ({"derived": {"c": "a"}}, "c.json, line 3: derived holds 'a'; give a list"),
    ({"derived": {"c": []}}, "c.json, line 3: derived holds []; give a list"),
    ({"shared": {"a": "b"}}, "c.json, line 3: shared must be a list of groups"),
    ({"shared": ["ac"]}, "c.json, line 3: shared holds 'ac'; give a list of features"),
    ({"shared": [[]]}, "c.json, line 3: shared holds []; give a list of features"),
    ({"shared": [["a", "b"]]}, "c.json, line 2: features 'a' and 'b' share one"),
    ({"shared": [["a", 9]]}, "c.json: unknown feature '9': correct or remove it; known: a, b, c"),
    ({"shared": [["a", "c"], ["c"]]}, "c.json, line 2: feature 'c' is in two groups; keep"),
    ({"derived": {"a": ["b"], "b": ["a"]}}, "c.json, line 2: feature 'a' is derived from 'b'"),
    ({"discounted": "ab"}, "c.json, line 3: discounted must be a list of groups"),
    ({"discounted": [["a", "b"]]}, "c.json, line 3: a discounted group has exactly the keys"),
    ({"discounted": [{"members": ["a"]}]}, "c.json, line 3: a discounted group has exactly"),
    ({"discounted": [{**PAIR, "later": "11"}]}, "c.json, line 3: give one later price"),
    ({"discounted": [{**PAIR, "later": [1]}]}, "c.json, line 3: give one later price for each"),
    ({"discounted": [{**PAIR, "later": [0, -1]}]}, "c.json, line 3: feature 'c' costs -1, not"),
    ({"model": "sensr"}, "c.json, line 3: unknown cost model 'sensr': did you mean sensor?"),
    ({"model": "per-query"}, "c.json, line 3: per_query must be a list of features"),
    ("a,1\nb,cheap\nc,0", "c.csv, line 2: feature 'b' costs 'cheap', not a number"),
    ("# x\na,1\nb,2,5\nc,0", "c.csv: feature 'b' has no cost (2 costs for 3 columns"),
    ("a,1\nb,2\nc,0\na,1", "c.csv, line 4: feature 'a' has a second cost"),
    ("# x\n", "c.csv: no costs in this file; write one line name,cost"),
    ("1\n2\n3\n4", "c.txt, line 4: a cost number 4 for 3 columns"),
    ("a:1\nb\nc:3", "c.txt, line 2: 1 cells where the other lines have 2; columns"),
    ("a:1\nb:inf\nc:0", "c.txt, line 2: feature 'b' costs 'inf', not a number"),
]


@pytest.mark.parametrize(("content", "line"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_gives_no_costs_is_one_line_with_file_and_place(content, line):
    if isinstance(content, dict):
        keys = {"costs": {"a": 1, "b": 2, "c": 1}} | content
        content = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in keys.items())
        content = f"{{\n{content}\n}}"
    name = line.partition(",")[0].partition(":")[0]
    assert refusal(content, name=name).startswith(line)


def test_the_first_names_are_listed():
    costs = json.dumps({"costs": dict.fromkeys(MANY, 1), "shared": [["zz"]]})
    assert refusal(costs, MANY).endswith("known: n0, n1, n2, n3, n4, n5, n6, n7 and 32 more")
