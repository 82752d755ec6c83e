"""``bench cost measure``: anybody's extractors, timed, as a file that ``bench run`` takes."""

import json
import sys

import pytest
from helpers.kit import assert_line

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
    words += () if "--input" in words else ("--input", "texts")
    return bench("cost", "measure", target, "--repeats", "2", *words)


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


@pytest.mark.parametrize(
    ("target", "costs", "shared"),
    [
        ("my_kit:factory", ["cheap", "expensive", "count", "first"], []),  # the mapping
        (
            "my_kit:length --load my_kit:opened",
            ["length_1", "length_2"],
            [["length_1", "length_2"]],
        ),
    ],
)
def test_a_function_returns_the_mapping_or_is_one_extractor(bench, kit, target, costs, shared):
    ended = measured(bench, *target.split(), "-q", "-o", "-")
    document = json.loads(ended.out)
    assert list(document["costs"]) == costs
    assert document["shared"] == shared
    assert ended.err == ""


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("my_kit", "write module:name"),
        ("my_kit.py:cheap", "my_kit:cheap"),
        ("absent_kit:cheap", "absent_kit (ModuleNotFoundError|run the command in its folder"),
        ("broken_kit:cheap", "cannot import broken_kit (SyntaxError|line 1)); correct it"),
        ("my_kit:leaving", "'leaving' failed on texts/a.txt (SystemExit: 3)"),
        ("my_kit:chap", "did you mean cheap?"),
        ("my_kit:number", "int is neither a function"),
        ("my_kit:empty", "an empty mapping"),
        ("my_kit:odd", "entry 'a' is neither a function nor a pair"),
        ("my_kit:no_mapping", "int is neither a function"),
        ("my_kit:failing", "'failing' failed on texts/a.txt (ValueError: bad luck)"),
        ("my_kit:cheap --input nowhere", "no such file or folder"),
        ("my_kit:cheap --input void", "no file in it"),
    ],
)
def test_a_wrong_target_or_input_is_one_line(bench, kit, target, why):
    (kit / "void").mkdir()
    ended = measured(bench, *target.split(), "-o", "costs.json")
    assert ended.status == 2
    assert ended.err.count("error: ") == 1
    line = ended.err.strip().splitlines()[-1]
    assert line.startswith("error: ")
    assert_line(line, why)
    assert not (kit / "costs.json").exists()
