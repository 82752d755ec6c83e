"""``bench cost measure`` on pipelines of scikit-learn: a price for each transformer."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench_core.api.arguments import request_of
from bench_core.costs.shipped import MODELS
from bench_core.datasets.pricing import with_costs

MODULE = """
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

def quick(cells):
    return cells

def slow(cells):
    for _ in range(8):
        pd.DataFrame(cells).describe()
    return cells

columns = ColumnTransformer(
    [
        ("slow", FunctionTransformer(slow), ["a", "b"]),
        ("quick", FunctionTransformer(quick), [1]),
        ("words", CountVectorizer(), "note"),
        ("gone", "drop", ["c"]),
    ],
    remainder="passthrough",
)
pipeline = Pipeline([("columns", columns), ("model", LogisticRegression())])
failing = ColumnTransformer([("quick", FunctionTransformer(quick), ["z"])])
"""


@pytest.fixture
def kit(elsewhere):
    Path("my_pipe.py").write_text(MODULE)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame["note"], frame["age"] = rng.choice(["late", "fine late", "cold"], 60), rng.normal(size=60)
    frame.to_csv("rows.csv", index=False)
    frame.drop(columns="age").to_csv("few.csv", index=False)
    Path("photos").mkdir()
    yield frame
    sys.modules.pop("my_pipe", None)


def test_each_transformer_has_a_price_that_a_run_takes(bench, kit):
    words = ("--input", "rows.csv", "--items", "3", "--repeats", "2", "-o", "costs.json")
    ended = bench("cost", "measure", "my_pipe:pipeline", *words)
    assert ended.status == 0, ended.err
    costs = json.loads(Path("costs.json").read_text())["costs"]
    assert {*costs} == {"slow", "quick", "words", "age"}
    assert costs["slow"] > 10 * costs["quick"]
    assert costs["age"] < costs["words"]
    from my_pipe import columns

    asked = request_of({}, kit, [0, 1] * 30, transformer=columns)
    (splits,) = asked.data[0].splits
    priced = with_costs(splits, "costs.json", MODELS).costs
    assert priced.everything == pytest.approx(sum(costs.values()))


@pytest.mark.parametrize(
    ("target", "inputs", "line"),
    [
        ("failing", "rows.csv", "my_pipe:failing: ValueError"),
        ("columns", ".", "error: .: give CSV or Parquet tables"),
        ("columns", "rows.csv photos", "error: photos: give CSV or Parquet tables"),
        ("columns", "rows.csv few.csv", "error: few.csv: column 'age' is missing"),
        ("columns", "few.csv rows.csv", "error: rows.csv: column 'age' is not in few.csv"),
    ],
)
def test_what_cannot_be_timed_is_one_line(bench, kit, target, inputs, line):
    words = [word for name in inputs.split() for word in ("--input", name)]
    ended = bench("cost", "measure", f"my_pipe:{target}", *words)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert line in ended.err
