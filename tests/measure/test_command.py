"""``bench cost measure``: anybody's extractors, timed, as a file that ``bench run`` takes."""

import json
import sys

import pytest

MODULE = """
from pathlib import Path

def cheap(path):
    return path.stat().st_size

def expensive(path):
    return sum(i * i for i in range(60_000))

def words(path):
    return path.read_text().split()

outputs = {"count": len, "first": lambda found: len(found[0])}
extractors = {"cheap": cheap, "expensive": expensive, "words": (words, outputs)}

def factory():
    return extractors

def opened(path):
    return path.read_text()

def length(text):
    return [len(text), text.count("a")]

def failing(path):
    raise ValueError("bad\\nluck")

def leaving(path):
    raise SystemExit(3)

def no_mapping():
    return 3

empty = {}
odd = {"a": (cheap, {})}
number = 7
"""


@pytest.fixture
def kit(elsewhere):
    (elsewhere / "my_kit.py").write_text(MODULE)
    (elsewhere / "broken_kit.py").write_text("1 +\n")
    (elsewhere / "texts" / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "deep/c.txt", ".hidden"):
        (elsewhere / "texts" / name).write_text("a few words\n")
    yield elsewhere
    for name in ("my_kit", "broken_kit"):
        sys.modules.pop(name, None)


def measured(bench, target, *words):
    return bench("cost", "measure", target, "--input", "texts", "--repeats", "2", *words)


def last_line(ended):
    return ended.err.strip().splitlines()[-1]


def test_it_writes_a_cost_file_with_spread_and_machine(bench, kit):
    ended = measured(bench, "my_kit:extractors", "-o", "costs.json")
    assert ended.status == 0, ended.err
    assert "4 costs written to costs.json" in ended.err
    document = json.loads((kit / "costs.json").read_text())
    costs = document["costs"]
    assert list(costs) == ["cheap", "expensive", "count", "first"]
    assert all(cost > 0 for cost in costs.values())
    assert costs["expensive"] > 20 * costs["cheap"]
    (group,) = document["discounted"]
    assert group["members"] == ["count", "first"]
    assert all(later < costs["count"] for later in group["later"])
    told = document["measured"]
    assert (told["items"], told["repeats"], told["clock"]) == (3, 2, "CPU time")
    low, high = told["extractors"]["expensive"]["quartiles"]
    assert low <= costs["expensive"] <= high
    assert "cores" in told["machine"]


def test_a_run_takes_the_file(bench, material, kit):
    (kit / "abc.py").write_text("")
    (kit / "my_columns.py").write_text(
        "extractors = {'a': lambda p: 1, 'b': lambda p: 2, 'c': lambda p: 3}\n"
    )
    assert measured(bench, "my_columns:extractors", "-o", "abc.json").status == 0
    ended = bench(
        "run", "--data", "data.csv", "--label", "label", "--costs", "abc.json",
        "-p", "mine", "--learners", "toy", "--executor", "inline",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    sys.modules.pop("my_columns", None)


def test_a_function_that_returns_the_mapping_does_too(bench, kit):
    ended = measured(bench, "my_kit:factory", "-q", "-o", "-")
    assert list(json.loads(ended.out)["costs"]) == ["cheap", "expensive", "count", "first"]
    assert ended.err == ""


def test_one_function_is_one_extractor_and_load_prepares_its_items(bench, kit):
    ended = measured(bench, "my_kit:length", "--load", "my_kit:opened", "-q", "-o", "-")
    document = json.loads(ended.out)
    assert list(document["costs"]) == ["length_1", "length_2"]
    assert document["shared"] == [["length_1", "length_2"]]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("my_kit", "write module:name"),
        ("my_kit.py:cheap", "my_kit:cheap"),
        ("absent_kit:cheap", "cannot import absent_kit (ModuleNotFoundError"),
        ("absent_kit:cheap", "run the command in its folder"),
        ("broken_kit:cheap", "cannot import broken_kit (SyntaxError"),
        ("broken_kit:cheap", "line 1)); correct it"),
        ("my_kit:leaving", "'leaving' failed on texts/a.txt (SystemExit: 3)"),
        ("my_kit:chap", "did you mean cheap?"),
        ("my_kit:number", "int is neither a function"),
        ("my_kit:empty", "an empty mapping"),
        ("my_kit:odd", "entry 'a' is neither a function nor a pair"),
        ("my_kit:no_mapping", "int is neither a function"),
        ("my_kit:failing", "'failing' failed on texts/a.txt (ValueError: bad luck)"),
    ],
)
def test_a_wrong_target_is_one_line(bench, kit, target, why):
    ended = measured(bench, target, "-o", "costs.json")
    assert ended.status == 2
    assert ended.err.count("error: ") == 1
    assert last_line(ended).startswith("error: ")
    assert why in last_line(ended)
    assert not (kit / "costs.json").exists()


def test_absent_or_empty_input_is_one_line(bench, kit):
    (kit / "void").mkdir()
    for name, why in (("nowhere", "no such file or folder"), ("void", "no file in it")):
        ended = bench("cost", "measure", "my_kit:cheap", "--input", name)
        assert ended.status == 2
        assert why in last_line(ended)
