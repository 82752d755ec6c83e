"""Pages of the documentation do what they show: tutorial, Python, ranking, scale, notebook."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pandas as pd
import pytest
from helpers.pages import DOCS, blocks, code, follow, near, page, same, write

import bench_core

TUTORIAL = re.split(r"^## \d\. ", page("guide/tutorial.md"), flags=re.M)[1:]
PYTHON, RANKING = page("guide/python.md"), page("guide/ranking.md")
SCALE = page("reference/scale.md")


@pytest.fixture
def reader(elsewhere, monkeypatch):
    """An empty folder and a terminal of 80 columns."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    yield elsewhere
    for learner in ("nearest", "top_k"):
        sys.modules.pop(learner, None)


def test_the_tutorial_does_what_it_shows(reader):
    assert len(TUTORIAL) == 7
    follow("".join(TUTORIAL[:6]), same)
    assert "booktabs" in (reader / "pairs.tex").read_text()
    assert {"board.html", "board.tex", "rows.csv", "model"} <= {p.name for p in reader.iterdir()}


@pytest.mark.slow
def test_a_learner_of_ones_own_joins_the_board(reader):
    follow("".join([*TUTORIAL[:2], TUTORIAL[6]]), same)
    (template,) = re.findall(r"a learner of (\d+) lines", TUTORIAL[6])
    lines = (reader / "nearest.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= int(template)


def test_the_page_on_python_does_what_it_shows(reader):
    shown = [output for *_, output in blocks(PYTHON)]
    assert (len(shown), shown.count("")) == (3, 1)
    follow(PYTHON, same)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_page_on_ranking_leads_from_files_to_a_model_in_python_and_c(reader):
    write(RANKING, reader)
    follow(RANKING.replace("```python\n", "```file\n"), near)  # LightGBM's releases differ a little


def test_the_page_on_services_leads_from_logged_calls_to_an_exported_cascade(reader):
    text = page("guide/services.md")
    write(text, reader)
    follow(
        f"```sh\npython make_calls.py\n```\n{text}".replace("```python\n# make", "```file\n# make"),
        near,
    )


RECIPES = {path.stem: page(f"recipes/{path.name}") for path in (DOCS / "recipes").glob("*.md")}


@pytest.mark.parametrize(
    "recipe", ["serve watch", "pipeline", "notebook", pytest.param("paper", marks=pytest.mark.slow)]
)
def test_a_recipe_does_what_it_shows(recipe, reader):
    follow("\n".join(RECIPES[name] for name in recipe.split()), near)


def test_recipes_are_short():
    assert sorted(RECIPES) == ["notebook", "paper", "pipeline", "serve", "watch"]
    assert [name for name, text in RECIPES.items() if len(text.splitlines()) > 40] == []


def test_every_method_of_a_result_is_on_the_page():
    own = {"board", "at", "best", "compare", "curve", "features", "plot", "to_latex", "report"}
    shown = set(re.findall(r"result\.(\w+)\(", PYTHON))
    assert own | {"frame"} <= shown
    assert [name for name in shown if not hasattr(bench_core.Result, name)] == []


SCRIPT = """
from pathlib import Path

import numpy as np
import pandas as pd

import bench_core
from bench_core import BudgetedClassifier, Budget, Result

X: np.ndarray = np.zeros((4, 2))
y = [0, 1, 0, 1]
result: Result = bench_core.run(
    X, y, costs={"x0": 1, "x1": 2.5}, learners={"cegb": {"trees": 10}}, seeds=range(3), workers=1
)
bench_core.run(pd.DataFrame(X), "ill", queries="visit", learners=["cegb", "gbrt"], valid=(X, y))
bench_core.plan(suite="yahoo", learners="miser", timeout=60)
bench_core.run(
    X, y, split=["train", "test"], costs=[1, 2], seeds=0, caps=5, share=(0.1, 0.2), drop="id",
    metrics=["auc"], settings={"miser.trees": 3}, positive=1, data_dir=Path("data"), memory=2**30
)
bench_core.run(data=[Path("a.csv")], costs="c.csv", groups=["a,b:5"], folds=None, store="x.db")
bench_core.audit("last", store=Path("x.db"), workers=2)
bench_core.reprice(costs={"x0": 2.0}, data="letters", caps=[1, 2.5], plugins="mine")
at = result.at([10, "cap 20", Budget(30, "cap")])
learner: str = result.best(10).learner
BudgetedClassifier("cegb", budget=5, costs=[1, 2]).fit(X, y).predict(X)
bench_core.run(X, y, name=10)  # wrong
bench_core.audit(10)  # wrong
result.best(10).quality + "1"  # wrong
"""


@pytest.mark.slow
def test_a_typed_script_is_checked(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "script.py"]
    more = ["--allow-untyped-calls", "--ignore-missing-imports", "--follow-imports=silent"]
    ended = subprocess.run(
        [*command, *more], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    wrong = [k for k, line in enumerate(SCRIPT.splitlines(), start=1) if "# wrong" in line]
    found = [int(n) for n in re.findall(r"^script\.py:(\d+): error", ended.stdout, flags=re.M)]
    assert sorted(set(found)) == wrong, ended.stdout


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
    best, chosen, failed = (asked(home, query) for query in code(SCALE, "sql"))
    frame = bench_core.load_run("last", store=home / "results" / "bench.db").frame()
    test = frame[(frame["split"] == "test") & (frame["status"] == "ok")]
    assert best["quality"].tolist() == [test["ndcg@5"].max()]
    valid = frame[(frame["split"] == "valid") & (frame["cost"] <= 20)]
    assert chosen["point"].tolist() == [valid.loc[valid["ndcg@5"].idxmax(), "point"]]
    assert failed["status"].tolist() == ["failed"]


def test_the_tables_and_columns_that_the_page_names_are_there(home):
    for name, text in re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", SCALE, re.MULTILINE):
        columns = set(asked(home, f"SELECT * FROM {name}"))
        known = {word for word in re.findall(r"`(\w+)`", text) if word not in ("key", "list")}
        outside = {"sensors", "fit"}  # words about other tables
        assert known - outside <= columns | {"key"}


def test_python_reads_it_without_our_code(home, monkeypatch):
    monkeypatch.chdir(home)
    (script,) = code(SCALE, "python")
    names = {}
    exec(script, names)
    points, values = names["points"], names["by_query"]
    assert isinstance(points, pd.DataFrame)
    assert {"learner", "ndcg@5", "cost"} <= {*points}
    assert values.shape[0] > 0
    names["db"].close()


def printed(cells):
    """Text printed by each cell, and the names of the forms in which it shows its value."""
    outputs = [one for cell in cells for one in cell.get("outputs", ())]
    texts = ["".join(one["text"]) for one in outputs if one["output_type"] == "stream"]
    return texts, [sorted(one["data"]) for one in outputs if "data" in one]


@pytest.mark.slow  # a kernel of its own; test_the_page_on_python makes the same calls
@pytest.mark.filterwarnings("ignore")  # of the kernel's libraries
def test_the_notebook_prints_what_it_shows(tmp_path, monkeypatch):
    """``jupyter execute --inplace docs/notebook.ipynb`` renews its outputs."""
    nbformat, nbclient = map(pytest.importorskip, ("nbformat", "nbclient"))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_STORE", raising=False)
    shown = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))
    made = nbformat.reads(json.dumps(shown), as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3", resources=where).execute()
    assert printed(made["cells"]) == printed(shown["cells"])
    assert "euro per row" in printed(shown["cells"])[0][0]
    assert (tmp_path / "results" / "bench.db").is_file()
