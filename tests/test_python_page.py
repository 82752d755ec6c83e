"""The page on Python does what it shows."""

import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, flags=re.S)


def test_every_block_runs_and_prints_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_STORE", raising=False)
    names = {"__name__": "page"}
    assert len(BLOCKS) == 4
    for code, shown in BLOCKS:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "docs/python.md", "exec"), names)
        assert printed.getvalue() == shown


def test_every_method_of_a_result_is_on_the_page():
    import bench_core

    own = {"board", "at", "best", "compare", "curve", "features", "plot", "to_latex", "report"}
    shown = set(re.findall(r"result\.(\w+)\(", PAGE))
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
