"""Every query and block of docs/scale.md runs on a store that a run made."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import bench_core

PAGE = (Path(__file__).parents[1] / "docs" / "scale.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        learners = ["toy-prefix", "toy-broken"]
        bench_core.run(
            data="toy-rank", learners=learners, plugins=("helpers.toys",), executor="inline"
        )
    return home


def asked(home, query):
    with closing(sqlite3.connect(home / "results" / "bench.db")) as db:
        return pd.read_sql(query, db)


def test_the_queries_give_what_the_export_says(home):
    best, chosen, failed = (asked(home, query) for query in QUERIES)
    frame = bench_core.load_run("last", store=home / "results" / "bench.db").frame()
    test = frame[(frame["split"] == "test") & (frame["status"] == "ok")]
    assert best["quality"].tolist() == [test["ndcg@5"].max()]
    valid = frame[(frame["split"] == "valid") & (frame["total_cost"] <= 20)]
    assert chosen["point"].tolist() == [valid.loc[valid["ndcg@5"].idxmax(), "point"]]
    assert failed["status"].tolist() == ["failed"]


def test_the_tables_and_columns_that_the_page_names_are_there(home):
    for name, text in re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", PAGE, re.MULTILINE):
        columns = set(asked(home, f"SELECT * FROM {name}"))
        known = {word for word in re.findall(r"`(\w+)`", text) if word not in ("key", "list")}
        outside = {"sensors", "fit"}  # words about other tables
        assert known - outside <= columns | {"key"}


def test_python_reads_it_without_our_code(home, monkeypatch):
    monkeypatch.chdir(home)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(code, names)
    points, values = names["points"], names["by_query"]
    assert isinstance(points, pd.DataFrame)
    assert {"learner", "ndcg@5", "total_cost"} <= {*points}
    assert values.shape[0] > 0
    names["db"].close()
