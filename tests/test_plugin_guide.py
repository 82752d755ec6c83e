"""Every file and command of docs/reference/plugins.md works as it stands there."""

import re
import shlex
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from shutil import copy

import numpy as np
import pytest
from helpers.commands import BENCH
from helpers.pages import DOCS, called, code, files, page, write
from sklearn.datasets import load_breast_cancer

from bench_core.cli.app import plugin_commands
from bench_core.serving import load

SHOWN = {  # what each command must show, beside ending well
    "closest,constant": "closest",
    "asking,constant": "asking",
    "--order": "100.0%        1.0  █···",
    "--data noisy --learners gbrt": "miser",
    "--metric hinge": "hinge",
    "--costs costs.toml": "cheapest-first",
    "board.tsv": "",
    "cost-tree,constant": "cost-tree",
    "--format sql": "wrote model-sql, at any cost",
    "--suite noise": "How much noise",
    "bench runs": "7 runs",
}

GUIDE = page("reference/plugins.md")
LINES = [line for block in code(GUIDE, "sh") for line in block.splitlines()]
# of the new plugin, and checks: tested by themselves
BEGINNING = [line for line in LINES if "top-k" in line or line.startswith("bench check")]
COMMANDS = [line for line in LINES if line not in BEGINNING]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("guide")
    write(GUIDE, made)
    copy(DOCS / "examples/my_sql.py", made)
    about = made / "my_plugins-1.0.dist-info"  # as pip would write it
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugins\nVersion: 1.0\n")
    points = tomllib.loads(files(GUIDE)["pyproject.toml"])["project"]["entry-points"]
    lines = [f"{name} = {value}\n" for name, value in points["bench.commands"].items()]
    (about / "entry_points.txt").write_text("[bench.commands]\n" + "".join(lines))
    return made


@pytest.fixture(scope="module")
def ended(folder):
    """Every command of the guide, in order."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.setenv("BENCH_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "200")
        patch.delenv("BENCH_STORE", raising=False)
        plugin_commands.cache_clear()
        yield {line: called(line) for line in COMMANDS}
    plugin_commands.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith("my_"):
            del sys.modules[name]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_guide_works(line, ended):
    done = ended[line]
    assert done.status == 0, done.err
    (shown,) = [text for part, text in SHOWN.items() if part in line]
    assert shown in done.out


def test_the_reports_file_has_a_row_for_each_point(folder, ended):
    header, *rows = (folder / "board.tsv").read_text().splitlines()
    assert {"learner", "split", "feature_cost"} <= set(header.split("\t"))
    assert len(rows) > 2


def test_a_service_of_the_guides_cost_model_costs_its_dearest_sensor(folder, ended):
    rows = [line.split("\t") for line in (folder / "board.tsv").read_text().splitlines()]
    at = rows[0].index("feature_cost")
    costs = {float(row[at]) for row in rows[1:]}
    assert len(costs) > 3
    assert max(costs) == 3.5  # of ten sensors for .5, two and three are fetched together


def test_the_guides_sql_gives_the_scores_of_the_served_model(folder, ended, monkeypatch):
    monkeypatch.chdir(folder)
    exported = called("bench model export 6 --learner cost-tree --budget inf -o model")
    assert exported.status == 0, exported.err
    model, sql = load("model"), (folder / "model-sql/model.sql").read_text()
    columns = ", ".join(f'"{name}"' for name in model.names)
    rows = load_breast_cancer().data.astype(np.float32)
    rows[::7] = np.nan  # NULL in SQL
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE t ({columns})")
        places = ", ".join("?" for _ in model.names)
        database.executemany(f"INSERT INTO t VALUES ({places})", rows.tolist())
        scores = [score for (score,) in database.execute(f"SELECT {sql} FROM t ORDER BY rowid")]
    assert len({*scores}) > 2
    assert np.allclose(scores, model.predict_rows(rows).scores, rtol=1e-9)


def test_the_guides_sql_refuses_a_model_of_many_trees(folder, ended, monkeypatch):
    monkeypatch.chdir(folder)
    words = "--data breast-cancer --learners gbrt --set gbrt.trees=3 --store other.db"
    assert called(f"bench run {words}").status == 0
    words = "--store other.db --budget inf --format sql -o many -p my_sql"
    refused = called(f"bench model export {words}")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "sql: not a single tree" in refused.err
    assert not (folder / "many").exists()


def test_no_example_is_longer_than_fifteen_lines_except_one():
    texts = {name: text for name, text in files(GUIDE).items() if name.endswith(".py")}
    lines = {name: len(re.findall(r"^.*\S", text, re.M)) - 1 for name, text in texts.items()}
    assert lines.pop("my_costs.py") <= 40
    assert {name: n for name, n in lines.items() if n > 15} == {}


@pytest.mark.slow
def test_a_new_plugin_and_those_of_the_guide_keep_their_promises(folder):
    modules = ("my_learner", "my_data", "my_metric", "my_costs", "my_report")
    words = [word for module in modules for word in ("-p", module)]
    lines = [*BEGINNING, f"bench check {shlex.join(words)}"]
    assert len(lines) == 5
    for line in lines:
        command = [str(BENCH), *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
